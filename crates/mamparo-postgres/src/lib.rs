//! What mamparo keeps in PostgreSQL, in the tables of one schema: durable deferred retry, events, and the idempotency
//! keys of servers.
//!
//! [`PostgresIdempotency`] keeps keys for [`IdempotencyLayer`](mamparo::idempotency::IdempotencyLayer), and completes one in a
//! handler's own transaction. [`Postgres`] is the backend of [`mamparo_durable`]: store, scheduler, queues and outbox.
//! [`PostgresEvents`] keeps events and a consumer's inbox beside a service's own tables, for the
//! [relay and watchdog](mamparo_durable::events) of its sagas.
//! [`Settings`] say where the server is, and bound what is asked of it.
//!
//! Any number of engines share the tables: a message is claimed by its row's state (`FOR UPDATE SKIP LOCKED`) and a lease,
//! every transition is conditional, and what is written together is one transaction.
//!
//! | module | what it is for |
//! |---|---|
//! | `schema` | makes the tables, brings them up to date, refuses a stranger's |
//! | `database` | lends connections, each call bounded, and says what an error means |
//! | `write` | gathers what comes together into one commit |
//! | `read` | gathers reads; what people and the reconciler ask |
//! | `wake` | wakes who waits: notifications, due instants, a poll |
//! | `forget` | removes what ended long ago |
//! | `idempotency` | the store of keys |
//! | `events` | outbox, inbox, and what relays and watchdogs do with them |
//! | `store`, `scheduler`, `queue`, `outbox`, `limits` | the traits, in terms of those |

mod database;
mod events;
mod forget;
mod idempotency;
mod limits;
mod outbox;
mod postgres;
mod queue;
mod read;
mod scheduler;
mod schema;
mod settings;
mod store;
mod tasks;
#[cfg(test)]
mod tests;
mod wake;
mod write;

pub use events::{PostgresEvents, PostgresEventsBuilder};
pub use idempotency::{PostgresIdempotency, TransactionError};
pub use postgres::Postgres;
pub use settings::{Settings, SettingsBuilder};
pub use sqlx;
