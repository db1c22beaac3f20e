//! Runs handlers, sender, reconciler and mover as supervised tasks, and is what a service talks to.
//!
//! [`Engine`] is the plain API: [`begin`](Engine::begin) a transaction, tell it an [`answer`](Engine::answer),
//! [`resolve`](Engine::resolve), [`cancel`](Engine::cancel), [`move_to`](Engine::move_to) or [`fire_now`](Engine::fire_now) it, and ask for
//! the [`status`](Engine::status). It needs no task: a command line or a web handler may use it beside a process that runs one.
//!
//! [`Engine::run`] starts the tasks, with a tower service that sends requests:
//!
//! | task | what it does |
//! |---|---|
//! | answers | takes answers, handler A |
//! | fires | takes what is due, asks the breaker, handler B, at a rate if one is set |
//! | requests | sends what was claimed, at the same rate, and handles the answer in the transaction that acknowledges the request |
//! | reconciler | brings what is stuck back on its way, every [`reconcile_every`](EngineBuilder::reconcile_every) |
//! | mover | moves all that is due soon to a dependency whose breaker is open, so that each need not fire to be postponed |
//!
//! The scheduler is the backend's own: whoever takes from the queue of fires takes what has become due.
//!
//! # What happens when something fails
//!
//! A backend that does not answer is asked again, ever more slowly, up to every five seconds; meanwhile the engine is not
//! [ready](Engine::is_ready). A task that dies is told ([`TaskDied`](crate::machine::AlertKind::TaskDied)) and started again
//! after a wait; one that dies more often than [`max_restarts`](EngineBuilder::max_restarts) times, never a minute after its
//! start, ends the engine with an [`EngineError`], for the process to end too: nothing dies in silence. A handler that panics
//! loses its message's turn, not the task.
//!
//! # How it stops
//!
//! [`Running::stop`] takes nothing more, gives back what waits for its turn, lets what has begun go on, and
//! then gives that back too, all within [`drain`](EngineBuilder::drain) (5 s). What is given back is delivered again, under the same
//! idempotency key: a stop spends neither an attempt nor a delivery.
//!
//! ```
//! use mamparo_core::{BoxError, clock::SystemClock};
//! use mamparo_durable::backend::Request;
//! use mamparo_durable::engine::{Engine, Transaction};
//! use mamparo_durable::machine::{Outcome, State, TransactionId};
//! use mamparo_durable::memory::Memory;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! let engine = Engine::builder(Memory::new(SystemClock).backend()).build()?;
//! let provider = tower::service_fn(async |request: Request| {
//!     println!("{} to the provider", request.key());
//!     Ok::<_, BoxError>(Some(request.answer(Outcome::Success)))
//! });
//! let running = engine.run(provider);
//!
//! let id = TransactionId::new("payment-1")?;
//! engine.begin(Transaction::new(id.clone(), "payment", "5 EUR")).await?;
//! # let mut state = State::Sending;
//! # while !state.is_terminal() {
//! #     tokio::time::sleep(std::time::Duration::from_millis(1)).await;
//! #     state = engine.load(&id).await?.ok_or("stored")?.progress.state;
//! # }
//! assert_eq!(engine.load(&id).await?.ok_or("stored")?.progress.state, State::Succeeded);
//! running.stop().await?;
//! # Ok(())
//! # }
//! ```

mod api;
mod config;
mod hands;
mod health;
mod mover;
mod pump;
mod rounds;
mod running;
mod sender;
mod status;
mod sweeper;
mod tasks;
#[cfg(test)]
mod tests;
mod transaction;
mod turns;

pub use api::Engine;
pub use config::EngineBuilder;
pub use health::Task;
pub use running::{EngineError, Running};
pub use sender::RequestHandler;
pub(crate) use sender::said;
pub use status::Status;
pub use transaction::Transaction;
