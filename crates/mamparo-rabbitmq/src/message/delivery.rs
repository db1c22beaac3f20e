//! A message, as a handler gets it.

use bytes::Bytes;
use lapin::BasicProperties;
use lapin::types::AMQPValue;

use super::headers;

/// A message that was delivered, and which attempt this is. A clone is cheap but for its properties.
#[derive(Clone, Debug)]
pub struct Delivery {
    pub(crate) queue: String,
    pub(crate) exchange: String,
    pub(crate) routing_key: String,
    pub(crate) attempt: u32,
    pub(crate) redelivered: bool,
    pub(crate) properties: BasicProperties,
    pub(crate) body: Bytes,
}

impl Delivery {
    /// Returns what it says.
    #[must_use]
    pub const fn body(&self) -> &Bytes {
        &self.body
    }

    /// Returns which attempt this is, from 1. One that was interrupted, by a crash for example, has the number of the next.
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Tells whether it may have been delivered before without having been settled.
    #[must_use]
    pub const fn is_redelivered(&self) -> bool {
        self.redelivered
    }

    /// Returns the queue that it was taken from.
    #[must_use]
    pub fn queue(&self) -> &str {
        &self.queue
    }

    /// Returns the exchange that its producer published to, whatever way it took since.
    #[must_use]
    pub fn exchange(&self) -> &str {
        self.header(headers::ORIGIN_EXCHANGE)
            .unwrap_or(&self.exchange)
    }

    /// Returns the routing key that its producer used.
    #[must_use]
    pub fn routing_key(&self) -> &str {
        self.header(headers::ORIGIN_ROUTING_KEY)
            .unwrap_or(&self.routing_key)
    }

    /// Returns its id, if its producer gave it one.
    #[must_use]
    pub fn message_id(&self) -> Option<&str> {
        self.properties.message_id().as_ref().map(|id| id.as_str())
    }

    /// Returns a header that is a text, such as `traceparent`; `None` too if it is no UTF-8.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.properties, name)
    }

    /// Returns all that its producer said about it.
    #[must_use]
    pub const fn properties(&self) -> &BasicProperties {
        &self.properties
    }
}

/// A header that is a text.
pub(crate) fn header<'a>(properties: &'a BasicProperties, name: &str) -> Option<&'a str> {
    text(properties.headers().as_ref()?.inner().get(name)?)
}

/// A value that is a text.
pub(crate) fn text(value: &AMQPValue) -> Option<&str> {
    match value {
        AMQPValue::LongString(text) => std::str::from_utf8(text.as_bytes()).ok(),
        AMQPValue::ShortString(text) => Some(text.as_str()),
        _ => None,
    }
}
