//! The recommended stack around an HTTP client, in order, outermost first.
//!
//! The order is written once, in `order.rs`, a reason a line. It is one concrete type, in which every layer has an off
//! state; the two layers of telemetry are type parameters, so that nothing here names OpenTelemetry. To have another
//! order, put the layers together by hand in a `ServiceBuilder`.
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

mod describe;
mod handles;
mod order;
mod resends;
mod settings;
mod slot;

pub use describe::WorstCase;
pub use order::{Attempt, Operation, Ordered};
pub use resends::{Resends, ResendsFuture};
pub use settings::Stack;
pub use slot::FallbackSlot;

#[cfg(test)]
mod tests;
