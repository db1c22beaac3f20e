//! Shuttle's atomics and locks, by the names of the standard library's.

pub(crate) use shuttle::sync::atomic::{AtomicU64, Ordering};
pub(crate) use shuttle::sync::{Mutex, MutexGuard};

pub(crate) use super::shard;
