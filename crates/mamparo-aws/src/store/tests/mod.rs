//! The store against a local server, and against one whose answers are tampered with.

mod faults;
pub(crate) mod support;
