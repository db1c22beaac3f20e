//! One message at a time, many at once.

use std::sync::Arc;
use std::time::Duration;

use lapin::options::BasicPublishOptions;
use lapin::protocol::{AMQPError, AMQPErrorKind, AMQPSoftError};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Confirmation, ErrorKind};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::link::{Link, RabbitError, Trouble, Waits, short, trouble};
use crate::topology::{declare, declare_kept};
use crate::{Message, Settings, Topology};

/// Publishes over one connection, which is made when it is needed and again when it is lost. Clones share it.
///
/// A message is published when the broker has confirmed it: a quorum of it has it on disk. One that goes to no queue is an
/// error. Where the connection is lost before the confirmation, it is published again, so that consumers may see it twice.
///
/// ```no_run
/// use mamparo_rabbitmq::{Message, Publisher, Settings};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let publisher = Publisher::new(Settings::builder("amqp://guest:guest@localhost/%2f").build()?);
/// publisher.publish("orders", "order.placed", Message::new("{}").id("order-7")).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Publisher {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    link: Link,
    unconfirmed: Semaphore,
}

/// What became of one try.
enum Tried {
    /// The broker has it.
    Confirmed,
    /// It may have it, and may be asked again.
    Again(RabbitError),
    /// The broker refuses it, or another one that is under way; the refusal closes the channel for all.
    Suspected(RabbitError),
    /// No try would do better.
    Refused(RabbitError),
}

impl Publisher {
    /// Makes one, which connects when it has something to publish.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let unconfirmed = Semaphore::new(settings.unconfirmed);
        let link = Link::new(settings);
        Self {
            shared: Arc::new(Shared { link, unconfirmed }),
        }
    }

    /// Publishes a message, and waits until the broker has confirmed it. The default exchange, whose name is empty, takes
    /// the routing key for the name of a queue.
    ///
    /// Dropped before it ends, the message may have been published.
    ///
    /// # Errors
    ///
    /// [`RabbitError`]: there is no such exchange, no queue takes it, or it was not confirmed within
    /// [`publish_timeout`](crate::SettingsBuilder::publish_timeout).
    pub async fn publish(
        &self,
        exchange: &str,
        routing_key: &str,
        message: Message,
    ) -> Result<(), RabbitError> {
        well_formed(&message)?;
        let limit = self.shared.link.settings().publish_timeout;
        let mut last = None;
        let all = self.until_confirmed(exchange, routing_key, &message, &mut last);
        match timeout(limit, all).await {
            Ok(done) => done,
            Err(_) => Err(unconfirmed(limit, last)),
        }
    }

    /// Connects, if it isn't, and declares a topology.
    ///
    /// # Errors
    ///
    /// [`RabbitError`]: no connection, or queues that exist otherwise, each with the difference.
    pub async fn declare(&self, topology: &Topology) -> Result<(), RabbitError> {
        let live = self.shared.link.live().await?;
        declare(&live.connection, topology).await
    }

    /// The same, a queue that keeps some copies for people to look up, and nothing else.
    pub(crate) async fn declare_kept(&self, queue: &str) -> Result<(), RabbitError> {
        let live = self.shared.link.live().await?;
        declare_kept(&live.connection, queue).await
    }

    /// Closes the connection; the next message opens another.
    pub async fn close(&self) {
        self.shared.link.close().await;
    }

    async fn until_confirmed(
        &self,
        exchange: &str,
        routing_key: &str,
        message: &Message,
        last: &mut Option<RabbitError>,
    ) -> Result<(), RabbitError> {
        let all = u32::try_from(self.shared.link.settings().unconfirmed).unwrap_or(u32::MAX);
        let (mut places, mut waits) = (1, Waits::default());
        loop {
            // Never closed.
            let place = self.shared.unconfirmed.acquire_many(places).await;
            match self.once(exchange, routing_key, message).await {
                Tried::Confirmed => return Ok(()),
                Tried::Refused(error) => return Err(error),
                Tried::Suspected(error) if places == all => return Err(error),
                // Under way alone, it is known whether it is the one.
                Tried::Suspected(error) => (places, *last) = (all, Some(error)),
                Tried::Again(error) => *last = Some(error),
            }
            drop(place);
            sleep(waits.next()).await;
        }
    }

    async fn once(&self, exchange: &str, routing_key: &str, message: &Message) -> Tried {
        let live = match self.shared.link.live().await {
            Ok(live) => live,
            Err(error) if error.is_transient() => return Tried::Again(error),
            Err(error) => return Tried::Refused(error),
        };
        let options = BasicPublishOptions {
            mandatory: true,
            ..BasicPublishOptions::default()
        };
        let confirmed = async {
            let sent = live.channel.basic_publish(
                short(exchange),
                short(routing_key),
                options,
                &message.body,
                message.properties.clone(),
            );
            sent.await?.await
        };
        let Some(confirmed) = live.answer(confirmed).await else {
            return Tried::Again(RabbitError::lost());
        };
        match confirmed {
            Ok(Confirmation::Ack(None)) => Tried::Confirmed,
            Ok(Confirmation::Ack(Some(back))) => {
                Tried::Refused(unroutable(exchange, routing_key, back.reply_text.as_str()))
            }
            Ok(Confirmation::Nack(_)) => Tried::Again(RabbitError::new(
                Trouble::Unavailable,
                "a queue does not take it now",
            )),
            Ok(Confirmation::NotRequested) => Tried::Again(RabbitError::new(
                Trouble::Unavailable,
                "the channel does not confirm",
            )),
            Err(error) => lost(error, exchange, message.body.len()),
        }
    }
}

