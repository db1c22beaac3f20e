//! The call plane: deadline, retry with its budget, attempt timeout.

use std::time::Duration;

use mamparo::attempt_timeout::{AttemptPolicy, AttemptTimeout, AttemptTimeoutLayer};
use mamparo::deadline::{DeadlineLayer, DeadlinePolicy, DeadlineService};
use mamparo::retry::{Retry, RetryLayer, RetryPolicy};
use mamparo::wire::{HttpWire, NoWire};
use mamparo_core::http::Http;
use mamparo_core::{BoxError, Plain};
use tower::Layer;

/// The dependency that all layers are for.
pub(super) const NAME: &str = "catalog";

/// The limit of an operation, in every case that has one: longer than a case's keeper waits.
pub(crate) const OPERATION: Duration = Duration::from_secs(30);

/// The limit of an attempt, in every case that has one.
pub(crate) const ATTEMPT: Duration = Duration::from_secs(10);

type Stack<S, W, P> = DeadlineService<Retry<AttemptTimeout<S, W>, P>, W>;

pub(crate) fn deadline<S>(inner: S) -> Result<DeadlineService<S, NoWire>, BoxError> {
    let layer = DeadlineLayer::new(DeadlinePolicy::within(OPERATION)?);
    Ok(layer.dependency(NAME).layer(inner))
}

pub(crate) fn retry<S: Clone>(inner: S) -> Retry<S, Plain> {
    let layer = RetryLayer::new(RetryPolicy::default(), Plain::idempotent());
    layer.dependency(NAME).layer(inner)
}

pub(crate) fn attempt_timeout<S>(inner: S) -> Result<AttemptTimeout<S, NoWire>, BoxError> {
    let policy = AttemptPolicy::builder().timeout(ATTEMPT).build()?;
    let layer = AttemptTimeoutLayer::new(policy);
    Ok(layer.dependency(NAME).layer(inner))
}

/// A deadline around all attempts, the retry, a limit of each.
pub(crate) fn stack<S: Clone>(inner: S) -> Result<Stack<S, NoWire, Plain>, BoxError> {
    deadline(retry(attempt_timeout(inner)?))
}

/// The same over HTTP: deadline headers are read and written, bodies are bounded and recorded.
pub(crate) fn http<S: Clone>(inner: S) -> Result<Stack<S, HttpWire, Http>, BoxError> {
    let deadline = DeadlineLayer::http(DeadlinePolicy::within(OPERATION)?);
    let retry = RetryLayer::http(RetryPolicy::default());
    let policy = AttemptPolicy::builder().timeout(ATTEMPT).build()?;
    let inner = AttemptTimeoutLayer::http(policy)
        .dependency(NAME)
        .layer(inner);
    let inner = retry.dependency(NAME).layer(inner);
    Ok(deadline.dependency(NAME).layer(inner))
}
