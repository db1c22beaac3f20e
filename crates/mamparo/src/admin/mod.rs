//! A window on the policies of a program, over HTTP: what is the breaker's state, and why? An axum router.
//!
//! | request | answer |
//! |---|---|
//! | `GET /`, `GET /dependencies` | the [snapshot](crate::policy::snapshot) of all dependencies, as JSON |
//! | `GET /dependencies/{name}` | that of one |
//! | `GET /dependencies/{name}/policy` | its policy in words; with `Accept: application/json` each setting, its value and origin |
//! | `GET /events` | server-sent events: a snapshot at once and now and then, and each change as it happens |
//! | `GET /health/ready` | 200, or 503 while nothing can be sent to one of the [chosen](Admin::ready) dependencies |
//! | `POST /dependencies/{name}/breaker/{action}` | `force-open`, `close` or `reset`; only with [`Admin::actions`] |
//!
//! It only reads, unless [actions](Admin::actions) are switched on with a token. Errors are `application/problem+json`
//! (RFC 9457). What it tells is for those who operate the program: serve it where only they come, on a port of its own or
//! behind a layer that asks who they are. What a URL has beside its place (a user, a password, a query) is never shown.
//!
//! # Events
//!
//! `snapshot` has the whole snapshot; `breaker` one change of a breaker's state; `reload` says that policies were loaded
//! again, or refused; `lost` how many events a reader has missed who was slow. While nobody reads, nothing is done. There are at most
//! so many [streams](Admin::max_streams) at once, each with at most so many [events](Admin::max_events) that were not read.
//!
//! # Actions
//!
//! The token is sent as `Authorization: Bearer TOKEN` (RFC 6750), and compared in constant time. Ten wrong ones from one address
//! (one network of addresses, for IPv6), and that address is refused for a while, whatever it sends. Addresses are told apart where axum
//! knows them, which needs `into_make_service_with_connect_info::<SocketAddr>()`; else they count together.
//!
//! `force-open` keeps the breaker open until `close` or `reset`; `close` closes one that is not closed, and `reset` any, and
//! both forget what it has counted. Every action, refused ones too, is reported to the [observer](Admin::observer).
//!
//! ```
//! use http::{Request, StatusCode};
//! use mamparo::admin::Admin;
//! use mamparo::policy::{Format, Policies};
//! use tower::ServiceExt;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let document = "[dependency.catalog]\ndeadline = \"2s\"\n";
//! let policies = Policies::loader().text("policies.toml", document, Format::Toml).load()?;
//! let router = Admin::new(&policies).ready(["catalog"]).router()?;
//!
//! let request = Request::get("/health/ready").body(axum::body::Body::empty())?;
//! assert_eq!(router.clone().oneshot(request).await?.status(), StatusCode::OK);
//!
//! policies.dependency("catalog")?.http()?.breaker_handle().unwrap().force_open();
//! let request = Request::get("/health/ready").body(axum::body::Body::empty())?;
//! assert_eq!(router.oneshot(request).await?.status(), StatusCode::SERVICE_UNAVAILABLE);
//! # Ok(())
//! # }
//! ```

mod act;
mod answer;
mod config;
mod feed;
mod followed;
mod guard;
mod hidden;
mod peer;
mod read;
mod ready;
mod router;
mod stream;
mod token;

pub use config::Admin;
pub use token::{MAX_TOKEN, MIN_TOKEN};

#[cfg(test)]
mod tests;
