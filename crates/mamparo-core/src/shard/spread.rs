//! One value, held by many calls at once.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::{Each, Line};

/// A value that every call holds for its time, with a reference count for each shard.
///
/// A clone of an [`Arc`] writes to the count that all its clones share, and so do the calls of all threads. Here each
/// shard has a copy of the value behind a count of its own, made when its first thread asks for it. The value should
/// be settings, or counters behind an `Arc` of their own: copies don't see each other's changes.
///
/// ```
/// use mamparo_core::shard::Spread;
///
/// let settings = Spread::new(String::from("catalog"));
/// let held = settings.hold();
/// assert_eq!(*held, "catalog");
/// ```
pub struct Spread<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    value: T,
    copies: Each<Arc<Line<T>>>,
}

/// A shard's copy, held.
pub struct Held<T>(Arc<Line<T>>);

impl<T: Clone> Spread<T> {
    /// Spreads a value.
    #[must_use]
    pub fn new(value: T) -> Self {
        Self {
            shared: Arc::new(Shared {
                value,
                copies: Each::new(),
            }),
        }
    }

    /// Holds the value, by the count of the running thread's shard.
    #[must_use]
    #[inline]
    pub fn hold(&self) -> Held<T> {
        let copy = || Arc::new(Line(self.shared.value.clone()));
        Held(Arc::clone(self.shared.copies.own(copy)))
    }

    /// Changes the value, before it is shared: clones made so far keep the old one.
    pub fn change(&mut self, change: impl FnOnce(&mut T)) {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.copies = Each::new();
            return change(&mut shared.value);
        }
        let mut value = self.shared.value.clone();
        change(&mut value);
        *self = Self::new(value);
    }
}

impl<T> Clone for Spread<T> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<T> Deref for Spread<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.shared.value
    }
}

impl<T> Clone for Held<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Deref for Held<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0.0
    }
}

impl<T: fmt::Debug> fmt::Debug for Spread<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared.value.fmt(f)
    }
}

impl<T: fmt::Debug> fmt::Debug for Held<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_one_thread_hold_one_copy_and_those_of_another_thread_another() {
        let spread = Spread::new(7);
        let (one, two) = (spread.hold(), spread.hold());
        assert!(Arc::ptr_eq(&one.0, &two.0));
        let elsewhere = spread;
        let other = std::thread::spawn(move || elsewhere.hold()).join();
        assert!(!Arc::ptr_eq(&one.0, &other.unwrap().0));
    }

    #[test]
    fn what_is_held_outlives_what_it_was_held_from() {
        let held = Spread::new(String::from("kept")).hold();
        assert_eq!(*held, "kept");
    }

    #[test]
    fn a_change_is_seen_by_whoever_holds_it_afterwards() {
        let mut spread = Spread::new(1);
        let before = spread.hold();
        spread.change(|value| *value = 2);
        assert_eq!((*before, *spread.hold()), (1, 2));
    }
}
