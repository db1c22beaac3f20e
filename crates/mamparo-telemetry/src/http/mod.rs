//! What a span says of an HTTP request, and what the request carries of the span.
//!
//! - `method`: which methods are known, the others are `_OTHER`
//! - `url`: the whole address without its secrets
//! - `server`: the host and port that are called
//! - `version`: the protocol's version
//! - `propagate`: the span's identity, written into the request's headers
//! - `extract`: the caller's, read from them

mod extract;
mod method;
mod propagate;
mod server;
mod url;
mod version;

#[cfg(feature = "durable")]
pub(crate) use extract::read_parent;
pub(crate) use method::{known_method, method_attributes};
pub(crate) use propagate::Propagation;
#[cfg(feature = "durable")]
pub(crate) use propagate::traceparent;
pub(crate) use server::{Server, Servers};
pub(crate) use url::{full_url, query};
pub(crate) use version::protocol_version;

#[cfg(test)]
mod tests;
