//! A call that waits for its turn.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use mamparo_core::clock::{self, Instant};
use mamparo_core::gate::GateFuture;
use mamparo_core::{BoxError, CallContext, Event, Gate, Rejection, What};
use tokio::time::{sleep, timeout_at};
use tower_service::Service;

use super::bucket::{Place, Unsent};
use super::common::Asker;
use super::error::too_costly;
use super::layer::Since;
use super::limit::Limit;
use super::meter::Taken;
use super::state::{Decision, Gcra};
use crate::bound;

/// What is left of the deadline for the call itself: with less, waiting would be for nothing.
const MIN_ATTEMPT: Duration = Duration::from_millis(10);

/// How late a timer may be: it is no reason to give a turn up.
const GRAIN: Duration = Duration::from_millis(2);

/// How much longer than it reckoned with a call waits for those before it, besides half of that again: whoever is polled
/// no more must not hold up all the others.
const PATIENCE: Duration = Duration::from_millis(50);

/// A call that waits for its turn.
pub(super) struct Waiting<S, C, L, Req> {
    turn: Pin<Box<dyn Future<Output = Turn> + Send + Sync>>,
    gate: Gate<S>,
    /// Until its turn has come.
    call: Option<(Req, Limit<C, L>)>,
    cost: u32,
    began: Instant,
}

/// A call whose turn has come.
pub(super) struct Passed<S: Service<Req>, C, L, Req> {
    pub(super) future: GateFuture<S, Req>,
    pub(super) unsent: Option<Box<Unsent>>,
    pub(super) limit: Limit<C, L>,
}

/// What became of a wait.
pub(super) enum Turn {
    /// Its turn has come.
    Pass {
        /// What may be given back.
        taken: Option<Taken>,
        /// Whether it had to wait for its turn.
        waited: bool,
    },
    /// It would come too late.
    TooLate {
        /// How long it would take, at least.
        wait: Duration,
    },
}

impl<S, C, L, Req> Waiting<S, C, L, Req> {
    /// Takes a place in the queue, unless its turn would come too late or the queue is full.
    pub(super) fn begin(
        (gate, request): (Gate<S>, Req),
        (limit, cost): (Limit<C, L>, u32),
        now: Instant,
    ) -> Result<Box<Self>, Rejection> {
        let (shared, bucket) = (&*limit.shared, limit.bucket());
        let (policy, context) = (&shared.policy, CallContext::current());
        if !policy.gcra.fits(cost) {
            return Err(too_costly(shared.name(&context)));
        }
        let place = Place::take(Arc::clone(bucket), cost);
        let wait = limit.wait(now, place.total);
        let left = match context.attempt_remaining(now) {
            Some(remaining) => remaining.saturating_sub(MIN_ATTEMPT),
            None => Duration::MAX,
        };
        let longest = left.min(policy.max_wait());
        let full = place.total > u64::from(policy.settings.max_waiting);
        let too_late = Duration::from_nanos(wait) > longest;
        // What replicas share is asked for, whatever is known: it may be another's wait that is reckoned with here.
        if full || (too_late && shared.common.is_none()) {
            return Err(shared.limited(&context, bucket, wait));
        }
        let until = clock::later(now, longest.saturating_add(GRAIN));
        let reckoned = Duration::from_nanos(wait.saturating_add(wait / 2));
        let asking = shared
            .common
            .as_ref()
            .map_or(Duration::ZERO, |common| common.patience());
        let patience = PATIENCE.saturating_add(asking);
        let overdue = clock::later(now, reckoned.saturating_add(patience));
        let turn: Pin<Box<dyn Future<Output = Turn> + Send + Sync>> = match &shared.common {
            None => Box::pin(turn(place, policy.gcra, shared.since, (overdue, until))),
            Some(common) => {
                let asker = Asker {
                    common: Arc::clone(common),
                    place,
                    gcra: policy.gcra,
                    since: shared.since,
                    dependency: shared.dependency,
                    observer: shared.observer.clone(),
                };
                let end = clock::later(now, left.saturating_add(GRAIN));
                Box::pin(asker.turn((overdue, until), end))
            }
        };
        Ok(Box::new(Self {
            turn,
            gate,
            call: Some((request, limit)),
            cost,
            began: now,
        }))
    }

    /// Polls the wait; when its turn has come, calls the inner service or waits for it.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Passed<S, C, L, Req>, BoxError>>
    where
        S: Service<Req> + Clone,
    {
        let turn = ready!(self.turn.as_mut().poll(cx));
        let Some((request, limit)) = self.call.take() else {
            return Poll::Pending; // not reached: it is polled until its turn has come, and no more
        };
        let (shared, context, now) = (&*limit.shared, CallContext::current(), clock::now());
        let observer = shared.observer.as_ref();
        let (taken, has_waited) = match turn {
            Turn::Pass { taken, waited } => (taken, waited),
            Turn::TooLate { wait } => {
                let total = limit.bucket().ahead().saturating_add(u64::from(self.cost));
                let ahead = Duration::from_nanos(limit.wait(now, total));
                let nanos = wait.max(ahead).as_nanos();
                let wait = u64::try_from(nanos).unwrap_or(u64::MAX);
                let rejection = shared.limited(&context, limit.bucket(), wait);
                return Poll::Ready(Err(bound::reject(rejection, &context, observer)));
            }
        };
        // From here on it pays, unless it ends before the inner service is called.
        let unsent = taken.map(|taken| limit.unsent(taken));
        if has_waited {
            let waited = now.saturating_duration_since(self.began);
            CallContext::note_rate_limit(shared.dependency, waited);
            Event::report(
                observer,
                &CallContext::current_for(shared.dependency),
                What::RateLimitWaited { waited },
            );
        }
        Poll::Ready(Ok(Passed {
            future: self.gate.call(request),
            unsent,
            limit,
        }))
    }
}

/// Waits for its turn, first come, first served, and takes the cost; nothing when the time for it is over.
///
/// Nothing is taken before that, so that whoever goes away leaves its turn to the next.
async fn turn(
    place: Place,
    gcra: Gcra,
    since: Since,
    (overdue, until): (Instant, Instant),
) -> Turn {
    let take = async {
        // Without it when that takes too long: the limit holds all the same.
        let _turn = timeout_at(overdue, place.bucket.turn.lock()).await.ok();
        loop {
            let now = since.nanos(clock::now());
            match place.bucket.meter.take(gcra, now, place.cost) {
                Ok(taken) => {
                    let (taken, waited) = (Some(taken), true);
                    return Turn::Pass { taken, waited };
                }
                Err(Decision::NotYet { wait }) => sleep(Duration::from_nanos(wait)).await,
                Err(_) => return LATE, // not reached: what never passes takes no place
            }
        }
    };
    timeout_at(until, take).await.unwrap_or(LATE)
}

/// How long it takes is reckoned by whoever tells the caller.
pub(super) const LATE: Turn = Turn::TooLate {
    wait: Duration::ZERO,
};
