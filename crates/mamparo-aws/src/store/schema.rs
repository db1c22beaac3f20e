//! The tables: their keys, their index, and what the attributes are called.
//!
//! `{prefix}-transactions` has one item per transaction, one for its request and one per row of history, all under its id:
//!
//! | `part` | what it is |
//! |---|---|
//! | `record` | the transaction; the only part that is in the index |
//! | `request` | what every attempt sends, apart so that a transition does not pay for its size |
//! | `history#…` | a row of history, sorted as the transaction went |
//!
//! The index `by_state` finds transactions by where they stand: `place` is the state and one of [`SHARDS`], so that no partition
//! of the index takes all writes, and `since` is `next_fire_at` in SCHEDULED and `updated_at` in every other state.
//!
//! `{prefix}-outbox` has what committed steps want done and nobody has confirmed yet.

use mamparo_core::fnv;
use mamparo_durable::machine::{State, TransactionId};

/// The key of `{prefix}-transactions`: both are strings.
pub(crate) const ID: &str = "id";
pub(crate) const PART: &str = "part";

/// Its index, by a string and a number, with what else is projected into it.
pub(crate) const BY_STATE: &str = "by_state";
pub(crate) const PLACE: &str = "place";
pub(crate) const SINCE: &str = "since";
pub(crate) const PROJECTED: [&str; 6] = [
    ATTEMPT_CURRENT,
    CREATED_AT,
    DEPENDENCY,
    KIND,
    NEXT_FIRE_AT,
    UPDATED_AT,
];

/// When the service itself removes an item, in seconds since 1970.
pub(crate) const EXPIRES_AT: &str = "expires_at";

/// The key of `{prefix}-outbox`: both are strings.
pub(crate) const SLOT: &str = "slot";
pub(crate) const SERIAL: &str = "serial";

/// As many partitions has each state in the index, and the outbox.
pub(crate) const SHARDS: u64 = 8;

pub(super) const ATTEMPT_CURRENT: &str = "attempt_current";
pub(super) const CREATED_AT: &str = "created_at";
pub(super) const DEPENDENCY: &str = "dependency";
pub(super) const KIND: &str = "kind";
pub(super) const NEXT_FIRE_AT: &str = "next_fire_at";
pub(super) const UPDATED_AT: &str = "updated_at";

/// The parts of a transaction.
pub(super) const RECORD: &str = "record";
pub(super) const REQUEST: &str = "request";
pub(super) const HISTORY: &str = "history#";

/// The shard of an id.
pub(crate) fn shard(id: &TransactionId) -> u64 {
    fnv::hash(id.as_str().as_bytes()) % SHARDS
}

/// Where a transaction of that state and shard is in the index.
pub(super) fn place(state: State, shard: u64) -> String {
    format!("{state}#{shard}")
}
