//! Plain tower services for tests: some answer by script, some check who calls them.
//!
//! - [`Script`] answers call after call from a list of [`Step`]s and counts what runs
//! - [`Strict`] panics when it is called without being ready, and counts the ready slots that are held
//! - [`Door`] lets a test open, close or break the readiness of what stands behind it
//! - [`NeverReady`], [`ReadyAfter`] and [`FailsReadiness`] are readiness by rote
//! - [`Tracked`] is a request or response that tells when it was dropped
//!
//! All waits use tokio's clock, so they obey paused time.
//!
//! ```
//! use mamparo_testkit::service::{Script, Step, Strict, ready};
//! use tower_service::Service;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let script = Script::new([Step::error("down")]).otherwise(|| Step::answer(7));
//! let mut service = Strict::new(script.clone());
//!
//! ready(&mut service).await.unwrap();
//! assert!(service.call("first").await.is_err());
//! ready(&mut service).await.unwrap();
//! assert_eq!(service.call("second").await.unwrap(), 7);
//! assert_eq!(script.requests(), ["first", "second"]);
//! # }
//! ```

mod door;
mod readiness;
mod script;
mod step;
mod strict;
mod tally;
#[cfg(test)]
mod tests;
mod tracked;

pub use door::{Door, Doored};
pub use readiness::{FailsReadiness, NeverReady, ReadyAfter, ready};
pub use script::{Script, ScriptFuture};
pub use step::Step;
pub use strict::{Strict, StrictFuture};
pub use tracked::{Tracked, Watch};
