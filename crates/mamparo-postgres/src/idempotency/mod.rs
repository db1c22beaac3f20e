//! Idempotency keys in PostgreSQL.
//!
//! Each verb of the store is one statement. The database's clock says which lease is over, whatever the servers' clocks say.

mod error;
mod sql;
mod store;
#[cfg(test)]
mod tests;

pub use error::TransactionError;
#[cfg(test)]
pub(crate) use sql::STATEMENTS;
pub use store::PostgresIdempotency;
