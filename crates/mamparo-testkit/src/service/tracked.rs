//! A value that tells when it was dropped.

use crate::sync::lock;
use mamparo_core::clock::{self, Instant};
use std::sync::{Arc, Mutex};

/// A request or response that tells its [`Watch`] when it is dropped.
///
/// ```
/// use mamparo_testkit::service::Tracked;
/// let (response, watch) = Tracked::new(503);
/// assert_eq!((response.value, watch.is_dropped()), (503, false));
/// drop(response);
/// assert!(watch.is_dropped());
/// ```
#[derive(Debug)]
pub struct Tracked<T> {
    /// The value itself.
    pub value: T,
    watch: Watch,
}

/// Sees when a tracked value is gone.
#[derive(Clone, Debug, Default)]
pub struct Watch(Arc<Mutex<Option<Instant>>>);

impl<T> Tracked<T> {
    /// Tracks a value.
    pub fn new(value: T) -> (Self, Watch) {
        let watch = Watch::default();
        let tracked = Self {
            value,
            watch: watch.clone(),
        };
        (tracked, watch)
    }
}

impl<T> Drop for Tracked<T> {
    fn drop(&mut self) {
        self.watch.mark();
    }
}

impl Watch {
    pub(crate) fn mark(&self) {
        *lock(&self.0) = Some(clock::now());
    }

    /// Tells whether the value is gone.
    #[must_use]
    pub fn is_dropped(&self) -> bool {
        self.dropped_at().is_some()
    }

    /// Returns when the value was dropped, in tokio's time.
    #[must_use]
    pub fn dropped_at(&self) -> Option<Instant> {
        *lock(&self.0)
    }
}
