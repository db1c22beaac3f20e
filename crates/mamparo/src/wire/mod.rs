//! Where a protocol has a place for a deadline: in a request's headers, and around an answer's body.
//!
//! [`CarriesDeadline`] reads and writes it on a request, [`BoundsAnswer`] makes it bind the answer's stream.
//! [`HttpWire`] does both for HTTP, [`NoWire`] stands for services that have neither. The client's, the server's and
//! the attempt's limit use them; this is not a layer.

mod body;
mod bounds;
pub mod codec;
mod http;
mod limits;
mod none;
mod place;

pub use body::TimedBody;
pub use http::HttpWire;
pub use limits::BodyLimits;
pub use none::NoWire;
pub use place::{BoundsAnswer, CarriesDeadline};

#[cfg(test)]
mod tests;
