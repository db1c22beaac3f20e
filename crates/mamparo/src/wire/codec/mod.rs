//! How a deadline is written on the wire: one header at a time, or a bounded set of them.
//!
//! Locally a deadline is an instant; on the wire it is either *relative* (what remains, immune to clocks that
//! disagree) or *absolute* (a time of day, only as good as both clocks). Every form is read strictly and written
//! so that it never promises more than remains.
//!
//! | header | form | zero means |
//! |---|---|---|
//! | `grpc-timeout` | relative, up to 8 digits and a unit ([gRPC over HTTP/2][grpc]) | expired |
//! | `x-request-timeout-ms`, any name in milliseconds or seconds | relative, up to 19 digits | expired, or infinite where told so |
//! | `connect-timeout-ms` | relative milliseconds, up to 10 digits ([Connect protocol][connect]) | expired |
//! | `x-envoy-expected-rq-timeout-ms` | relative milliseconds ([Envoy's router][envoy]) | infinite |
//! | any name, epoch milliseconds | absolute, up to 19 digits | expired |
//! | any name, RFC 3339 | absolute, `2026-01-31T23:59:59.999Z` or with an offset | |
//! | `finagle-ctx-com.twitter.finagle.deadline` | absolute, base64 of two big-endian nanosecond counts | |
//!
//! - **Strict**: ASCII digits only; a sign, a fraction, an inner space or too many digits is [`Malformed`].
//!   Spaces and tabs around a value are trimmed, as HTTP/1 allows. Nothing overflows.
//! - **Rounded down** to the unit of the form. What is less than one unit is written as one unit, never as zero:
//!   that single unit is the only overstatement.
//! - **The smallest wins** where several headers, or several values of one, are there.
//! - **Absolute forms are doubted**: [`Skew`] tolerates some disagreement between clocks, and bounds the share of
//!   requests that a peer with a wrong clock can lose.
//! - No clock is read here: the time of day is passed in.
//!
//! ```
//! use http::HeaderMap;
//! use mamparo::wire::codec::{DeadlineHeader, DeadlineHeaders, Remaining};
//! use std::time::{Duration, SystemTime};
//!
//! let wall = SystemTime::UNIX_EPOCH;
//! let accepted = DeadlineHeaders::new([
//!     DeadlineHeader::grpc_timeout(),
//!     DeadlineHeader::seconds("request-timeout")?,
//! ])?;
//! let mut headers = HeaderMap::new();
//! headers.insert("grpc-timeout", "1500m".parse()?);
//! headers.insert("request-timeout", "2".parse()?);
//!
//! let read = accepted.read_all(&headers, wall);
//! assert_eq!(read.remaining(), Some(Remaining::For(Duration::from_millis(1_500))));
//!
//! // The next hop gets what is left by now, in one form only.
//! accepted.strip(&mut headers);
//! let sent = DeadlineHeader::request_timeout_ms();
//! headers.insert(sent.name(), sent.write(Duration::from_micros(1_234_567), wall));
//! assert_eq!(headers["x-request-timeout-ms"], "1234");
//! assert_eq!(headers.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [grpc]: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
//! [connect]: https://connectrpc.com/docs/protocol#unary-request
//! [envoy]: https://www.envoyproxy.io/docs/envoy/latest/configuration/http/http_filters/router_filter

mod absolute;
mod grpc;
mod header;
mod set;
mod skew;
mod told;
mod whole;

pub use header::DeadlineHeader;
pub use set::{DeadlineHeaders, MAX_DEADLINE_HEADERS, Read};
pub use skew::{Admission, DEFAULT_REJECT_PERCENT, DEFAULT_TOLERATED, MAX_SAVED_REJECTIONS, Skew};
pub use told::{Malformed, Remaining};

#[cfg(test)]
mod tests;
