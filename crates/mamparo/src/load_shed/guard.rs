//! A call under way: its place, and what becomes of it.

use std::fmt;

use mamparo_core::shard::Held;
use mamparo_core::{Settle, Verdict, clock};

use super::layer::Shared;
use super::state::accepted;

/// Holds a call's place until its answer is over, and then counts whether it was accepted.
///
/// Where there is nothing to hold, there is nothing in it.
pub struct ShedGuard<P, A>(Option<Place<P, A>>);

/// A place among the calls under way, given back on drop.
pub(super) struct Place<P, A> {
    pub(super) shared: Held<Shared<P, A>>,
}

impl<P, A> ShedGuard<P, A> {
    pub(super) const fn open(place: Place<P, A>) -> Self {
        Self(Some(place))
    }

    pub(super) const fn settled() -> Self {
        Self(None)
    }
}

impl<P, A> Place<P, A> {
    /// Holds the place of a call that was counted in.
    #[inline]
    pub(super) const fn new(shared: Held<Shared<P, A>>) -> Self {
        Self { shared }
    }

    /// Counts whether the call was accepted.
    #[inline]
    pub(super) fn settle(&self, verdict: Verdict) {
        let shared = &*self.shared;
        if let Some(rule) = shared.policy.settings.throttle
            && let Some(accepted) = accepted(&verdict)
        {
            let now = shared.load.nanos(clock::now());
            shared.load.answers.count(rule, now, accepted);
        }
    }
}

impl<P: Send + Sync + 'static, A: Send + Sync + 'static> Settle for ShedGuard<P, A> {
    fn settle(&mut self, verdict: Verdict) {
        if let Some(place) = self.0.take() {
            place.settle(verdict);
        }
    }
}

impl<P, A> Drop for Place<P, A> {
    #[inline]
    fn drop(&mut self) {
        if self.shared.policy.settings.max_in_flight.is_some() {
            self.shared.load.in_flight.leave();
        }
    }
}

impl<P, A> fmt::Debug for ShedGuard<P, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ShedGuard").field(&self.0.is_some()).finish()
    }
}
