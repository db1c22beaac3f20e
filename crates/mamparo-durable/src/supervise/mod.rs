//! Runs what must go on for ever, and sees to it that nothing dies in silence.
//!
//! A [`Worker`] is a loop: a relay, a watchdog, a reconciliation, or one of yours. The [`Supervisor`] runs any number of them,
//! each in a task of its own:
//!
//! - one that dies is told ([`TaskDied`](crate::machine::AlertKind::TaskDied)), makes readiness false and is started again after a wait;
//! - one that dies again and again, never a minute after its last start, ends all of them, and [`Supervised::ended`] says so, for the
//!   process to end too;
//! - one that works but can't reach what it needs says so by its [`Watch`]: readiness is false until it can.
//!
//! ```
//! use mamparo_durable::backend::{BackendError, BoxFuture};
//! use mamparo_durable::supervise::{Supervisor, Watch, Worker};
//! use std::time::Duration;
//!
//! #[derive(Debug)]
//! struct Tick;
//!
//! impl Worker for Tick {
//!     fn name(&self) -> &str {
//!         "tick"
//!     }
//!
//!     fn run(&self, watch: Watch) -> BoxFuture<'_, Result<(), BackendError>> {
//!         Box::pin(async move {
//!             while !watch.is_stopped() {
//!                 watch.pause(Duration::from_secs(1)).await;
//!             }
//!             Ok(())
//!         })
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), mamparo_durable::supervise::WorkerDied> {
//! let running = Supervisor::new().worker(Tick).run();
//! assert!(running.is_ready());
//! running.stop().await?;
//! # Ok(())
//! # }
//! ```

mod restart;
mod running;
mod supervisor;
#[cfg(test)]
mod tests;
mod together;
mod worker;

pub(crate) use restart::{Backoff, Make, Restarted, about, is_stopped, stopped, until_stop};
pub use running::{Supervised, WorkerDied};
pub use supervisor::Supervisor;
pub(crate) use together::Together;
pub use worker::{Watch, Worker};
