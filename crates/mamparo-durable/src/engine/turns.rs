//! Lets pass at a rate that all engines on a store share.

use std::future::ready;
use std::mem;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{self, Arc, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use mamparo::rate_limit::{Ask, LimitStore, RateLimitPolicy, Taking};
use mamparo_core::clock::{self, Instant};
use mamparo_core::{BoxError, Dependency, Reason, Rejection};
use tokio::sync::{Mutex, Notify};
use tokio::time::timeout_at;
use tower_service::Service;

use crate::backend::{BackendError, BoxFuture, Delivery, QueueName, Trouble};
use crate::handler::Handled;
use crate::machine::Note;

/// The store has to be asked in any case, so whoever asks waits for so long at least.
const LEAST_WAIT: Duration = Duration::from_secs(1);

/// What was taken for others that wait here, and that they did not use by then, is forgotten.
const KEPT_FOR: Duration = Duration::from_millis(100);

/// Between two questions, however soon the next turn comes.
const AGAIN: Duration = Duration::from_millis(1);

/// So long after somebody had to wait for longer than [`LEAST_WAIT`], others may still wait: in the queue, where nobody sees them.
const FULL_FOR: Duration = Duration::from_secs(60);

/// One limit, and those that wait for it here: first come, first served, and only the first asks.
#[derive(Clone, Debug)]
pub(super) struct Turns(Arc<Line>);

#[derive(Debug)]
struct Line {
    store: Arc<dyn LimitStore>,
    ask: Ask,
    max_wait: Duration,
    waiting: AtomicU32,
    /// Whoever holds it is the first.
    first: Mutex<()>,
    hand: sync::Mutex<Hand>,
    given_back: Notify,
}

/// What was taken and is not used, and when somebody last waited for long.
#[derive(Debug, Default)]
struct Hand {
    turns: u32,
    taken_at: Option<Instant>,
    full_at: Option<Instant>,
}

impl Turns {
    /// A limit of this name at this rate; in the store, or else of this engine alone.
    pub(super) fn new(
        store: Option<&Arc<dyn LimitStore>>,
        policy: &RateLimitPolicy,
        name: &str,
    ) -> Self {
        let (count, period) = policy.rate();
        let interval = period.as_nanos().div_ceil(u128::from(count.max(1)));
        let mut key = [0; 16];
        for (to, from) in key.iter_mut().zip(name.bytes()) {
            *to = from;
        }
        let alone = || -> Arc<dyn LimitStore> { Arc::new(Alone::new()) };
        Self(Arc::new(Line {
            store: store.map_or_else(alone, Arc::clone),
            ask: Ask {
                key,
                interval: u64::try_from(interval).unwrap_or(u64::MAX),
                burst: policy.burst(),
                cost: 1,
                more: 0,
            },
            max_wait: policy.max_wait().max(LEAST_WAIT),
            waiting: AtomicU32::new(0),
            first: Mutex::new(()),
            hand: sync::Mutex::default(),
            given_back: Notify::new(),
        }))
    }

    /// Tells whether more comes than passes, so that what is not handled yet is not lost for that.
    pub(super) fn are_full(&self) -> bool {
        let lately = |at| clock::now() - at < FULL_FOR;
        self.0.waiting.load(Ordering::Relaxed) > 0 || self.0.hand().full_at.is_some_and(lately)
    }

    /// Waits for a turn.
    ///
    /// # Errors
    ///
    /// A [`Rejection`] when it would come too late, and a [`BackendError`] when the store does not say.
    async fn wait(&self) -> Result<(), BoxError> {
        let (line, began) = (&*self.0, clock::now());
        let turn = line.turn(clock::later(began, line.max_wait)).await;
        if turn.is_err() || clock::now() - began > LEAST_WAIT {
            line.hand().full_at = Some(clock::now());
        }
        turn
    }

    /// Gives a turn to the next, since nothing was done with it.
    fn give_back(&self) {
        let line = &self.0;
        let mut hand = line.hand();
        // Beyond a burst they would leave as one, beside the store's own.
        if hand.fresh() < line.ask.burst {
            hand.keep(1);
        }
        drop(hand);
        line.given_back.notify_one();
    }
}

impl Line {
    async fn turn(&self, until: Instant) -> Result<(), BoxError> {
        let waits = Waits::begin(&self.waiting);
        let Ok(_first) = timeout_at(until, self.first.lock()).await else {
            return Err(waits.too_late(self.ask.interval));
        };
        while !self.hand().spend() {
            let granted = self.store.take(Ask {
                more: waits.others(),
                ..self.ask
            });
            let granted = timeout_at(until, granted).await.map_err(BoxError::from);
            let granted = granted.flatten().map_err(unavailable)?;
            if granted.taken > 0 {
                self.hand().keep(granted.taken);
                continue;
            }
            let rest = self
                .ask
                .interval
                .saturating_mul(u64::from(self.ask.burst - 1));
            let wait = granted.full_in.saturating_sub(Duration::from_nanos(rest));
            let next = clock::later(clock::now(), wait.max(AGAIN));
            if next > until {
                return Err(waits.too_late(self.ask.interval));
            }
            // Over sooner where one is given back.
            let (Ok(()) | Err(_)) = timeout_at(next, self.given_back.notified()).await;
        }
        Ok(())
    }

    fn hand(&self) -> MutexGuard<'_, Hand> {
        self.hand.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hand {
    fn fresh(&self) -> u32 {
        let fresh = self.taken_at.is_some_and(|at| clock::now() - at < KEPT_FOR);
        if fresh { self.turns } else { 0 }
    }

    fn spend(&mut self) -> bool {
        let left = self.fresh().checked_sub(1);
        self.turns = left.unwrap_or(0);
        left.is_some()
    }

    fn keep(&mut self, turns: u32) {
        self.turns = self.fresh().saturating_add(turns);
        self.taken_at = Some(clock::now());
    }
}

/// The limit of an engine whose backend keeps none.
#[derive(Debug)]
struct Alone {
    began: Instant,
    full_at: sync::Mutex<u64>,
}

impl Alone {
    fn new() -> Self {
        Self {
            began: clock::now(),
            full_at: sync::Mutex::default(),
        }
    }
}

impl LimitStore for Alone {
    fn take(&self, ask: Ask) -> Taking<'_> {
        let mut full_at = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        let now = (clock::now() - self.began).as_nanos();
        let (granted, after) = ask.grant(*full_at, u64::try_from(now).unwrap_or(u64::MAX));
        *full_at = after;
        Box::pin(ready(Ok(granted)))
    }
}

/// One that waits, until it is dropped.
struct Waits<'a>(&'a AtomicU32);

