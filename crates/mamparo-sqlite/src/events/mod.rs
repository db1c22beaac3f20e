//! Events in SQLite: put in a service's own transaction, taken by a relay; a consumer's inbox; stuck sagas.
//!
//! - [`file`](SqliteEvents) is the file, and what a service asks of it;
//! - [`schema`] is what is in it;
//! - [`claim`] takes events and stores what became of them, on the thread that writes; [`store`] is the relay's view of that;
//! - [`inbox`] knows what was processed;
//! - [`sagas`] compensates what is stuck, for a watchdog.

mod claim;
mod file;
mod inbox;
mod sagas;
mod schema;
mod store;
#[cfg(test)]
mod tests;

pub use file::{SqliteEvents, SqliteEventsBuilder};
