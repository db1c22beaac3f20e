//! The limit of one attempt, laid over the current context.

use std::marker::PhantomData;
use std::time::Duration;

use super::call::CURRENT;
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
        Self {
            cut: Some(Deadline::after(now, timeout)),
            timeout: Nanos::of(timeout),
        }
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

    /// Makes this the current attempt's limit until the guard is dropped; never hold it over an await.
    ///
    /// The guard stays on its thread:
    ///
    /// ```compile_fail
    /// fn spawnable(_: impl Send) {}
    /// spawnable(mamparo_core::AttemptLimit::NONE.entered());
    /// ```
    #[inline]
    pub fn entered(&self) -> Limited {
        Limited {
            outer: self.replace(),
            _on_one_thread: PhantomData,
        }
    }

    /// Makes this the current attempt's limit, and returns the one before it.
    // Field by field: only what changes is then written.
    #[inline]
    fn replace(&self) -> Self {
        CURRENT.with(|current| {
            let mut context = current.get();
            let outer = Self {
                cut: context.limit.cut,
                timeout: context.limit.timeout,
            };
            context.limit.cut = self.cut;
            context.limit.timeout = self.timeout;
            current.set(context);
            outer
        })
    }
}

/// A limit is the current attempt's as long as this lives; made by [`AttemptLimit::entered`].
#[must_use = "dropped at once, it enters nothing"]
#[derive(Debug)]
pub struct Limited {
    outer: AttemptLimit,
    _on_one_thread: PhantomData<*const ()>,
}

impl Drop for Limited {
    #[inline]
    fn drop(&mut self) {
        self.outer.replace();
    }
}
