//! `mamparo demo --metrics`: a shop that goes on, for Prometheus and the dashboard of `docs/operating`.
//!
//! It is well for a while. Then six dependencies, the engine, two outboxes and a queue come into troubles of their own, and each alert has
//! what sets it off.
//!
//! | who | what it is |
//! |---|---|
//! | [`shop`] | what calls the dependencies of `policies.toml`, twenty times a second each |
//! | [`cast`] | plain servers, and what each of them does in trouble |
//! | [`payments`] | an engine of the defer plane on SQLite, with three troubles |
//! | [`outbox`] | two outboxes on SQLite with their relays: of one the broker is down, of the other nobody takes an event |
//! | [`queue`] | a queue in a RabbitMQ, if there is one, with a message that nobody can handle |
//! | [`run`] | from well to trouble, until it is stopped |

mod cast;
mod outbox;
mod payments;
mod queue;
mod run;
mod shop;

pub(super) use run::live;
