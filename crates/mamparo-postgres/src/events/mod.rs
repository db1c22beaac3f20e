//! Events in PostgreSQL: put in a service's own transaction, taken by a relay; a consumer's inbox; stuck sagas.
//!
//! - [`handle`](PostgresEvents) is what a service asks;
//! - `sql` is what is asked of the tables, each in one statement, and `row` what comes back;
//! - `store` is the relay's view;
//! - `sagas` compensates what is stuck, for a watchdog.
//!
//! The database's clock says which lease is over, whatever the relays' clocks say.

mod config;
mod handle;
mod row;
mod sagas;
mod sql;
mod store;
#[cfg(test)]
mod tests;

pub use config::PostgresEventsBuilder;
pub use handle::PostgresEvents;
#[cfg(test)]
pub(crate) use sql::STATEMENTS;
