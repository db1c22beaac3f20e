//! The order, spelled once.

use mamparo_core::http::Http;
use tower_layer::Layer;

use super::Stack;
use crate::attempt_timeout::{AttemptTimeout, AttemptTimeoutLayer};
use crate::deadline::{DeadlineLayer, DeadlineService};
use crate::idempotency_key::{IdempotencyKey, IdempotencyKeyLayer};
use crate::retry::{Retry, RetryLayer};
use crate::wire::HttpWire;

/// What stands between the two layers of telemetry, around `S`.
pub type Ordered<S> =
    DeadlineService<IdempotencyKey<Retry<AttemptTimeout<S, HttpWire>, Http>>, HttpWire>;

impl<S, O, A> Layer<S> for Stack<O, A>
where
    A: Layer<S>,
    A::Service: Clone,
    O: Layer<Ordered<A::Service>>,
{
    type Service = O::Service;

    // Innermost first, as each one is put around what stands so far.
    fn layer(&self, transport: S) -> O::Service {
        // One span and one traceparent per physical send.
        let service = self.attempt_telemetry.layer(transport);
        // One limit per physical send, and the header written anew with what remains.
        let service = self.attempt_timeout().layer(service);
        // The one owner of resends.
        let service = self.retrying().layer(service);
        // One key per operation, before anything can resend.
        let service = self.keyed().layer(service);
        // Its clock starts before any wait.
        let service = self.bounded().layer(service);
        // The denominator: one record per operation, whatever happens inside.
        self.operation_telemetry.layer(service)
    }
}

impl<O, A> Stack<O, A> {
    fn attempt_timeout(&self) -> AttemptTimeoutLayer<HttpWire> {
        AttemptTimeoutLayer::with_wire(self.attempt, self.wire.clone())
            .dependency(self.dependency)
            .observed(self.observer.clone())
    }

    fn retrying(&self) -> RetryLayer<Http> {
        let http = match self.key.header() {
            Some(name) => self.http.clone().with_key_header(name.clone()),
            None => self.http.clone(),
        };
        RetryLayer::new(self.retry.clone(), http)
            .dependency(self.dependency)
            .observed(self.observer.clone())
    }

    fn keyed(&self) -> IdempotencyKeyLayer {
        IdempotencyKeyLayer::new(self.key.clone())
            .dependency(self.dependency)
            .observed(self.observer.clone())
    }

    fn bounded(&self) -> DeadlineLayer<HttpWire> {
        DeadlineLayer::with_wire(self.deadline, self.wire.clone())
            .dependency(self.dependency)
            .observed(self.observer.clone())
    }
}
