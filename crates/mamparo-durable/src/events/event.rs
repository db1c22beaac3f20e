//! An event, checked.

use bytes::Bytes;
use mamparo_core::InvalidSetting;
use mamparo_core::clock::SystemClock;
use serde::{Deserialize, Serialize};

use crate::limits::{
    MAX_EVENT_BYTES, MAX_EVENT_HEADER_BYTES, MAX_EVENT_HEADERS, MAX_EVENT_NAME_BYTES,
};
use crate::machine::{Label, Utc};

/// Something that happened, for others to hear of.
///
/// ```
/// use mamparo_durable::events::Event;
///
/// let event = Event::builder("order-7/placed")
///     .key("order-7")
///     .to("orders", "order.placed")
///     .content_type("application/json")
///     .header("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
///     .payload(r#"{"order":7}"#)
///     .build()?;
/// assert_eq!(event.key(), Some("order-7"));
/// # Ok::<(), mamparo_core::InvalidSetting>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    id: String,
    key: Option<String>,
    destination: String,
    routing_key: String,
    head: Head,
    payload: Bytes,
    created_at: Utc,
}

/// What else is said about it, stored as one text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content_type: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    headers: Vec<(String, String)>,
}

impl Event {
    /// Starts an event. Consumers know it again by its id, so that its second delivery changes nothing.
    ///
    /// A good id says what happened to what, such as `order-7/cancelled`: then a second event of the same is dropped, too.
    pub fn builder(id: impl Into<String>) -> EventBuilder {
        EventBuilder {
            id: id.into(),
            key: None,
            destination: String::new(),
            routing_key: String::new(),
            head: Head::default(),
            payload: Bytes::new(),
            created_at: None,
        }
    }

    /// Returns the id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the key: events of one key are published in order. `None` is no order.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// Returns the exchange or topic that it goes to.
    #[must_use]
    pub fn destination(&self) -> &str {
        &self.destination
    }

    /// Returns the routing key.
    #[must_use]
    pub fn routing_key(&self) -> &str {
        &self.routing_key
    }

    /// Returns what the payload is, such as `application/json`.
    #[must_use]
    pub fn content_type(&self) -> Option<&str> {
        self.head.content_type.as_deref()
    }

    /// Returns the headers, the trace context among them.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let headers = self.head.headers.iter();
        headers.map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns the payload.
    #[must_use]
    pub const fn payload(&self) -> &Bytes {
        &self.payload
    }

    /// Returns when it was made.
    #[must_use]
    pub const fn created_at(&self) -> Utc {
        self.created_at
    }

    /// Returns content type and headers as a store keeps them: one text. [`StoredEvent::read`] reads it.
    #[must_use]
    pub fn head(&self) -> String {
        serde_json::to_string(&self.head).unwrap_or_default()
    }
}

/// Makes an [`Event`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct EventBuilder {
    id: String,
    key: Option<String>,
    destination: String,
    routing_key: String,
    head: Head,
    payload: Bytes,
    created_at: Option<Utc>,
}

impl EventBuilder {
    /// Sets the key; none by default. Events of one key are published in the order in which they were put.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Sets where it goes: an exchange or topic, and a routing key. RabbitMQ's exchange without a name takes the routing key for a queue.
    pub fn to(mut self, destination: impl Into<String>, routing_key: impl Into<String>) -> Self {
        self.destination = destination.into();
        self.routing_key = routing_key.into();
        self
    }

    /// Sets what the payload is, such as `application/json`.
    pub fn content_type(mut self, content_type: impl Into<String>) -> Self {
        self.head.content_type = Some(content_type.into());
        self
    }

    /// Adds a header. The trace context goes into `traceparent` and `tracestate` (W3C Trace Context).
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.head.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the payload.
    pub fn payload(mut self, payload: impl Into<Bytes>) -> Self {
        self.payload = payload.into();
        self
    }

    /// Sets when it was made; now by default.
    pub const fn created_at(mut self, at: Utc) -> Self {
        self.created_at = Some(at);
        self
    }

