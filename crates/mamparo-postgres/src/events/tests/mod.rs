//! The suite, and what only a server has.

mod conformance;
mod server;
mod support;
