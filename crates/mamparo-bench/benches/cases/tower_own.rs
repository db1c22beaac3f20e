//! tower's own layers: timeout, retry with budget and backoff, concurrency limit, load shed.

use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use mamparo_core::BoxError;
use tokio::sync::Semaphore;
use tower::limit::ConcurrencyLimit;
use tower::load_shed::LoadShed;
use tower::retry::backoff::{
    Backoff, ExponentialBackoff, ExponentialBackoffMaker, InvalidBackoff, MakeBackoff,
};
use tower::retry::budget::{Budget, TpsBudget};
use tower::retry::{Policy, Retry};
use tower::timeout::Timeout;
use tower::util::rng::HasherRng;

use super::ours::{ATTEMPT, OPERATION};

/// Resends a failure twice, as the default of ours does, if the budget pays for it.
#[derive(Clone)]
pub(crate) struct TwoResends {
    budget: Arc<TpsBudget>,
    backoff: ExponentialBackoff<HasherRng>,
    left: u32,
}

impl TwoResends {
    fn new() -> Result<Self, InvalidBackoff> {
        let (least, most) = (Duration::from_millis(100), Duration::from_secs(2));
        let mut backoff = ExponentialBackoffMaker::new(least, most, 0.5, HasherRng::new())?;
        Ok(Self {
            budget: Arc::new(TpsBudget::new(Duration::from_secs(10), 10, 0.2)),
            backoff: backoff.make_backoff(),
            left: 2,
        })
    }
}

impl<B: Clone, A, E> Policy<Request<B>, Response<A>, E> for TwoResends {
    type Future = tokio::time::Sleep;

    fn retry(
        &mut self,
        _: &mut Request<B>,
        result: &mut Result<Response<A>, E>,
    ) -> Option<Self::Future> {
        if matches!(result, Ok(answer) if !answer.status().is_server_error()) {
            self.budget.deposit();
            return None;
        }
        if self.left == 0 || !self.budget.withdraw() {
            return None;
        }
        self.left -= 1;
        Some(self.backoff.next_backoff())
    }

    fn clone_request(&mut self, request: &Request<B>) -> Option<Request<B>> {
        Some(request.clone())
    }
}

pub(crate) fn timeout<S>(inner: S) -> Timeout<S> {
    Timeout::new(inner, ATTEMPT)
}

pub(crate) fn retry<S>(inner: S) -> Result<Retry<TwoResends, S>, BoxError> {
    Ok(Retry::new(TwoResends::new()?, inner))
}

/// A timeout around all attempts, the retry, a timeout around each.
pub(crate) fn stack<S>(inner: S) -> Result<Timeout<Retry<TwoResends, Timeout<S>>>, BoxError> {
    Ok(Timeout::new(retry(timeout(inner))?, OPERATION))
}

pub(crate) fn limit<S>(inner: S) -> ConcurrencyLimit<S> {
    ConcurrencyLimit::new(inner, 100_000)
}

/// Refuses what the limit would let wait.
pub(crate) fn shed<S>(inner: S) -> LoadShed<ConcurrencyLimit<S>> {
    LoadShed::new(limit(inner))
}

/// A limit whose places are all taken.
pub(crate) fn full<S>(inner: S) -> LoadShed<ConcurrencyLimit<S>> {
    let none = Arc::new(Semaphore::new(0));
    LoadShed::new(ConcurrencyLimit::with_semaphore(inner, none))
}

type Whole<S> = Timeout<LoadShed<ConcurrencyLimit<Retry<TwoResends, Timeout<S>>>>>;

/// The stack with a limit inside of the outer timeout; tower has no breaker.
pub(crate) fn whole<S>(inner: S) -> Result<Whole<S>, BoxError> {
    Ok(Timeout::new(shed(retry(timeout(inner))?), OPERATION))
}

pub(crate) fn whole_full<S>(inner: S) -> Result<Whole<S>, BoxError> {
    Ok(Timeout::new(full(retry(timeout(inner))?), OPERATION))
}
