//! The pure parts. What stores and relays do is the conformance suite's.

mod compares;
mod events;
mod rounds;
mod watchdogs;
