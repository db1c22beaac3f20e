//! What a choreographed saga needs beside a consumer: events that leave exactly when their transaction commits, consumers that do
//! nothing twice, and a watch over sagas that wait for ever.
//!
//! | part | what it promises |
//! |---|---|
//! | [`Event`], put by the backend in the service's own transaction | an event for each commit, and none for a rollback |
//! | [`Relay`] | at least once to the broker, in order per key, confirmed before it is removed |
//! | the backend's inbox, `processed_once` | what comes twice is processed once |
//! | [`Watchdog`] | a saga that waits for too long is compensated |
//! | [`Reconciliation`] | what two services see differently is told |
//!
//! It is part of this crate, since the relay is one more thing that takes rows by lease and is supervised; nothing of it needs an engine.
//! The backends are `PostgresEvents` and `SqliteEvents` in their crates. Workers run under a [`Supervisor`](crate::supervise::Supervisor).
//!
//! # Order
//!
//! Events of one key leave in the order in which they were put, each after the one before it was confirmed. Two transactions that run
//! at once have no order; those that change the same saga should lock its row first. An event that can't be published holds up its own
//! key and no other.
//!
//! # What happens when something fails
//!
//! A broker that takes nothing is an outage: the relay is not ready, asks ever more slowly, up to every five seconds, and no event is
//! blamed. An event that is refused for good, or fails [`max_failures`](RelayBuilder::max_failures) times while others are confirmed, is
//! parked and told ([`EventParked`](crate::machine::AlertKind::EventParked)); [`EventStore::unpark`] gives it back.

mod compare;
mod config;
mod event;
mod publisher;
mod reconciliation;
mod relay;
mod rounds;
mod store;
#[cfg(test)]
mod tests;
mod watchdog;

pub use compare::{Discrepancy, Entry};
pub use config::RelayBuilder;
pub use event::{Event, EventBuilder, StoredEvent};
pub use publisher::{Published, Publisher};
pub use reconciliation::{Reconciliation, ReconciliationBuilder, Source};
pub use relay::Relay;
pub use store::{
    Backlog, ClaimId, Claimed, ClaimedEvent, EventStore, ParkedEvent, Seen, Settlement,
};
pub use watchdog::{Compensated, StuckSagas, Watchdog, WatchdogBuilder};
