//! The suite, and what only a file has.

mod conformance;
mod file;
mod plans;
