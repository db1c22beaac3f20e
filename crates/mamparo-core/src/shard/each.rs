//! A value for each shard.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{Ordering::SeqCst, fence};

use super::{COUNT, index};

/// A value for each shard, made when its first thread asks for it: what nobody uses takes a few bytes.
///
/// ```
/// use mamparo_core::shard::Each;
///
/// let names = Each::new();
/// assert_eq!(names.own(|| String::from("made")), "made");
/// assert_eq!(names.own(|| String::from("made before")), "made");
/// assert_eq!(names.made().count(), 1);
/// ```
pub struct Each<T> {
    values: OnceLock<Box<[OnceLock<T>; COUNT]>>,
}

/// A value on cache lines of its own: two counts on one line would be as slow as one.
///
/// 128 bytes: the cache line of some processors, and the pair that the others fetch at once.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Line<T>(pub T);

impl<T> Each<T> {
    /// Begins with none.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            values: OnceLock::new(),
        }
    }

    /// Returns the value of the running thread's shard.
    #[inline]
    pub fn own(&self, make: impl FnOnce() -> T) -> &T {
        let values = self.values.get_or_init(none);
        values[index()].get_or_init(make)
    }

    /// Returns the values that were made.
    ///
    /// Of two threads that each write to theirs and then look here, one at least finds the other's.
    pub fn made(&self) -> impl Iterator<Item = &T> {
        // A value is made by a store, and looked for by a load: without it both might come too early.
        fence(SeqCst);
        let values = self.values.get().into_iter();
        values.flat_map(|values| values.iter().filter_map(OnceLock::get))
    }
}

#[cold]
fn none<T>() -> Box<[OnceLock<T>; COUNT]> {
    Box::new([const { OnceLock::new() }; COUNT])
}

impl<T> Default for Each<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for Each<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.made()).finish()
    }
}