    /// Checks it.
    ///
    /// # Errors
    ///
    /// [`InvalidSetting`] when the id or the key is empty, a name is longer than [`MAX_EVENT_NAME_BYTES`] or has a control character, the
    /// payload is larger than [`MAX_EVENT_BYTES`], or there are more headers than [`MAX_EVENT_HEADERS`] or [`MAX_EVENT_HEADER_BYTES`].
    pub fn build(self) -> Result<Event, InvalidSetting> {
        if self.id.is_empty() {
            return Err(InvalidSetting::new("id", "\"\"", "must not be empty"));
        }
        if self.key.as_deref() == Some("") {
            return Err(InvalidSetting::new("key", "\"\"", "must not be empty"));
        }
        named("id", &self.id)?;
        named("key", self.key.as_deref().unwrap_or_default())?;
        named("destination", &self.destination)?;
        named("routing_key", &self.routing_key)?;
        named(
            "content_type",
            self.head.content_type.as_deref().unwrap_or_default(),
        )?;
        self.head.check()?;
        if self.payload.len() > MAX_EVENT_BYTES {
            let value = format!("{} bytes", self.payload.len());
            return Err(InvalidSetting::new(
                "payload",
                value,
                "must have at most 262144 bytes",
            ));
        }
        Ok(Event {
            id: self.id,
            key: self.key,
            destination: self.destination,
            routing_key: self.routing_key,
            head: self.head,
            payload: self.payload,
            created_at: self.created_at.unwrap_or_else(|| Utc::of(&SystemClock)),
        })
    }
}

/// The columns of an event, as a store keeps them.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "stores make it")]
pub struct StoredEvent {
    /// Its id.
    pub id: String,
    /// Its key, if it has one.
    pub key: Option<String>,
    /// The exchange or topic.
    pub destination: String,
    /// The routing key.
    pub routing_key: String,
    /// Content type and headers: [`Event::head`].
    pub head: String,
    /// The payload.
    pub payload: Vec<u8>,
    /// When it was made, in milliseconds since 1970.
    pub created_at: i64,
}

impl StoredEvent {
    /// Makes the event.
    ///
    /// # Errors
    ///
    /// Why the columns are no event: the row is parked for it, and stops no other.
    pub fn read(self) -> Result<Event, Label> {
        let event = self.event();
        event.map_err(|error| Label::from(format!("it can't be read: {error}")))
    }

    fn event(self) -> Result<Event, InvalidSetting> {
        let head = serde_json::from_str(&self.head).map_err(|error| {
            InvalidSetting::new("head", error, "must be what a store has written")
        })?;
        let event = EventBuilder {
            id: self.id,
            key: self.key,
            destination: self.destination,
            routing_key: self.routing_key,
            head,
            payload: self.payload.into(),
            created_at: Some(Utc::from_millis(self.created_at)?),
        };
        event.build()
    }
}

impl Head {
    fn check(&self) -> Result<(), InvalidSetting> {
        let refused = |value, reason| Err(InvalidSetting::new("headers", value, reason));
        if self.headers.len() > MAX_EVENT_HEADERS {
            return refused(self.headers.len().to_string(), "must be at most 64");
        }
        let mut bytes = 0;
        for (name, value) in &self.headers {
            named("header", name)?;
            if value.contains('\0') {
                return refused(name.clone(), "must have no NUL in them");
            }
            bytes += name.len() + value.len();
        }
        if bytes > MAX_EVENT_HEADER_BYTES {
            return refused(format!("{bytes} bytes"), "must have at most 16384 bytes");
        }
        Ok(())
    }
}

fn named(setting: &'static str, name: &str) -> Result<(), InvalidSetting> {
    if name.len() > MAX_EVENT_NAME_BYTES {
        let value = format!("{} bytes", name.len());
        return Err(InvalidSetting::new(
            setting,
            value,
            "must have at most 255 bytes",
        ));
    }
    if name.chars().any(char::is_control) {
        let reason = "must have no control characters";
        return Err(InvalidSetting::new(setting, format!("{name:?}"), reason));
    }
    Ok(())
}
