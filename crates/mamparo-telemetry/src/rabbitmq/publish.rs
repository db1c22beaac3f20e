//! A span for each message that is published.

use std::sync::Arc;

use mamparo_core::clock;
use mamparo_durable::backend::BoxFuture;
use mamparo_durable::events::{self, Event, Published};
use mamparo_rabbitmq::{Message, Publisher, RabbitError};
use opentelemetry::trace::{FutureExt as _, SpanKind, Tracer, TracerProvider};

use super::open::{Described, OpenSpan, TRACEPARENT};
use crate::durable::kept;
use crate::http::traceparent;
use crate::source::{Pulse, Spans};

/// Publishes each message inside of a span, and writes its identity into the message's header `traceparent`, for who handles it to link.
///
/// A message that has a `traceparent` keeps it, and the span links it: a relay sends long after an event was made. Clones share the
/// publisher.
#[derive(Clone, Debug)]
pub struct TracedPublisher {
    inner: Publisher,
    source: Arc<(Spans, Pulse)>,
}

impl TracedPublisher {
    /// Asks the global tracer provider, once there is one.
    #[must_use]
    pub fn new(inner: Publisher) -> Self {
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

    /// Returns the publisher inside, which declares and closes.
    #[must_use]
    pub const fn publisher(&self) -> &Publisher {
        &self.inner
    }

    /// Publishes a message, and waits until the broker has confirmed it.
    ///
    /// # Errors
    ///
    /// As [`Publisher::publish`].
    pub async fn publish(
        &self,
        exchange: &str,
        routing_key: &str,
        mut message: Message,
    ) -> Result<(), RabbitError> {
        let made_in = message.text(TRACEPARENT);
        let id = message.message_id();
        let mut span = self.start((exchange, routing_key), id, made_in);
        if made_in.is_none()
            && let Some(started) = span.started()
        {
            let identity = started.with_identity(traceparent);
            message = message.header(TRACEPARENT, &String::from_utf8_lossy(&identity));
        }
        let context = span.context().cloned();
        let publishing = self.inner.publish(exchange, routing_key, message);
        let published = match context {
            Some(context) => publishing.with_context(context).await,
            None => publishing.await,
        };
        let error = published.as_ref().err();
        span.end([], error.map(|error| error.trouble().as_str().into()));
        published
    }

    fn start(&self, to: (&str, &str), id: Option<&str>, made_in: Option<&str>) -> OpenSpan {
        let (began, (spans, pulse)) = (clock::now(), &*self.source);
        let message = Described {
            operation: ("publish", "send"),
            exchange: to.0,
            routing_key: to.1,
            queue: "",
            id,
        };
        let kind = match made_in {
            Some(_) => SpanKind::Client,
            None => SpanKind::Producer,
        };
        let (ask, linked) = (pulse.is_due(began), made_in.and_then(kept));
        let (name, describe) = (|| message.name(), || message.attributes());
        let started = spans.start_linking(ask, false, linked, name, kind, describe);
        OpenSpan::new(started, began)
    }
}

/// The publisher of a relay: one span for each event.
impl events::Publisher for TracedPublisher {
    fn publish<'a>(&'a self, event: &'a Event) -> BoxFuture<'a, Published> {
        Box::pin(async move {
            let mut span = self.start_event(event);
            let published = events::Publisher::publish(&self.inner, event).await;
            let error = match published {
                Published::Confirmed => None,
                Published::Refused(_) => Some("refused".into()),
                Published::NotNow(_) => Some("unconfirmed".into()),
            };
            span.end([], error);
            published
        })
    }
}

impl TracedPublisher {
    /// An event is sent as it was put: without a `traceparent`, it has none.
    fn start_event(&self, event: &Event) -> OpenSpan {
        let mut headers = event.headers();
        let made_in = headers.find(|(name, _)| *name == TRACEPARENT);
        let made_in = made_in.map_or("", |(_, value)| value);
        let to = (event.destination(), event.routing_key());
        self.start(to, Some(event.id()), Some(made_in))
    }
}
