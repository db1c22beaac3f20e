//! What shared state is built of.
//!
//! Files that name atomics and locks through this module only are compiled a second time, in the workspace's tests,
//! over shuttle's versions of the same names, which try out how threads may interleave.

pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
pub(crate) use std::sync::{Mutex, MutexGuard};

pub(crate) use mamparo_core::shard;
