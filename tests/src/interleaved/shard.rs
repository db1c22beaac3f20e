//! Counters by thread, for shuttle's threads: few shards, since each look at one is a point where threads may switch.

#[expect(unreachable_pub, reason = "it is public in its own crate")]
#[path = "../../../crates/mamparo-core/src/shard/each.rs"]
mod each;
#[expect(unreachable_pub, reason = "it is public in its own crate")]
#[path = "../../../crates/mamparo-core/src/shard/tally.rs"]
mod tally;

pub(crate) use each::{Each, Line};
pub(crate) use tally::Tally;

pub(crate) const COUNT: usize = 3;

/// The shard of the running thread; more threads than there are shards share.
pub(crate) fn index() -> usize {
    usize::from(shuttle::current::me()) % COUNT
}
