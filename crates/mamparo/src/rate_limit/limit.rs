//! The limit that one call pays from, held for as long as the call needs it.

use std::sync::Arc;
use std::time::Duration;

use mamparo_core::clock::{self, Instant};
use mamparo_core::shard::Held;
use mamparo_core::{CallContext, Event, What};

use super::ReadsLimit;
use super::bucket::{Bucket, Unsent};
use super::layer::Shared;
use super::meter::Taken;

/// By how much a wait that the dependency asks for is lengthened at most: a tenth, so that not all come back at once.
const JITTER: f64 = 0.1;

/// The limit that one call pays from.
pub(super) struct Limit<C, L> {
    pub(super) shared: Held<Shared<C, L>>,
    /// Its key's, where it has one.
    own: Option<Arc<Bucket>>,
}

impl<C, L> Limit<C, L> {
    #[inline]
    pub(super) const fn new(shared: Held<Shared<C, L>>, own: Option<Arc<Bucket>>) -> Self {
        Self { shared, own }
    }

    #[inline]
    pub(super) fn bucket(&self) -> &Arc<Bucket> {
        self.own.as_ref().unwrap_or(&self.shared.one)
    }

    /// Holds what a call took until it is sent.
    pub(super) fn unsent(&self, taken: Taken) -> Box<Unsent> {
        let (gcra, since) = (self.shared.policy.gcra, self.shared.since);
        Box::new(Unsent::new(Arc::clone(self.bucket()), taken, gcra, since))
    }

    /// How many nanoseconds it takes until so much has passed.
    pub(super) fn wait(&self, now: Instant, cost: u64) -> u64 {
        let (gcra, now) = (self.shared.policy.gcra, self.shared.since.nanos(now));
        gcra.wait(self.bucket().meter.full_at(), now, cost)
    }

    /// Obeys what an answer says of the dependency's own limit, if told to; or says in it what is left of a server's.
    #[inline]
    pub(super) fn attend<Res>(&self, answer: &mut Res)
    where
        L: ReadsLimit<Res>,
    {
        if let Some(quota) = self.shared.quota(self.bucket(), clock::now) {
            self.shared.limits.tell(answer, &quota);
        }
        let Some(at_most) = self.shared.policy.settings.obey else {
            return;
        };
        let asked = self.shared.limits.wait(answer);
        if let Some(wait) = asked.filter(|wait| !wait.is_zero()) {
            self.close(wait, at_most);
        }
    }

    #[cold]
    fn close(&self, asked: Duration, at_most: Duration) {
        let shared = &*self.shared;
        // A part of it does not overflow, whatever is asked.
        let longer = asked.mul_f64(JITTER * fastrand::f64());
        let wait = asked.saturating_add(longer).min(at_most);
        let now = shared.since.nanos(clock::now());
        let nanos = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
        self.bucket().meter.close(shared.policy.gcra, now, nanos);
        let what = What::RateLimitHeard { wait };
        let context = CallContext::current_for(shared.dependency);
        Event::report(shared.observer.as_ref(), &context, what);
    }
}