impl<'a> Waits<'a> {
    fn begin(waiting: &'a AtomicU32) -> Self {
        waiting.fetch_add(1, Ordering::Relaxed);
        Self(waiting)
    }

    fn others(&self) -> u32 {
        self.0.load(Ordering::Relaxed).saturating_sub(1)
    }

    /// Whoever goes comes back when those that it leaves behind have had their turns.
    fn too_late(&self, interval: u64) -> BoxError {
        let behind = u64::from(self.others()) + 1;
        let wait = Duration::from_nanos(interval.saturating_mul(behind));
        Rejection::refused(Reason::RateLimited, Dependency::named("engine"))
            .with_retry_after(wait)
            .into()
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn unavailable(error: BoxError) -> BackendError {
    let message = "the store does not say whether the rate allows more";
    BackendError::new(Trouble::Unavailable, message).from_source(error)
}

/// Waits for a turn, if there are turns, before it calls; who turns out not to be wanted any more pays none.
#[derive(Clone, Debug)]
pub(super) struct InTurn<S> {
    pub(super) inner: S,
    pub(super) turns: Option<Turns>,
}

impl<S> Service<Delivery> for InTurn<S>
where
    S: Service<Delivery, Response = Handled, Error = BoxError> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Handled;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Handled, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, delivery: Delivery) -> Self::Future {
        let next = self.inner.clone();
        // The one that was polled ready.
        let mut inner = mem::replace(&mut self.inner, next);
        let turns = self.turns.clone();
        Box::pin(async move {
            let Some(turns) = turns else {
                return inner.call(delivery).await;
            };
            let queue = delivery.receipt.queue;
            turns.wait().await?;
            let handled = inner.call(delivery).await;
            let unused = match &handled {
                Ok(handled) => is_dropped(queue, handled.note),
                Err(error) => is_kept_back(error),
            };
            if unused {
                turns.give_back();
            }
            handled
        })
    }
}

/// Whether a layer has refused to send: an open breaker must not use up what others could.
fn is_kept_back(error: &BoxError) -> bool {
    Rejection::of(&**error).is_some_and(|rejection| !rejection.sent())
}

/// Whether nothing was sent, nor will be. An answer that finds its transaction at an end was sent for.
fn is_dropped(queue: QueueName, note: Note) -> bool {
    match note {
        Note::Obsolete | Note::Unknown => true,
        Note::Finished => queue == QueueName::Fires,
        _ => false,
    }
}
