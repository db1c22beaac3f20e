//! A limit that other replicas pay from too: what this one knows of it, and what it does alone.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use mamparo_core::clock::{self, Instant};
use mamparo_core::{BoxError, CallContext, Dependency, Event, Observer, What};
use sync_wrapper::SyncWrapper;
use tokio::time::{sleep, timeout, timeout_at};

use super::bucket::{Bucket, Place};
use super::layer::Since;
use super::shared::{Ask, Granted, LimitStore, Replicas};
use super::state::{Decision, Gcra};
use super::waiting::{LATE, Turn};

/// How long a call waits at least after the store has refused it, whatever the clocks say.
const AGAIN: Duration = Duration::from_millis(1);

/// The store, and whether it is there.
#[derive(Debug)]
pub(super) struct Common {
    store: Arc<dyn LimitStore>,
    replicas: Replicas,
    /// Since when it is away, in nanoseconds since the layer was made; 0 while it answers.
    away_since: AtomicU64,
    /// When it is asked again.
    ask_at: AtomicU64,
}

/// What is known of a call without asking.
#[derive(Clone, Copy)]
pub(super) enum AtOnce {
    Pass,
    Refused { wait: u64 },
    Ask,
}

impl Common {
    pub(super) fn new(store: Arc<dyn LimitStore>, replicas: Replicas) -> Self {
        Self {
            store,
            replicas,
            away_since: AtomicU64::new(0),
            ask_at: AtomicU64::new(0),
        }
    }

    /// What this replica lets pass alone.
    fn share(&self, gcra: Gcra) -> Gcra {
        gcra.share(self.replicas.count)
    }

    /// What this replica has to say of the limit while it is alone: its share, and when that is whole again.
    pub(super) fn seen_alone(&self, bucket: &Bucket, gcra: Gcra) -> Option<(Gcra, u64)> {
        let since = self.away_since.load(Relaxed);
        let share = self.share(gcra);
        let full_at = bucket.alone_full_at().max(share.closed(since, 0));
        (since != 0).then_some((share, full_at))
    }

    fn is_away(&self) -> bool {
        self.away_since.load(Relaxed) != 0
    }

    /// How much is kept that no call has asked for.
    const fn keep(&self) -> u32 {
        self.replicas.batch - 1
    }

    /// How long those in line for an answer wait for it, and for the one before.
    pub(super) fn patience(&self) -> Duration {
        self.replicas.answer_within.saturating_mul(2)
    }

    /// Decides what needs no answer of the store: it is paid for, certainly too much, or the store is away.
    pub(super) fn at_once(&self, bucket: &Bucket, gcra: Gcra, now: u64, cost: u32) -> AtOnce {
        if self.is_away() && now < self.ask_at.load(Relaxed) {
            return match self.alone(bucket, gcra, now, cost) {
                None => AtOnce::Pass,
                Some(wait) => AtOnce::Refused { wait },
            };
        }
        if bucket.is_waited_for() {
            return AtOnce::Ask;
        }
        bucket.keep(self.keep());
        if bucket.spend(cost) {
            return AtOnce::Pass;
        }
        match gcra.decide(bucket.meter.full_at(), now, cost) {
            Decision::NotYet { wait } if !self.is_away() => AtOnce::Refused { wait },
            _ => AtOnce::Ask,
        }
    }

    /// Takes a cost from this replica's share; or says how long it takes until that could be.
    ///
    /// The share begins without a burst, since that of all may be spent.
    fn alone(&self, bucket: &Bucket, gcra: Gcra, now: u64, cost: u32) -> Option<u64> {
        let share = self.share(gcra);
        let began = share.closed(self.away_since.load(Relaxed), 0);
        match bucket.take_alone(share, began, now, cost) {
            Decision::Pass { .. } => None,
            Decision::NotYet { wait } => Some(wait),
            // More than the share's burst, and not more than that of all: it has to wait for the store.
            Decision::Never => Some(share.charge(cost)),
        }
    }

    /// While the store is away, one call asks it now and then; this is the one.
    fn may_ask(&self, now: u64) -> bool {
        if !self.is_away() {
            return true;
        }
        let at = self.ask_at.load(Relaxed);
        let again = now.saturating_add(nanos(self.replicas.ask_again_after));
        at <= now && (self.ask_at.compare_exchange(at, again, Relaxed, Relaxed)).is_ok()
    }

