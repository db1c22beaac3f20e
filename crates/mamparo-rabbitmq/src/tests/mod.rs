//! On a real broker, which the tests of this crate share.

mod consuming;
mod copies;
mod failing;
mod letters;
mod publishing;
mod queues;
mod settling;
mod support;
mod topologies;
mod unreadable;
