//! What spans and metrics say of an RPC.
//!
//! - `method`: its name, from the request's path
//! - `called`: what a client calls
//! - `describe`: its attributes
//! - `target`: the server that it is sent to

mod called;
mod describe;
mod method;
mod target;

pub(crate) use called::Called;
pub(crate) use describe::{Described, code};
pub(crate) use method::{Method, as_sent, well_formed};
pub(crate) use target::Target;

#[cfg(test)]
mod tests;
