//! The tests that every store of idempotency keys must pass.
//!
//! Each is an async function that panics with a sentence when the store is wrong; [`all`] runs them all. They use keys that
//! nobody else has, so that a store may hold others, and take a second or two of real time, since a store has a clock of its own.
//!
//! ```
//! use mamparo::idempotency::{MemoryStore, conformance};
//! use std::sync::Arc;
//!
//! # #[tokio::main] async fn main() {
//! conformance::all(&Arc::new(MemoryStore::new())).await;
//! # }
//! ```

mod answers;
mod fencing;
mod setup;
mod verbs;

pub use answers::{big_answers_come_back_whole, binary_answers_come_back_byte_for_byte};
pub use fencing::{
    a_lease_that_is_over_is_taken_only_where_that_is_asked_for, a_stale_runner_changes_nothing,
    of_many_begins_one_runs, stale_completions_and_takeovers_race_to_one_answer,
};
pub use setup::all;
pub use verbs::{
    a_key_that_is_past_its_retention_is_absent, begin_twice, complete_twice, find_changes_nothing,
    release_twice, renew_twice, sweeps_are_bounded, what_was_never_begun_is_lost,
};
