//! A lock that a panicking test does not poison.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, whether or not some holder panicked: the state is counts and lists, valid at every step.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
