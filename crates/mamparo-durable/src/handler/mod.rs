//! Carries messages through the machine: decide, write, do what follows, and read again where a write missed.
//!
//! [`Runner`] does that for one message. [`AnswerHandler`] (A) and [`FireHandler`] (B) are tower services around it, so that
//! concurrency caps, rate caps, deadlines and breakers are the layers of the call plane: put them around the handler, and
//! let what takes messages from the queue settle each by the [`Handled`] that comes back.
//! [`Reconciler`] finds what is stuck and sends it through the same runner.
//!
//! With an [`Outbox`](crate::backend::Outbox), a message's whole way is one transaction, its acknowledgement included.
//! Without one, store, scheduler and queue are asked one after the other; a crash in between is mended by the redelivery.
//!
//! ```
//! use mamparo_core::clock::SystemClock;
//! use mamparo_durable::backend::NewTransaction;
//! use mamparo_durable::handler::Runner;
//! use mamparo_durable::machine::{Answer, Input, Note, Outcome, Record, State, TransactionId};
//! use mamparo_durable::memory::Memory;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), mamparo_core::BoxError> {
//! let runner = Runner::builder(Memory::new(SystemClock).backend()).build();
//! let id = TransactionId::new("payment-1")?;
//! let record = Record::in_flight(runner.terms(id.clone(), "payment", None));
//! runner.begin(NewTransaction::new(record, "the request")?, None).await?;
//!
//! let refused = Input::Answer(Answer::new(1, 0, Outcome::Refused).with_reason("CANCELLED"));
//! assert_eq!(runner.run(&id, refused).await?.note, Note::Applied);
//! let record = runner.load(&id).await?.ok_or("it is stored")?;
//! assert_eq!(record.progress.state, State::Scheduled);
//! # Ok(())
//! # }
//! ```

mod answers;
mod begin;
mod fires;
mod gate;
mod listener;
mod plan;
mod reconciler;
mod runner;
mod settings;
#[cfg(test)]
mod tests;

pub use answers::AnswerHandler;
pub use fires::FireHandler;
pub use gate::Gatekeeper;
pub use listener::{Listener, Listeners};
pub use plan::{Plan, plan};
pub use reconciler::{Cycle, Reconciler, ReconcilerBuilder};
pub use runner::{Handled, MAX_MISSES, Runner, Settlement};
pub use settings::RunnerBuilder;
