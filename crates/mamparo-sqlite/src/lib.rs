//! What mamparo keeps in SQLite: the defer plane's transactions, schedules and queues, a service's events, and the idempotency
//! keys of a server.
//!
//! [`SqliteDurable`] is a backend of [`mamparo_durable`]: everything in one file, a handler's whole step in one transaction.
//!
//! [`SqliteEvents`] keeps events and a consumer's inbox in the file that a service's own tables are in, for the
//! [relay and watchdog](mamparo_durable::events) of its sagas.
//!
//! [`SqliteIdempotency`] is a store for [`IdempotencyLayer`](mamparo::idempotency::IdempotencyLayer), in a file of its own or, better,
//! in the one that the handlers write to: then [`complete`] completes a key in the handler's own transaction.
//!
//! One thread writes, and commits what has come in together: one synced write serves all who wait. Others read. The file is in
//! WAL mode with `synchronous=FULL`: what was answered survives a power cut. Several processes of one machine may share a file.
//!
//! ```
//! use bytes::Bytes;
//! use http::Response;
//! use mamparo::idempotency::{IdempotencyLayer, IdempotencyPolicy, IdempotencyTx, OnExpiry};
//! use mamparo_sqlite::{SqliteIdempotency, TransactionError, complete};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), mamparo_core::BoxError> {
//! # let folder = tempfile::tempdir()?;
//! # let file = folder.path().join("payments.db");
//! let store = SqliteIdempotency::open(&file)?;
//! let policy = IdempotencyPolicy::for_all_callers().on_expiry(OnExpiry::RunAgain).build()?;
//! let layer = IdempotencyLayer::new(store.clone(), policy);
//! # let _ = layer;
//!
//! // In a handler: the charge and the key's answer, both or neither.
//! async fn charge(store: &SqliteIdempotency, key: IdempotencyTx, cents: i64) -> Result<Response<Bytes>, TransactionError> {
//!     store
//!         .transaction(move |tx| {
//!             tx.execute("INSERT INTO charges (cents) VALUES (?1)", [cents])?;
//!             let answer = Response::new(Bytes::from(format!("charged {cents}")));
//!             complete(tx, &key, &answer)?;
//!             Ok(answer)
//!         })
//!         .await
//! }
//! # let _ = charge;
//! # Ok(())
//! # }
//! ```

mod database;
mod durable;
mod events;
mod idempotency;

pub use database::TransactionError;
pub use durable::{SqliteDurable, SqliteDurableBuilder};
pub use events::{SqliteEvents, SqliteEventsBuilder};
pub use idempotency::{SqliteBuilder, SqliteIdempotency, complete};
pub use rusqlite;
