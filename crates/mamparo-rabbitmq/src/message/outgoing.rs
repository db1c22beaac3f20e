//! A message, as a producer makes it.

use bytes::Bytes;
use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldTable};

use crate::link::short;

/// Kept on disk.
const PERSISTENT: u8 = 2;

/// A message to publish: a body, and what is said about it. It is persistent.
///
/// ```
/// use mamparo_rabbitmq::Message;
///
/// let message = Message::new("{}").content_type("application/json").id("order-7").header("tenant", "blue");
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Message {
    pub(crate) body: Bytes,
    pub(crate) properties: BasicProperties,
}

impl Message {
    /// Makes a message of a body.
    pub fn new(body: impl Into<Bytes>) -> Self {
        Self::with_properties(body, BasicProperties::default())
    }

    /// Makes a message of a body and of properties; names in them that are longer than 255 bytes are cut.
    pub fn with_properties(body: impl Into<Bytes>, properties: BasicProperties) -> Self {
        Self {
            body: body.into(),
            properties: properties.with_delivery_mode(PERSISTENT),
        }
    }

    /// Sets what the body is, such as `application/json`.
    pub fn content_type(mut self, content_type: &str) -> Self {
        self.properties = self.properties.with_content_type(short(content_type));
        self
    }

    /// Sets its id, by which consumers know it again; at most 255 bytes.
    pub fn id(mut self, id: &str) -> Self {
        self.properties = self.properties.with_message_id(short(id));
        self
    }

    /// Sets what kind of event it is.
    pub fn kind(mut self, kind: &str) -> Self {
        self.properties = self.properties.with_type(short(kind));
        self
    }

    /// Returns its id, if it has one.
    #[must_use]
    pub fn message_id(&self) -> Option<&str> {
        self.properties.message_id().as_ref().map(|id| id.as_str())
    }

    /// Returns a header that is a text, such as `traceparent`.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        super::header(&self.properties, name)
    }

    /// Sets a header that is a text.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        let mut headers: FieldTable = self.properties.headers().clone().unwrap_or_default();
        headers.insert(short(name), AMQPValue::LongString(value.into()));
        self.properties = self.properties.with_headers(headers);
        self
    }
}
