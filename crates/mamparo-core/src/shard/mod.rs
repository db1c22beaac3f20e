//! What many threads use at once without writing to one cache line.
//!
//! A cache line that two processors write to is carried back and forth between them at every write, which costs more
//! than a whole layer does. So whatever each call counts goes to a shard of its thread, in a [`Tally`], and what each
//! call must own is held through a shard's own reference count, in a [`Spread`]. Both are [`Each`] a value for each shard,
//! made by the first thread that asks, since most of many dependencies are called by few threads.

mod each;
mod spread;
mod tally;
mod thread;

pub use each::{Each, Line};
pub use spread::{Held, Spread};
pub use tally::Tally;
pub use thread::{COUNT, index};

#[cfg(test)]
mod tests;
