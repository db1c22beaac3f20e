//! What went wrong with a request, as its caller is told it: Problem Details (RFC 9457).
//!
//! A handler returns `Result<_, Problem>`, and `?` turns any error of a call into one: nothing that a dependency did stays
//! anonymous, and nothing of the inside is told.
//!
//! | error | status | type |
//! |---|---|---|
//! | a dependency timed out, can't be reached, or was not asked | 503, `Retry-After` | `dependency-unavailable` |
//! | a dependency answered 429 or 503 ([`Problem::check`]) | 503, its `Retry-After` | `dependency-unavailable` |
//! | a dependency failed otherwise | 502 | `dependency-failed` |
//! | this server's own deadline passed | 504 | `about:blank` |
//! | this server's own limit is used up | 429, `Retry-After` | `quota-exceeded` |
//! | this server has no place, or sheds its load | 503, `Retry-After` | `temporary-reduced-capacity` |
//! | anything else | 500 | `about:blank` |
//!
//! - The member `dependency` names the dependency, by the name of its policy.
//! - `Retry-After` is the breaker's wait or what the dependency asked for, and 1 s where nobody knows; always lengthened by a
//!   random share, so that those who are told at once don't come back at once.
//! - The cause is kept for the log: [`RejectionLayer`](crate::rejection::RejectionLayer) reports it, and tells the caller with
//!   `x-mamparo-retry: exhausted` if all attempts were spent here.
//! - With feature `axum`, a `Problem` is axum's `IntoResponse`.
//!
//! The types of their own are [`ProblemType`]'s constants; those of draft-ietf-httpapi-ratelimit-headers-10 §6 where one fits,
//! and these.
//!
//! # dependency-unavailable
//!
//! Status 503. A service behind this one did not answer in time, can't be reached, or said "not now"; or it is not asked any more
//! until it has recovered. The request may have reached it. `dependency` names it. Come back after `Retry-After`.
//!
//! # dependency-failed
//!
//! Status 502. A service behind this one answered with an error, or broke off. `dependency` names it. The same request may succeed
//! later; nobody knows when.
//!
//! # not-ready
//!
//! Status 503. The service is starting and waits for what it depends on, or is stopping: `waiting-for` lists the names of what is not
//! there yet. Ask another instance.
//!
//! # Example
//!
//! ```
//! use http::StatusCode;
//! use mamparo::problem::{Problem, ProblemType};
//! use std::time::Duration;
//!
//! let problem = Problem::new(ProblemType::DEPENDENCY_UNAVAILABLE)
//!     .with_dependency("psp")
//!     .with_retry_after(Duration::from_secs(2))
//!     .because("connection refused by 10.0.0.7"); // for the log alone
//! let response = problem.into_response();
//! assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
//! assert_eq!(response.headers()["content-type"], "application/problem+json");
//! assert!(response.body().contains(r#""dependency":"psp""#) && !response.body().contains("10.0.0.7"));
//! ```

mod answer;
mod json;
mod kind;
mod model;
mod tell;

pub use answer::RETRY_AFTER_JITTER;
pub(crate) use answer::{Noted, spread};
pub use json::Member;
pub use kind::ProblemType;
pub use model::{MAX_MEMBERS, Problem};
pub(crate) use tell::{is_exhausted, tell};

#[cfg(test)]
mod tests;
