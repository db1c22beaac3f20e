//! A service's events, published.

use mamparo_durable::backend::BoxFuture;
use mamparo_durable::events::{self, Event, Published};

use super::Publisher;
use crate::{Message, RabbitError, Trouble};

/// The publisher of a [`Relay`](mamparo_durable::events::Relay): an event's destination is the exchange.
///
/// The message has the event's id, content type, headers, and the seconds since 1970 when it was made. Many are under way together, as
/// many as [`unconfirmed`](crate::SettingsBuilder::unconfirmed) allows. Keep
/// [`publish_timeout`](crate::SettingsBuilder::publish_timeout) below the relay's, so that it hears why.
impl events::Publisher for Publisher {
    fn publish<'a>(&'a self, event: &'a Event) -> BoxFuture<'a, Published> {
        Box::pin(async move {
            let (exchange, routing_key) = (event.destination(), event.routing_key());
            match self.publish(exchange, routing_key, message(event)).await {
                Ok(()) => Published::Confirmed,
                Err(error) => said(&error),
            }
        })
    }
}

fn message(event: &Event) -> Message {
    let mut message = Message::new(event.payload().clone()).id(event.id());
    if let Some(content_type) = event.content_type() {
        message = message.content_type(content_type);
    }
    for (name, value) in event.headers() {
        message = message.header(name, value);
    }
    let seconds = u64::try_from(event.created_at().millis() / 1000).unwrap_or_default();
    message.properties = message.properties.with_timestamp(seconds);
    message
}

/// What is about the message itself is for good. A broker that does not let us in may do so later: its events aren't at fault.
fn said(error: &RabbitError) -> Published {
    match error.trouble() {
        Trouble::Unroutable | Trouble::Mismatch => Published::Refused(error.to_string()),
        _ => Published::NotNow(error.to_string()),
    }
}
