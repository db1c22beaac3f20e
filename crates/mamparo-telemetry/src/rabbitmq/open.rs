//! A span of one message, until it is ended or dropped.

use std::borrow::Cow;
use std::thread;

use mamparo_core::clock::{self, Instant};
use opentelemetry::{Context, KeyValue};

use crate::semconv::{
    MESSAGING_DESTINATION_NAME, MESSAGING_MESSAGE_ID, MESSAGING_OPERATION_NAME,
    MESSAGING_OPERATION_TYPE, MESSAGING_RABBITMQ_ROUTING_KEY, MESSAGING_SYSTEM,
    MESSAGING_SYSTEM_RABBITMQ,
};
use crate::source::Started;

/// The header that carries a span's identity (W3C Trace Context level 2, §3.2).
pub(super) const TRACEPARENT: &str = "traceparent";

/// What was done with a message is not known: whoever waited for it went away.
const CANCELLED: &str = "cancelled";

const PANIC: &str = "panic";

#[derive(Debug)]
pub(super) struct OpenSpan {
    started: Option<Started>,
    began: Instant,
}

impl OpenSpan {
    pub(super) const fn new(started: Option<Started>, began: Instant) -> Self {
        Self { started, began }
    }

    pub(super) const fn started(&self) -> Option<&Started> {
        self.started.as_ref()
    }

    pub(super) fn context(&self) -> Option<&Context> {
        self.started().and_then(Started::context)
    }

    pub(super) fn end(
        &mut self,
        attributes: impl IntoIterator<Item = KeyValue>,
        error: Option<Cow<'static, str>>,
    ) {
        if let Some(started) = self.started.take()
            && let Some(recorded) = started.recorded()
        {
            recorded.end(clock::now() - self.began, attributes, error);
        }
    }
}

impl Drop for OpenSpan {
    fn drop(&mut self) {
        let why = if thread::panicking() {
            PANIC
        } else {
            CANCELLED
        };
        self.end([], Some(why.into()));
    }
}

/// A message, as a span describes it.
#[derive(Clone, Copy)]
pub(super) struct Described<'a> {
    /// What is done with it, by its own name and by the conventions'.
    pub(super) operation: (&'static str, &'static str),
    pub(super) exchange: &'a str,
    pub(super) routing_key: &'a str,
    /// Of who takes it.
    pub(super) queue: &'a str,
    pub(super) id: Option<&'a str>,
}

impl Described<'_> {
    pub(super) fn name(&self) -> String {
        format!("{} {}", self.operation.0, self.destination())
    }

    /// Parts that are empty are left out, and so is a queue that is called as the key.
    fn destination(&self) -> String {
        let queue = if self.queue == self.routing_key {
            ""
        } else {
            self.queue
        };
        let parts = [self.exchange, self.routing_key, queue];
        let there: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        if there.is_empty() {
            return "amq.default".to_owned();
        }
        there.join(":")
    }

    pub(super) fn attributes(&self) -> Vec<KeyValue> {
        let (name, kind) = self.operation;
        let mut attributes = vec![
            KeyValue::new(MESSAGING_SYSTEM, MESSAGING_SYSTEM_RABBITMQ),
            KeyValue::new(MESSAGING_OPERATION_NAME, name),
            KeyValue::new(MESSAGING_OPERATION_TYPE, kind),
            KeyValue::new(MESSAGING_DESTINATION_NAME, self.destination()),
        ];
        if !self.routing_key.is_empty() {
            let key = self.routing_key.to_owned();
            attributes.push(KeyValue::new(MESSAGING_RABBITMQ_ROUTING_KEY, key));
        }
        if let Some(id) = self.id {
            attributes.push(KeyValue::new(MESSAGING_MESSAGE_ID, id.to_owned()));
        }
        attributes
    }
}
