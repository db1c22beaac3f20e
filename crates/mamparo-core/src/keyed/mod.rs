//! State that a layer keeps for each key of its requests: an authority, a tenant, a caller.
//!
//! Whoever sends requests chooses their keys, so the number of keys that are kept is bounded: past it, the key that was
//! used the longest ago gives way. Whoever makes a key's state sees what gave way for it, and may carry over from it what
//! must not be forgotten.
//!
//! - `table.rs`: the keys, in shards, each behind a lock of its own;
//! - `recent.rs`: one shard's values, in the order of their last use.

mod recent;
mod table;

pub use table::Keyed;
