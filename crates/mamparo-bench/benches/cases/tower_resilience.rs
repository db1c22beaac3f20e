//! tower-resilience's time limiter and retry, the retry with its budget.

use http::{Request, Response};
use mamparo_core::BoxError;
use tower::Layer;
use tower::Service;
use tower_resilience_retry::{Retry, RetryBudgetBuilder, RetryLayer};
use tower_resilience_timelimiter::{FixedTimeout, TimeLimiter, TimeLimiterLayer};

use super::ours::{ATTEMPT, OPERATION};
use super::traffic::{Body, Inner};

pub(super) fn time_limiter<S>(inner: S) -> TimeLimiter<S, FixedTimeout> {
    let layer = TimeLimiterLayer::builder().timeout_duration(ATTEMPT);
    layer.build().layer(inner)
}

type Resending<S, E> = Retry<S, Request<Body>, Response<Body>, E>;

pub(super) fn retry<S, E: 'static>(inner: S) -> Result<Resending<S, E>, BoxError>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = E>,
{
    let budget = RetryBudgetBuilder::new().token_bucket();
    let budget = budget
        .tokens_per_second(10.0)
        .max_tokens(100)
        .initial_tokens(100);
    let layer = RetryLayer::exponential_backoff().budget(budget.build()?);
    Ok(layer.build().layer(inner))
}

/// A limit around all attempts, the retry, a limit around each.
pub(super) fn stack<S: Inner<Request<Body>>>(
    inner: S,
) -> Result<impl Service<Request<Body>, Response = Response<Body>>, BoxError> {
    let layer = TimeLimiterLayer::builder().timeout_duration(OPERATION);
    Ok(layer.build().layer(retry(time_limiter(inner))?))
}
