//! Other settings for a stack that is in use.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use tower_layer::Identity;

use super::{Protocol, Stack};
use crate::breaker::{BreakerLayer, BreakerPolicy};
use crate::load_shed::{LoadShedLayer, LoadShedPolicy};
use crate::rate_limit::{OneLimit, RateLimitLayer, RateLimitPolicy};

/// Gives a stack that is in use other settings; made by [`Stack::updatable`]. Clones are of the same stack.
///
/// ```
/// use mamparo::breaker::BreakerState;
/// use mamparo::retry::RetryPolicy;
/// use mamparo::stack::Stack;
///
/// let (stack, updates) = Stack::http("catalog").updatable();
/// stack.breaker_handle().unwrap().force_open();
///
/// let once = RetryPolicy::builder().max_attempts(1).build()?;
/// updates.update(&Stack::http("catalog").retry(once));
/// assert_eq!(updates.stack().worst_case().attempts, 1);
/// let breaker = updates.stack().breaker_handle().unwrap();
/// assert_eq!(breaker.state(), BreakerState::ForcedOpen);
/// # Ok::<(), mamparo_core::InvalidSetting>(())
/// ```
pub struct Updates<P: Protocol> {
    source: Arc<Source<P>>,
}

/// Where a stack finds its newest settings.
pub(super) struct Source<P: Protocol> {
    /// Grows with every update: all that a call reads of it.
    version: AtomicU64,
    newest: ArcSwap<Stack<Identity, Identity, Identity, P>>,
    /// One update after the other.
    updating: Mutex<()>,
}

impl<P: Protocol> Source<P> {
    #[inline]
    pub(super) fn version(&self) -> u64 {
        self.version.load(Ordering::Relaxed)
    }

    /// The newest settings, and a version that they are at least of.
    pub(super) fn newest(&self) -> (u64, Arc<Stack<Identity, Identity, Identity, P>>) {
        let version = self.version.load(Ordering::Acquire);
        (version, self.newest.load_full())
    }
}

impl<P: Protocol> Stack<Identity, Identity, Identity, P> {
    /// Makes a stack whose settings can be changed while it is in use.
    ///
    /// Its services, those that telemetry or a fallback was added to among them, see new settings at their next call. A
    /// policy that is set on the stack after this is set by hand: it stays, whatever the updates say.
    #[must_use]
    pub fn updatable(self) -> (Self, Updates<P>) {
        let updates = self.updates();
        (updates.stack(), updates)
    }

    /// Gives the stack away to those who follow it.
    pub(crate) fn updates(self) -> Updates<P> {
        let newest = Self {
            source: None,
            by_hand: 0,
            ..self
        };
        let source = Arc::new(Source {
            version: AtomicU64::new(0),
            newest: ArcSwap::from_pointee(newest),
            updating: Mutex::default(),
        });
        Updates { source }
    }

    /// The same state by the settings of another stack.
    fn updated(&self, settings: &Self) -> Self {
        Self {
            dependency: self.dependency,
            deadline: settings.deadline,
            load_shed: self.shedding_by(settings),
            key: settings.key.clone(),
            bulkhead: (self.bulkhead.clone()).with_policy(settings.bulkhead.policy()),
            operation_breaker: self.breaking_by(settings),
            owner: self.owner.updated(&settings.owner, &settings.protocol),
            breaker: (self.breaker.clone()).with_policy(settings.breaker.policy()),
            rate_limit: self.limiting_by(settings),
            attempt: settings.attempt,
            connect: settings.connect,
            peek: settings.peek,
            protocol: settings.protocol.clone(),
            wire: settings.wire.clone(),
            observer: self.observer.clone(),
            operation_telemetry: Identity::new(),
            attempt_telemetry: Identity::new(),
            fallback: Identity::new(),
            late: Arc::clone(&self.late),
            source: None,
            by_hand: 0,
        }
        .fitted()
    }

    // What was never on begins with its first settings; what was once on keeps its state, on or off.

    fn shedding_by(&self, settings: &Self) -> Option<LoadShedLayer<P>> {
        let policy = settings.load_shed.as_ref().map(|layer| *layer.policy());
        match self.load_shed.clone() {
            None => policy.map(|policy| self.shedding(policy)),
            Some(layer) => Some(layer.with_policy(policy.unwrap_or_else(LoadShedPolicy::off))),
        }
    }

    fn breaking_by(&self, settings: &Self) -> Option<BreakerLayer<P>> {
        let policy = settings.operation_breaker.as_ref();
        let policy = policy.map(|layer| layer.policy().clone());
        match self.operation_breaker.clone() {
            None => policy.map(|policy| self.breaking(policy)),
            Some(layer) => Some(layer.with_policy(&policy.unwrap_or_else(BreakerPolicy::off))),
        }
    }

    fn limiting_by(&self, settings: &Self) -> Option<RateLimitLayer<OneLimit, P::Limits>> {
        let policy = settings.rate_limit.as_ref().map(|layer| *layer.policy());
        match self.rate_limit.clone() {
            None => policy.map(|policy| self.limiting(policy)),
            Some(layer) => Some(layer.with_policy(policy.unwrap_or_else(RateLimitPolicy::off))),
        }
    }
}

impl<P: Protocol> Updates<P> {
    /// Takes the settings of another stack over; its state is left behind.
    ///
    /// What the stack knows of its dependency stays: breakers open or closed, with their windows unless these have another
    /// shape; who holds a place or waits for one; what was used of a rate; the tokens of the budget. Calls in flight
    /// end as they began, and so does the connect timeout of a client that was made already.
    pub fn update(&self, settings: &Stack<Identity, Identity, Identity, P>) {
        let updating = self.source.updating.lock();
        let _updating = updating.unwrap_or_else(PoisonError::into_inner);
        let newest = self.source.newest.load();
        self.source.newest.store(Arc::new(newest.updated(settings)));
        // After the settings: whoever sees the version finds them.
        self.source.version.fetch_add(1, Ordering::Release);
    }

    /// Returns the settings that it has now; follows nothing.
    #[cfg(feature = "config")]
    pub(crate) fn newest(&self) -> Arc<Stack<Identity, Identity, Identity, P>> {
        self.source.newest().1
    }

    /// Returns a stack with settings that it has or had, which follows the updates.
    pub(crate) fn following(
        &self,
        stack: &Stack<Identity, Identity, Identity, P>,
    ) -> Stack<Identity, Identity, Identity, P> {
        Stack {
            source: Some(Arc::clone(&self.source)),
            ..stack.clone()
        }
    }

    /// Tells whether a stack or a service follows the updates, besides so many.
    #[cfg(feature = "config")]
    pub(crate) fn are_followed_by_more_than(&self, others: usize) -> bool {
        Arc::strong_count(&self.source) > others
    }

    /// Returns the stack, with the settings that it has now.
    #[must_use]
    pub fn stack(&self) -> Stack<Identity, Identity, Identity, P> {
        let (_, newest) = self.source.newest();
        self.following(&newest)
    }
}

impl<P: Protocol> Clone for Updates<P> {
    fn clone(&self) -> Self {
        Self {
            source: Arc::clone(&self.source),
        }
    }
}

impl<P: Protocol> fmt::Debug for Updates<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

impl<P: Protocol> fmt::Debug for Source<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Updates")
            .field("version", &self.version())
            .finish_non_exhaustive()
    }
}
