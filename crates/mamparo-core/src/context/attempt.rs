//! The limit of one attempt, laid over the current context.

use std::marker::PhantomData;
use std::mem;
use std::time::Duration;

use super::CallContext;
use super::current;
use super::nanos::Nanos;
use crate::Deadline;
use crate::clock::Instant;

/// How long one attempt may take until its head is there.
///
/// It is laid over the context that is current anyway, so that who limits an attempt keeps and copies no context.
///
/// ```
/// use mamparo_core::{AttemptLimit, CallContext, Deadline, clock};
/// use std::time::Duration;
///
/// let (now, timeout) = (clock::now(), Duration::from_secs(2));
/// let limit = AttemptLimit::new(now, timeout);
/// limit.enter(|| {
///     let current = CallContext::current();
///     assert_eq!(current.attempt_timeout(), timeout);
///     assert_eq!(current.attempt_cut(), Some(Deadline::after(now, timeout)));
/// });
/// assert_eq!(CallContext::current().attempt_cut(), None);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct AttemptLimit {
    pub(super) cut: Option<Deadline>,
    pub(super) timeout: Nanos,
}

impl AttemptLimit {
    /// Nothing bounds the attempt.
    pub const NONE: Self = Self {
        cut: None,
        timeout: Nanos::ZERO,
    };

    /// Bounds an attempt that begins `now`.
    #[must_use]
    #[inline]
    pub fn new(now: Instant, timeout: Duration) -> Self {
        Self::until(Deadline::after(now, timeout), timeout)
    }

    /// Bounds an attempt that is cut at that instant, when `timeout` is over.
    #[must_use]
    #[inline]
    pub const fn until(cut: Deadline, timeout: Duration) -> Self {
        Self {
            cut: Some(cut),
            timeout: Nanos::of(timeout),
        }
    }

    /// Returns how long the attempt may take; zero where nothing bounds it.
    #[must_use]
    pub const fn timeout(&self) -> Duration {
        self.timeout.duration()
    }

    /// Returns the instant at which the attempt is cut.
    #[must_use]
    #[inline]
    pub const fn cut(&self) -> Option<Deadline> {
        self.cut
    }

    /// Makes this the current attempt's limit while `f` runs.
    #[inline]
    pub fn enter<R>(&self, f: impl FnOnce() -> R) -> R {
        let _outer = self.entered();
        f()
    }

    /// Makes this the current attempt's limit until what is returned is dropped.
    #[inline]
    pub fn entered(&self) -> Limited {
        current::set_wake(None);
        let outer = current::with(|context| mem::replace(&mut context.limit, *self));
        if outer.is_none() {
            self.begin();
        }
        Limited {
            outer,
            _on_one_thread: PhantomData,
        }
    }

    /// Outside of any operation there is nothing to be laid over, but a call inside must end in time all the same.
    #[cold]
    fn begin(&self) {
        let context = CallContext {
            limit: *self,
            ..CallContext::EMPTY
        };
        let mut place = current::place();
        *place = context;
        current::replace(Some(place));
    }
}

/// The limit that was current before; dropped, it is again.
#[must_use = "dropped at once, it enters nothing"]
#[derive(Debug)]
pub struct Limited {
    /// None where there was no context at all.
    outer: Option<AttemptLimit>,
    _on_one_thread: PhantomData<*const ()>,
}

impl Drop for Limited {
    #[inline]
    fn drop(&mut self) {
        match self.outer {
            Some(outer) => {
                current::with(|context| context.limit = outer);
            }
            None => {
                if let Some(own) = current::replace(None) {
                    current::recycle(own);
                }
            }
        }
    }
}
