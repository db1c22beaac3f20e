//! Requests of HTTP as transactions: stored, judged and sent again.
//!
//! - [`StoredRequest`] is a request as bytes, without what must not lie in a database or belongs to one connection;
//! - [`Judge`] says what an answer means: done, not now, never, or nothing at all;
//! - [`HttpSender`] sends what the engine claims through any client stack, each attempt under its own idempotency key.
//!
//! ```
//! use http::StatusCode;
//! use mamparo_durable::machine::Outcome;
//! use mamparo_durable::web::Judge;
//!
//! let judge = Judge::builder().refused([StatusCode::CONFLICT]).field("status").refused_values(["CANCELLED"]).build()?;
//! let outcome = |status, body: &[u8]| judge.judge(status, body).0;
//! assert_eq!(outcome(StatusCode::OK, br#"{"status":"DONE"}"#), Outcome::Success);
//! assert_eq!(outcome(StatusCode::OK, br#"{"status":"CANCELLED"}"#), Outcome::Refused);
//! assert_eq!(outcome(StatusCode::CONFLICT, b""), Outcome::Refused);
//! assert_eq!(outcome(StatusCode::UNPROCESSABLE_ENTITY, b""), Outcome::Declined);
//! assert_eq!(outcome(StatusCode::BAD_GATEWAY, b""), Outcome::Technical);
//! # Ok::<(), mamparo_core::InvalidSetting>(())
//! ```

mod judge;
mod sender;
mod stored;
#[cfg(test)]
mod tests;

pub use judge::{Judge, JudgeBuilder, MAX_ANSWER_BYTES, MAX_LISTED};
pub use sender::HttpSender;
pub(crate) use sender::key as written_key;
pub(crate) use stored::NOT_STORED;
pub use stored::StoredRequest;
