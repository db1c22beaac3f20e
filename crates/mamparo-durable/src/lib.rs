//! Durable deferred retry: when a dependency says "not now", the wait becomes a row instead of a sleeping task.
//!
//! Later may be hours. A task that sleeps so long costs memory, dies with its process and can't be audited; a row that says
//! *retry attempt n+1 at instant T* does none of that. Three questions have three owners that don't know each other:
//! **when** (the scheduler), **is it still wanted** (the state store), **exactly once** (conditional transitions).
//!
//! | module | what it is for |
//! |---|---|
//! | [`machine`] | decides, and does nothing else: no I/O, no clock, no random numbers |
//! | [`policy`] | how long a wait is, and when enough is enough |
//! | [`backend`] | the traits of what stores, schedules and queues |
//! | [`memory`] | the backend that forgets, for tests and examples |
//! | `conformance` | with the feature of that name: the suite that every backend runs |
//! | `fail_point` | with the feature `fail_points`: where tests have the process die |
//! | [`handler`] | carries messages through the machine: handlers A and B as tower services, the reconciler |
//! | [`web`] | requests of HTTP as transactions |
//! | [`defer`] | a layer around an HTTP client: "not now" becomes a transaction |
//! | [`engine`] | runs all of that as supervised tasks, and is what a service talks to |
//! | [`events`] | what a choreographed saga needs beside a consumer: outbox relay, watchdog, reconciliation |
//! | [`supervise`] | runs what must go on for ever, and starts it again when it dies |

pub mod backend;
#[cfg(feature = "conformance")]
#[expect(
    clippy::missing_panics_doc,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a suite of tests fails by panicking"
)]
pub mod conformance;
pub mod defer;
pub mod engine;
pub mod events;
#[cfg(feature = "fail_points")]
pub mod fail_point;
#[cfg(not(feature = "fail_points"))]
#[expect(unreachable_pub, reason = "it is public with the feature")]
mod fail_point;
pub mod handler;
pub mod limits;
pub mod machine;
pub mod memory;
pub mod policy;
pub mod supervise;
pub mod web;