    /// Asks the store, for no longer than it may take.
    async fn ask(&self, ask: Ask) -> Result<Granted, BoxError> {
        let mut taking = SyncWrapper::new(self.store.take(ask));
        let answer = poll_fn(|cx| taking.get_mut().as_mut().poll(cx));
        match timeout(self.replicas.answer_within, answer).await {
            Ok(answer) => answer,
            Err(elapsed) => Err(elapsed.into()),
        }
    }
}

/// A call that asks the store.
pub(super) struct Asker {
    pub(super) common: Arc<Common>,
    pub(super) place: Place,
    pub(super) gcra: Gcra,
    pub(super) since: Since,
    pub(super) dependency: Dependency,
    pub(super) observer: Option<Arc<dyn Observer>>,
}

impl Asker {
    /// Asks until it may pass, or until it would take too long.
    ///
    /// Those that wait for one limit ask one after the other, each for all behind it.
    pub(super) async fn turn(self, (overdue, until): (Instant, Instant), end: Instant) -> Turn {
        let (common, bucket, cost) = (&*self.common, &*self.place.bucket, self.place.cost);
        // Without it when that takes too long: the limit holds all the same.
        let turn = timeout_at(overdue.min(end), bucket.turn.lock()).await;
        if turn.is_err() && end <= overdue {
            return LATE;
        }
        let mut waited = false;
        loop {
            if bucket.spend(cost) {
                return Turn::Pass {
                    taken: None,
                    waited,
                };
            }
            let now = self.since.nanos(clock::now());
            let known = match self.gcra.decide(bucket.meter.full_at(), now, cost) {
                Decision::NotYet { wait } if !common.is_away() => Some(wait),
                _ if !common.may_ask(now) => common.alone(bucket, self.gcra, now, cost),
                _ => self.ask(now).await,
            };
            let Some(wait) = known else {
                return Turn::Pass {
                    taken: None,
                    waited,
                };
            };
            let wait = Duration::from_nanos(wait).max(AGAIN);
            if clock::later(clock::now(), wait) > until {
                return Turn::TooLate { wait };
            }
            waited = true;
            sleep(wait).await;
        }
    }

    /// Asks once; how long it takes until it would pass, if it doesn't.
    async fn ask(&self, now: u64) -> Option<u64> {
        let (bucket, cost) = (&*self.place.bucket, self.place.cost);
        let behind = bucket.ahead().saturating_sub(u64::from(cost));
        let more = u32::try_from(behind).unwrap_or(u32::MAX);
        let ask = Ask {
            key: bucket.key,
            interval: self.gcra.charge(1),
            burst: self.gcra.burst(),
            cost,
            more: more.saturating_add(self.common.keep()),
        };
        match self.common.ask(ask).await {
            Ok(granted) => {
                self.back(now);
                // By the clock here, it was asked no later than now: the store's own instant is not earlier.
                let full_at = now.saturating_add(nanos(granted.full_in));
                bucket.meter.learn(full_at);
                if granted.taken >= cost.max(1) {
                    bucket.prepay(granted.taken - cost);
                    return None;
                }
                Some(self.gcra.wait(full_at, now, u64::from(cost)))
            }
            Err(error) => {
                let now = self.since.nanos(clock::now());
                self.away(now, &error);
                self.common.alone(bucket, self.gcra, now, cost)
            }
        }
    }

    /// The store has answered.
    fn back(&self, now: u64) {
        let since = self.common.away_since.swap(0, Relaxed);
        if since != 0 {
            let after = Duration::from_nanos(now.saturating_sub(since));
            self.report(What::RateLimitStoreBack { after });
        }
    }

    fn away(&self, now: u64, error: &BoxError) {
        let common = &*self.common;
        let again = now.saturating_add(nanos(common.replicas.ask_again_after));
        common.ask_at.store(again, Relaxed);
        let since = &common.away_since;
        if (since.compare_exchange(0, now.max(1), Relaxed, Relaxed)).is_ok() {
            let error = &**error;
            self.report(What::RateLimitStoreAway { error });
        }
    }

    fn report(&self, what: What<'_>) {
        let context = CallContext::current_for(self.dependency);
        Event::report(self.observer.as_ref(), &context, what);
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
