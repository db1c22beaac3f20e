//! The defer plane's engine, as metrics and spans.
//!
//! A clone of the program's one [`Metrics`](crate::Metrics) hears the engine, and looks at what is stored every so often. What sends the
//! engine's requests is wrapped in [`Traced`]: a retry hours later is a trace of its own, and links the span that the transaction
//! [began in](traced).
//!
//! ```
//! use std::sync::Arc;
//!
//! use mamparo_core::BoxError;
//! use mamparo_core::clock::SystemClock;
//! use mamparo_durable::backend::Request;
//! use mamparo_durable::engine::{Engine, Transaction};
//! use mamparo_durable::machine::{Outcome, TransactionId};
//! use mamparo_durable::memory::Memory;
//! use mamparo_telemetry::Metrics;
//! use mamparo_telemetry::durable::{LOOK_EVERY, Traced, traced};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! let metrics = Metrics::new();
//! let engine = Engine::builder(Memory::new(SystemClock).backend())
//!     .listener(Arc::new(metrics.clone()))
//!     .build()?;
//! let looking = metrics.watch_engine(engine.clone(), LOOK_EVERY)?;
//!
//! let sender = tower::service_fn(|request: Request| async move {
//!     Ok::<_, BoxError>(Some(request.answer(Outcome::Success)))
//! });
//! let running = engine.run(Traced::new(sender));
//! let payment = Transaction::new(TransactionId::new("payment-1")?, "payment", "5 EUR");
//! engine.begin(traced(payment)).await?;
//!
//! running.stop().await?;
//! drop(looking);
//! # Ok(())
//! # }
//! ```

mod context;
mod counts;
mod looks;
mod outbox;
mod traced;

#[cfg(feature = "rabbitmq")]
pub(crate) use context::kept;
pub use context::{is_traceparent, traced, traceparent};
pub(crate) use counts::Counts;
pub use counts::MAX_KINDS;
pub(crate) use looks::Looks;
pub use looks::{EngineWatch, LOOK_EVERY};
pub use outbox::MAX_RELAYS;
pub(crate) use outbox::{Outboxes, Published};
pub use traced::{Traced, TracedFuture};

#[cfg(test)]
mod tests;
