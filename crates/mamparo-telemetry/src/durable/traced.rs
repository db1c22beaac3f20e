//! A span for each send of the engine, linked across the wait.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use mamparo_core::BoxError;
use mamparo_core::clock::{self, Instant};
use mamparo_durable::backend::Request;
use mamparo_durable::machine::{Answer, Outcome};
use opentelemetry::KeyValue;
use opentelemetry::trace::{SpanKind, Tracer, TracerProvider};
use pin_project::pin_project;
use tower_service::Service;

use super::context::kept;
use crate::semconv::{
    DEFER_ATTEMPT, DEFER_KIND, DEFER_OUTCOME, DEFER_SEQ, DEFER_TRANSACTION, DEPENDENCY,
};
use crate::source::{Pulse, Spans, Started, within};

/// Sends the engine's requests inside of a `CONSUMER` span, `mamparo.defer {kind}`, which begins a trace and links the span that
/// the transaction [began in](super::traced).
///
/// It is current in the service inside, so that what a client stack sends lies below it.
#[derive(Clone, Debug)]
pub struct Traced<S> {
    inner: S,
    source: Arc<(Spans, Pulse)>,
}

impl<S> Traced<S> {
    /// Asks the global tracer provider, once there is one.
    pub fn new(inner: S) -> Self {
        Self {
            inner,
            source: Arc::new((Spans::global(), Pulse::new())),
        }
    }

    /// Uses this provider.
    #[must_use]
    pub fn tracer_provider<T>(mut self, provider: &impl TracerProvider<Tracer = T>) -> Self
    where
        T: Tracer<Span: Send + Sync + 'static> + Send + Sync + 'static,
    {
        Arc::make_mut(&mut self.source).0.give(provider);
        self
    }
}

impl<S> Service<Request> for Traced<S>
where
    S: Service<Request, Response = Option<Answer>, Error: Into<BoxError>>,
{
    type Response = Option<Answer>;
    type Error = BoxError;
    type Future = TracedFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let (spans, pulse) = &*self.source;
        let began = clock::now();
        let original = request.trace.as_ref().and_then(|it| kept(it.as_str()));
        let name = || format!("mamparo.defer {}", request.kind.as_str());
        let describe = || described(&request);
        let ask = pulse.is_due(began);
        let started = spans.start_linking(ask, true, original, name, SpanKind::Consumer, describe);
        let span = OpenSpan { started, began };
        let inner = within(span.context(), || self.inner.call(request));
        TracedFuture { inner, span }
    }
}

/// The future of one send.
#[pin_project]
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct TracedFuture<F> {
    #[pin]
    inner: F,
    // After the inner future: its spans end before this one does.
    span: OpenSpan,
}

impl<F, E> Future for TracedFuture<F>
where
    F: Future<Output = Result<Option<Answer>, E>>,
    E: Into<BoxError>,
{
    type Output = Result<Option<Answer>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let answer = ready!(within(this.span.context(), || this.inner.poll(cx)));
        this.span.end(match &answer {
            Ok(Some(answer)) => answer.outcome.as_str(),
            Ok(None) => "sent",
            Err(_) => FAILED,
        });
        Poll::Ready(answer.map_err(Into::into))
    }
}

/// The outcome of a send that has no answer.
const FAILED: &str = "failed";

/// A span that was started, until it is ended or dropped: then the send was cancelled.
#[derive(Debug)]
struct OpenSpan {
    started: Option<Started>,
    began: Instant,
}

impl OpenSpan {
    fn context(&self) -> Option<&opentelemetry::Context> {
        self.started.as_ref().and_then(Started::context)
    }

    fn end(&mut self, outcome: &'static str) {
        let Some(started) = self.started.take() else {
            return;
        };
        if let Some(recorded) = started.recorded() {
            let error = [FAILED, Outcome::Technical.as_str()]
                .contains(&outcome)
                .then(|| outcome.into());
            let outcome = KeyValue::new(DEFER_OUTCOME, outcome);
            recorded.end(clock::now() - self.began, [outcome], error);
        }
    }
}

impl Drop for OpenSpan {
    fn drop(&mut self) {
        self.end("cancelled");
    }
}

fn described(request: &Request) -> Vec<KeyValue> {
    let text = |text: &str| text.to_owned();
    let mut attributes = vec![
        KeyValue::new(DEFER_TRANSACTION, text(request.id.as_str())),
        KeyValue::new(DEFER_KIND, text(request.kind.as_str())),
        KeyValue::new(DEFER_ATTEMPT, i64::from(request.attempt)),
        KeyValue::new(DEFER_SEQ, i64::from(request.seq)),
    ];
    if let Some(dependency) = &request.dependency {
        attributes.push(KeyValue::new(DEPENDENCY, text(dependency.as_str())));
    }
    attributes
}
