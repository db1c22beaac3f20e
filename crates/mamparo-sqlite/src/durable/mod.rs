//! The defer plane's durable parts in one SQLite file: transactions and their history, schedules, queues, and whole steps.
//!
//! - [`file`](SqliteDurable) is the file and what all parts share; [`config`](SqliteDurableBuilder) says how it is used;
//! - [`schema`] is what is in it;
//! - [`step`] does a handler's whole step, and [`row`] its transitions, each on its condition;
//! - [`message`] and [`letters`] are the messages, and the schedules among them;
//! - [`wake`] knows when a queue has something next, so that nothing polls;
//! - [`queries`] is what people and the reconciler ask; [`postpone`] moves what waits for one dependency;
//! - [`forget`] removes what ended long ago;
//! - [`limits`] keeps the rate of all engines on the file;
//! - [`backup`] copies the file while it is in use;
//! - [`store`], [`scheduler`], [`queue`] and [`outbox`] are the traits, on top of these.

mod backup;
mod config;
mod error;
mod file;
mod forget;
mod letters;
mod limits;
mod message;
mod outbox;
mod postpone;
mod queries;
mod queue;
mod row;
mod scheduler;
mod schema;
mod step;
mod store;
#[cfg(test)]
mod tests;
mod wake;

pub use config::SqliteDurableBuilder;
pub(crate) use error::Failed;
pub use file::SqliteDurable;
