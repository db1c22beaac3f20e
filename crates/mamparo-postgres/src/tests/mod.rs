//! Against a real server: one for all tests, a schema each; a server of its own where it is stopped.

mod conformance;
mod faults;
mod plans;
mod queues;
mod schemas;
mod speed;
mod steps;
pub(crate) mod support;
mod wakes;