fn unroutable(exchange: &str, routing_key: &str, said: &str) -> RabbitError {
    let message = format!(
        "no queue takes a message to the exchange \"{exchange}\" by the key \"{routing_key}\" ({said}): declare and bind one"
    );
    RabbitError::new(Trouble::Unroutable, message)
}

fn unconfirmed(limit: Duration, last: Option<RabbitError>) -> RabbitError {
    let why = last.map(|error| format!(": {error}")).unwrap_or_default();
    let message =
        format!("RabbitMQ has not confirmed a message within {limit:?}; it may have it{why}");
    RabbitError::new(Trouble::Unconfirmed, message)
}

/// Refuses what the broker would close the channel for, with all that is under way.
fn well_formed(message: &Message) -> Result<(), RabbitError> {
    let headers = message.properties.headers().iter();
    for (name, value) in headers.flat_map(FieldTable::inner) {
        let copies = ["CC", "BCC"].contains(&name.as_str());
        if copies && !matches!(value, AMQPValue::FieldArray(_)) {
            let message =
                format!("the header {name} must be an array of routing keys: RabbitMQ reads it");
            return Err(RabbitError::new(Trouble::Mismatch, message));
        }
    }
    Ok(())
}

/// The channel is closed for all who publish over it; only the one that is at fault is refused.
fn lost(error: lapin::Error, exchange: &str, length: usize) -> Tried {
    use AMQPErrorKind::Soft;
    let refusal = match error.kind() {
        ErrorKind::ProtocolError(refusal) => Some(refusal),
        _ => None,
    };
    let said = refusal.map_or("", |refusal| refusal.get_message().as_str());
    let fault = match refusal.map(AMQPError::kind) {
        Some(Soft(AMQPSoftError::NOTFOUND)) => Some(said.contains(&format!("'{exchange}'"))),
        // Bigger than the broker takes: it tells the length.
        Some(Soft(AMQPSoftError::PRECONDITIONFAILED)) if said.contains("message size") => {
            let mut words = said.split_whitespace();
            let told = words.find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
            Some(told == Some(&length.to_string()))
        }
        Some(Soft(AMQPSoftError::PRECONDITIONFAILED | AMQPSoftError::ACCESSREFUSED)) => None,
        _ => Some(false),
    };
    let told = trouble(error, "publishing");
    match fault {
        Some(true) => Tried::Refused(told),
        Some(false) => Tried::Again(told),
        None => Tried::Suspected(told),
    }
}
