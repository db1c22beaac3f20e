//! The recommended stack around an HTTP client, in order, outermost first.
//!
//! The order is written once, in `order.rs`, a reason a line. To have another, put the layers together by hand in a
//! `ServiceBuilder`. A stack says what it does when it is printed, with what an operation may cost at worst; see also
//! [`Stack::worst_case`].
//!
//! # Layers that are off
//!
//! A stack is one concrete type, whichever of its layers are on, so that settings that are read at run time need no
//! type of their own. A layer is off by its policy: `BreakerPolicy::off()` and the like. Its service then takes a
//! branch in `call` and holds nothing; the answer passes through the place where its guard would be. The other way,
//! an enum of the plain service and the layered one around each, would compile all that is further in twice for every
//! layer, and would need an enum of bodies besides.
//!
//! What can't be chosen at run time is a type parameter: the two layers of telemetry, so that nothing here names
//! OpenTelemetry, and the fallback, since what it answers with is code.
//!
//! # Who owns the resends
//!
//! A retry, or a hedge in its place: one of them, never both. Each attempt then meets the breaker that observes
//! attempts, the rate limit and the attempt's timeout; what these refuse is never sent again.
//!
//! ```
//! use http::{Request, Response};
//! use mamparo::deadline::DeadlinePolicy;
//! use mamparo::retry::RetryPolicy;
//! use mamparo::stack::Stack;
//! use std::time::Duration;
//! use tower::{ServiceBuilder, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), mamparo_core::BoxError> {
//! let stack = Stack::http("catalog")
//!     .deadline(DeadlinePolicy::within(Duration::from_secs(2))?)
//!     .retry(RetryPolicy::builder().max_attempts(3).build()?);
//! assert_eq!(stack.worst_case().time, Some(Duration::from_secs(2)));
//! let catalog = ServiceBuilder::new()
//!     .layer(stack)
//!     .service_fn(async |request: Request<mamparo::replay::ReplayBody<String>>| {
//!         let told = request.headers()["x-request-timeout-ms"].to_str().unwrap_or_default();
//!         Ok::<_, std::io::Error>(Response::new(told.to_owned()))
//!     });
//! let answer = catalog.oneshot(Request::get("/book/1").body(String::new())?).await?;
//! assert_eq!(answer.status(), 200);
//! # Ok(())
//! # }
//! ```

mod current;
mod describe;
mod handles;
mod order;
mod protocol;
mod resends;
mod settings;
mod slot;
mod updates;

pub use current::{Current, Recipe};
pub use describe::WorstCase;
pub use order::{Attempt, Operation, Order, Ordered};
pub use protocol::Protocol;
pub use resends::{Resends, ResendsFuture};
pub use settings::Stack;
pub use slot::FallbackSlot;
pub use updates::Updates;

#[cfg(test)]
mod tests;
