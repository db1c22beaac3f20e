//! Shared state, compiled a second time over shuttle's atomics and locks, and run in many interleavings of its threads.
//!
//! A file of shared state names atomics and locks by `crate::sync` only. In its own crate that is the standard library;
//! here, where the file is read once more by its path, it is [`sync`] below. So what is tried out is the code that ships, and
//! nothing in it knows. To try out another: make its `use` lines go through `crate::sync`, and read it here as `budget.rs` does.
//! What it names at its crate's root besides is given there too, in `main.rs`.

#[expect(
    dead_code,
    unreachable_pub,
    reason = "what is public in its own crate, and used there"
)]
mod breaker;
#[expect(
    dead_code,
    unreachable_pub,
    reason = "what is public in its own crate, and used there"
)]
mod budget;
#[expect(
    dead_code,
    unreachable_pub,
    reason = "what is public in its own crate, and used there"
)]
mod bulkhead;
#[expect(
    dead_code,
    unreachable_pub,
    reason = "what is public in its own crate, and used there"
)]
mod load_shed;
#[expect(dead_code, reason = "what is used in its own crate")]
mod rate_limit;
pub(crate) mod shard;
pub(crate) mod sync;
mod try_out;
