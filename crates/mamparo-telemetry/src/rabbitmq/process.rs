//! A span for each attempt to handle a message.

use std::fmt::{self, Debug};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use mamparo_core::{BoxError, Classify, clock};
use mamparo_rabbitmq::{Delivery, MessageClass};
use opentelemetry::KeyValue;
use opentelemetry::trace::{SpanKind, Tracer, TracerProvider};
use pin_project::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use super::open::{Described, OpenSpan, TRACEPARENT};
use crate::durable::kept;
use crate::outcome::{Ended, Outcome};
use crate::semconv::{ATTEMPT_VERDICT, MESSAGE_ATTEMPT};
use crate::source::{Pulse, Spans, within};

/// Handles each message inside of a `CONSUMER` span, which begins a trace and links the span that the message was made in, by its
/// header `traceparent`.
///
/// It stands around the layers that protect the handler, and is current in them. An error is judged as the consumer judges it; `cancelled`
/// where the handler was cut by the consumer's time limit or at a stop, `panic` where it panicked.
#[derive(Clone)]
pub struct ProcessLayer<C = MessageClass> {
    shared: Arc<Shared<C>>,
}

#[derive(Clone)]
struct Shared<C> {
    spans: Spans,
    pulse: Pulse,
    classifier: C,
}

impl ProcessLayer {
    /// Asks the global tracer provider, once there is one.
    #[must_use]
    pub fn new() -> Self {
        Self::judged_by(MessageClass)
    }
}

impl Default for ProcessLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl<C> ProcessLayer<C> {
    /// The same, with the classifier that the consumer has.
    #[must_use]
    pub fn judged_by(classifier: C) -> Self {
        Self {
            shared: Arc::new(Shared {
                spans: Spans::global(),
                pulse: Pulse::new(),
                classifier,
            }),
        }
    }
}

impl<C: Clone> ProcessLayer<C> {
    /// Uses this provider.
    #[must_use]
    pub fn tracer_provider<T>(mut self, provider: &impl TracerProvider<Tracer = T>) -> Self
    where
        T: Tracer<Span: Send + Sync + 'static> + Send + Sync + 'static,
    {
        Arc::make_mut(&mut self.shared).spans.give(provider);
        self
    }
}

impl<C> Debug for ProcessLayer<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessLayer")
            .field("spans", &self.shared.spans)
            .finish_non_exhaustive()
    }
}

impl<S, C> Layer<S> for ProcessLayer<C> {
    type Service = Process<S, C>;

    fn layer(&self, inner: S) -> Process<S, C> {
        Process {
            inner,
            shared: Arc::clone(&self.shared),
        }
    }
}

/// The service that [`ProcessLayer`] makes.
pub struct Process<S, C = MessageClass> {
    inner: S,
    shared: Arc<Shared<C>>,
}

impl<S: Clone, C> Clone for Process<S, C> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<S: Debug, C> Debug for Process<S, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}

impl<S, C> Service<Delivery> for Process<S, C>
where
    S: Service<Delivery, Error: Into<BoxError>>,
    C: Classify<S::Response>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = ProcessFuture<S::Future, C>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, delivery: Delivery) -> Self::Future {
        let span = self.shared.start(&delivery);
        let inner = within(span.context(), || self.inner.call(delivery));
        let shared = Arc::clone(&self.shared);
        ProcessFuture {
            inner,
            span,
            shared,
        }
    }
}

impl<C> Shared<C> {
    fn start(&self, delivery: &Delivery) -> OpenSpan {
        let began = clock::now();
        let message = Described {
            operation: ("process", "process"),
            exchange: delivery.exchange(),
            routing_key: delivery.routing_key(),
            queue: delivery.queue(),
            id: delivery.message_id(),
        };
        let describe = || {
            let mut attributes = message.attributes();
            let attempt = i64::from(delivery.attempt());
            attributes.push(KeyValue::new(MESSAGE_ATTEMPT, attempt));
            attributes
        };
        let made_in = delivery.header(TRACEPARENT).and_then(kept);
        let (ask, name) = (self.pulse.is_due(began), || message.name());
        let kind = SpanKind::Consumer;
        let started = self
            .spans
            .start_linking(ask, true, made_in, name, kind, describe);
        OpenSpan::new(started, began)
    }
}

/// The future of one attempt.
#[pin_project]
#[must_use = "futures do nothing unless polled"]
pub struct ProcessFuture<F, C> {
    #[pin]
    inner: F,
    // After the inner future: its spans end before this one does.
    span: OpenSpan,
    shared: Arc<Shared<C>>,
}

impl<F, C> Debug for ProcessFuture<F, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessFuture")
            .field("span", &self.span)
            .finish_non_exhaustive()
    }
}

impl<F, C, Res, E> Future for ProcessFuture<F, C>
where
    F: Future<Output = Result<Res, E>>,
    E: Into<BoxError>,
    C: Classify<Res>,
{
    type Output = Result<Res, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let answer = ready!(within(this.span.context(), || this.inner.poll(cx)));
        let answer = answer.map_err(Into::into);
        let verdict = this.shared.classifier.head(answer.as_ref()).verdict;
        let outcome = Outcome::of(
            match &answer {
                Ok(_) => Ended::Answer(verdict),
                Err(error) => Ended::Error(verdict, error),
            },
            None,
        );
        let verdict = KeyValue::new(ATTEMPT_VERDICT, verdict.as_str());
        this.span.end([verdict], outcome.error);
        Poll::Ready(answer)
    }
}
