//! Gives an operation that failed another answer: a value, what a closure makes, or what another service says.
//!
//! An old price or an empty list of recommendations may be better than an error; whether it is, only the caller's
//! business can say. So this layer is opt-in, and never hides that it was at work:
//!
//! - it falls back from the failures that its policy names: by default, when the dependency can't be reached, does not
//!   answer in time or is unavailable, and when a layer of ours rejected the call. Never from a request that is at fault
//!   itself, and never for a caller that went away;
//! - an answer of the fallback is marked: with [`FellBack`] in the extensions, with a header if the policy says so, and
//!   with an [event](mamparo_core::What::FellBack) that telemetry puts on the span;
//! - when the fallback fails too, the dependency's own response goes to the caller, marked with [`FallbackFailed`]; or
//!   a [`FallbackError`] that carries both causes;
//! - the operation's deadline holds: after it, nothing is asked, and nested calls see what remains;
//! - how many fallbacks run at once can be capped: what stands in for a dependency gets its load all at once.
//!
//! # States
//!
//! - *calling*: the dependency is asked;
//! - *falling back*: it failed; its future is dropped, its response is kept should the fallback fail.
//!
//! # When not
//!
//! Not where a wrong answer costs more than none: a payment that failed has failed. Nor for what is rarely used and hardly
//! tested, since it will be used for the first time when everything else fails.
//!
//! ```
//! use mamparo::fallback::{self, FallbackLayer, FallbackPolicy, FellBack};
//! use mamparo_core::{BoxError, Kind};
//! use http::{Request, Response, StatusCode};
//! use tower::{ServiceBuilder, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! let none = fallback::from_fn(|_| Ok::<_, BoxError>(Response::new("[]".to_owned())));
//! let service = ServiceBuilder::new()
//!     .layer(FallbackLayer::http(FallbackPolicy::default(), none))
//!     .service_fn(async |_: Request<String>| {
//!         let mut down = Response::new(String::new());
//!         *down.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
//!         Ok::<_, BoxError>(down)
//!     });
//! let answer = service.oneshot(Request::new(String::new())).await?;
//! assert_eq!(answer.status(), StatusCode::OK);
//! assert_eq!(FellBack::of(&answer).unwrap().failed().kind(), Some(Kind::Unavailable));
//! # Ok(())
//! # }
//! ```

mod body;
mod config;
mod error;
mod future;
mod layer;
mod places;
mod serve;
mod service;
mod state;
mod substitute;

pub use body::FallbackBody;
pub use config::{FallbackBuilder, FallbackPolicy};
pub use error::{Failed, FallbackError, FallbackFailed, FellBack};
pub use future::FallbackFuture;
pub use layer::FallbackLayer;
pub use places::Place;
pub use serve::{Mark, Serve};
pub use service::Fallback;
pub use substitute::{
    FromAsyncFn, FromFn, FromService, Substitute, Value, from_async_fn, from_fn, service, value,
};

#[cfg(test)]
mod tests;
