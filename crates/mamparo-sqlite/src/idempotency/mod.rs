//! Idempotency keys in SQLite.

mod config;
mod sql;
mod store;
mod sweep;

pub use config::SqliteBuilder;
pub use sql::complete;
pub use store::SqliteIdempotency;

#[cfg(test)]
mod tests;
