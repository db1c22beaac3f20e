//! One SQLite file: who writes to it, who reads from it, and what is in it.
//!
//! - [`open`] sets a connection up, and brings the schema up to date;
//! - [`writer`] is the one thread that writes, and commits what has come in together;
//! - [`readers`] are the threads that read;
//! - [`checkpoint`] moves what was committed from the log into the file;
//! - [`error`] says what went wrong, in the words of stores.

mod checkpoint;
mod error;
mod open;
mod readers;
mod schema;
mod writer;

pub use error::TransactionError;
pub(crate) use error::store_error;
pub(crate) use open::{Database, Settings};
pub(crate) use schema::Part;

#[cfg(test)]
mod tests;
