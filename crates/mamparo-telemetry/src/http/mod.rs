//! What a CLIENT span says of a request, and what the request carries of the span.
//!
//! - `method`: which methods are known, the others are `_OTHER`
//! - `url`: the whole address without its secrets
//! - `server`: the host and port that are called
//! - `propagate`: the span's identity, written into the request's headers

mod method;
mod propagate;
mod server;
mod url;

pub(crate) use method::known_method;
pub(crate) use propagate::Propagation;
pub(crate) use server::{Server, Servers};
pub(crate) use url::full_url;

#[cfg(test)]
mod tests;
