//! tower-resilience's layers.

use std::error::Error;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use http::Request;
use mamparo_core::BoxError;
use tower::{Layer, Service};
use tower_resilience_bulkhead::{Bulkhead, BulkheadLayer};
use tower_resilience_circuitbreaker::{
    CircuitBreaker, CircuitBreakerError, CircuitBreakerLayer, DefaultClassifier,
};
use tower_resilience_ratelimiter::{RateLimiter, RateLimiterLayer};
use tower_resilience_retry::{Retry, RetryBudget, RetryBudgetBuilder, RetryLayer};
use tower_resilience_timelimiter::{FixedTimeout, TimeLimiter, TimeLimiterLayer};

use super::ours::{ATTEMPT, OPERATION};
use super::traffic::{Body, Inner, Sends};

pub(crate) fn time_limiter<S>(inner: S) -> TimeLimiter<S, FixedTimeout> {
    let layer = TimeLimiterLayer::builder().timeout_duration(ATTEMPT);
    layer.build().layer(inner)
}

type Resending<S> = Retry<
    S,
    Request<Body>,
    <S as Service<Request<Body>>>::Response,
    <S as Service<Request<Body>>>::Error,
>;

pub(crate) fn retry<S>(inner: S) -> Result<Resending<S>, BoxError>
where
    S: Service<Request<Body>, Response: 'static, Error: 'static>,
{
    let layer = RetryLayer::exponential_backoff().budget(budget()?);
    Ok(layer.build().layer(inner))
}

fn budget() -> Result<Arc<dyn RetryBudget>, BoxError> {
    let budget = RetryBudgetBuilder::new().token_bucket();
    let budget = budget.tokens_per_second(10.0).max_tokens(100);
    Ok(budget.initial_tokens(100).build()?)
}

/// A limit around all attempts, the retry, a limit around each.
pub(crate) fn stack<S: Inner<Request<Body>>>(
    inner: S,
) -> Result<impl Service<Request<Body>>, BoxError> {
    let layer = TimeLimiterLayer::builder().timeout_duration(OPERATION);
    Ok(layer.build().layer(retry(time_limiter(inner))?))
}

/// Opens by the share of failures in the last 100 calls.
pub(crate) fn breaker<S>(inner: S) -> Result<CircuitBreaker<S, DefaultClassifier>, BoxError> {
    Ok(CircuitBreakerLayer::standard().build()?.layer(inner))
}

pub(crate) fn breaker_open<S>(inner: S) -> Result<CircuitBreaker<S, DefaultClassifier>, BoxError> {
    Ok(open()?.layer(inner))
}

fn open() -> Result<CircuitBreakerLayer<DefaultClassifier>, BoxError> {
    let layer = CircuitBreakerLayer::standard().wait_duration_in_open(Duration::from_secs(3600));
    let (layer, handle) = layer.build_with_handle()?;
    let opened = pin!(handle.force_open()).poll(&mut Context::from_waker(Waker::noop()));
    assert!(opened.is_ready(), "nobody else has its lock");
    Ok(layer)
}

pub(crate) fn bulkhead<S>(inner: S) -> Result<Bulkhead<S>, BoxError> {
    let layer = BulkheadLayer::builder().max_concurrent_calls(100_000);
    Ok(layer.reject_when_full().build()?.layer(inner))
}

pub(crate) fn rate_limiter<S>(inner: S) -> Result<RateLimiter<S>, BoxError> {
    let layer = RateLimiterLayer::per_second(1_000_000_000).build()?;
    Ok(layer.layer(inner))
}

/// A time limit, the retry, the breaker, the bulkhead, a time limit for each attempt.
pub(crate) fn whole<S: Sends>(
    inner: S,
) -> Result<
    impl Service<Request<Body>, Response = S::Response, Error: Error + Send + Sync, Future: Send>
    + Clone
    + Send,
    BoxError,
> {
    stacked(&CircuitBreakerLayer::standard().build()?, inner)
}

pub(crate) fn whole_open<S: Sends>(inner: S) -> Result<impl Service<Request<Body>>, BoxError> {
    stacked(&open()?, inner)
}

fn stacked<S: Sends>(
    breaker: &CircuitBreakerLayer<DefaultClassifier>,
    inner: S,
) -> Result<
    impl Service<Request<Body>, Response = S::Response, Error: Error + Send + Sync, Future: Send>
    + Clone
    + Send
    + use<S>,
    BoxError,
> {
    let inner = breaker.layer(bulkhead(time_limiter(inner))?);
    // A rejection is not sent again, as with ours.
    let retry = RetryLayer::exponential_backoff()
        .retry_on(|error| !matches!(error, CircuitBreakerError::OpenCircuit));
    let inner = retry.budget(budget()?).build().layer(inner);
    let layer = TimeLimiterLayer::builder().timeout_duration(OPERATION);
    Ok(layer.build().layer(inner))
}
