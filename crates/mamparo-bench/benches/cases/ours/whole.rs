//! The whole stack: deadline, bulkhead, retry with its budget, breaker, attempt timeout.

use http::Request;
use mamparo::attempt_timeout::{AttemptPolicy, AttemptTimeoutLayer};
use mamparo::breaker::BreakerLayer;
use mamparo::bulkhead::{BulkheadLayer, BulkheadPolicy};
use mamparo::deadline::{DeadlineLayer, DeadlinePolicy};
use mamparo::replay::ReplayBody;
use mamparo::retry::{RetryLayer, RetryPolicy};
use mamparo_core::{BoxError, Plain};
use tower::{Layer, Service, ServiceBuilder};

use super::plane::NAME;
use super::protecting::{breakers, bulkheads, counting, full};
use super::{ATTEMPT, OPERATION, attempt_timeout, deadline, retry};
use crate::cases::traffic::{Body, Inner};

pub(crate) fn whole<S: Inner<Request<Body>>>(
    inner: S,
) -> Result<impl Service<Request<Body>, Error = BoxError, Future: Send> + Clone + Send, BoxError> {
    stacked(&bulkheads(100_000)?, &breakers(counting()?), inner)
}

/// With a breaker that is open.
pub(crate) fn whole_open<S: Inner<Request<Body>>>(
    inner: S,
) -> Result<impl Service<Request<Body>>, BoxError> {
    let breaker = breakers(counting()?);
    breaker.handle().force_open();
    stacked(&bulkheads(100_000)?, &breaker, inner)
}

/// With a bulkhead whose places are taken.
pub(crate) fn whole_full<S: Inner<Request<Body>>>(
    inner: S,
) -> Result<impl Service<Request<Body>>, BoxError> {
    stacked(&full()?, &breakers(counting()?), inner)
}

fn stacked<S: Inner<Request<Body>>>(
    bulkhead: &BulkheadLayer<Plain>,
    breaker: &BreakerLayer<Plain>,
    inner: S,
) -> Result<
    impl Service<Request<Body>, Error = BoxError, Future: Send> + Clone + Send + use<S>,
    BoxError,
> {
    let attempts = retry(breaker.layer(attempt_timeout(inner)?));
    deadline(bulkhead.layer(attempts))
}

/// The same over HTTP, where what holds a place holds it until the answer's body is over.
pub(crate) fn whole_http<S: Inner<Request<ReplayBody<Body>>>>(
    inner: S,
) -> Result<impl Service<Request<Body>, Error = BoxError>, BoxError> {
    let bulkhead = BulkheadPolicy::builder().limit(100_000).max_waiting(0);
    let attempt = AttemptPolicy::builder().timeout(ATTEMPT);
    let deadline = DeadlinePolicy::within(OPERATION)?;
    let layers = ServiceBuilder::new()
        .layer(DeadlineLayer::http(deadline).dependency(NAME))
        .layer(BulkheadLayer::http(bulkhead.build()?).dependency(NAME))
        .layer(RetryLayer::http(RetryPolicy::default()).dependency(NAME))
        .layer(BreakerLayer::http(counting()?).dependency(NAME))
        .layer(AttemptTimeoutLayer::http(attempt.build()?).dependency(NAME));
    Ok(layers.service(inner))
}
