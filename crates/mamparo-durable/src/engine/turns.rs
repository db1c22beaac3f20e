//! Lets pass at a rate that all engines on a store share.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use mamparo::rate_limit::{Ask, LimitStore, RateLimitPolicy};
use mamparo_core::clock::{self, Instant};
use mamparo_core::{BoxError, Dependency, Reason, Rejection};
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout_at};
use tower_service::Service;

use crate::backend::{BackendError, BoxFuture, Delivery, Trouble};
use crate::handler::Handled;

/// The store has to be asked in any case, so whoever asks waits for so long at least.
const LEAST_WAIT: Duration = Duration::from_secs(1);

/// What was taken for others that wait here, and that they did not use by then, is forgotten.
const KEPT_FOR: Duration = Duration::from_millis(100);

/// Between two questions, however soon the next turn comes.
const AGAIN: Duration = Duration::from_millis(1);

/// One limit in the store, and those that wait for it here: first come, first served, and only the first asks.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    store: Arc<dyn LimitStore>,
    ask: Ask,
    max_wait: Duration,
    waiting: Arc<AtomicU32>,
    hand: Arc<Mutex<Hand>>,
}

/// What was taken with one question, and is not used yet.
#[derive(Debug, Default)]
struct Hand {
    turns: u32,
    taken_at: Option<Instant>,
}

impl Turns {
    /// A limit of this name at this rate.
    pub(super) fn new(store: Arc<dyn LimitStore>, policy: &RateLimitPolicy, name: &str) -> Self {
        let (count, period) = policy.rate();
        let interval = period.as_nanos().div_ceil(u128::from(count.max(1)));
        let mut key = [0; 16];
        for (to, from) in key.iter_mut().zip(name.bytes()) {
            *to = from;
        }
        Self {
            store,
            ask: Ask {
                key,
                interval: u64::try_from(interval).unwrap_or(u64::MAX),
                burst: policy.burst(),
                cost: 1,
                more: 0,
            },
            max_wait: policy.max_wait().max(LEAST_WAIT),
            waiting: Arc::default(),
            hand: Arc::default(),
        }
    }

    /// Waits for a turn.
    ///
    /// # Errors
    ///
    /// A [`Rejection`] when it would come too late, and a [`BackendError`] when the store does not say.
    async fn wait(&self) -> Result<(), BoxError> {
        let until = clock::later(clock::now(), self.max_wait);
        let waits = Waits::begin(&self.waiting);
        let Ok(mut hand) = timeout_at(until, self.hand.lock()).await else {
            return Err(waits.too_late(self.ask.interval));
        };
        while !hand.spend() {
            let granted = self.store.take(Ask {
                more: waits.others(),
                ..self.ask
            });
            let granted = granted.await.map_err(unavailable)?;
            hand.keep(granted.taken);
            if granted.taken > 0 {
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
            sleep(next - clock::now()).await;
        }
        Ok(())
    }
}

impl Hand {
    fn spend(&mut self) -> bool {
        let fresh = self.taken_at.is_some_and(|at| clock::now() - at < KEPT_FOR);
        let left = self.turns.checked_sub(1).filter(|_| fresh);
        self.turns = left.unwrap_or(0);
        left.is_some()
    }

    fn keep(&mut self, turns: u32) {
        (self.turns, self.taken_at) = (turns, Some(clock::now()));
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

/// Waits for a turn, if there are turns, before it calls.
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
            if let Some(turns) = turns {
                turns.wait().await?;
            }
            inner.call(delivery).await
        })
    }
}
