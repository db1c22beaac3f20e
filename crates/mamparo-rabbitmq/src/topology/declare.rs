//! Tells the broker which queues there are, and hears which are otherwise.

use std::time::Duration;

use lapin::options::{ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Channel, Connection, ExchangeKind};

use super::Topology;
use crate::link::{RabbitError, Trouble, answered, short};

/// As many deliveries as nothing ever reaches: whoever looks at dead letters gives them back, which counts.
const ANY_NUMBER: i64 = 1_000_000_000;

/// As many messages as are kept for people to look up.
const MOST_KEPT: i64 = 10_000;

/// Declares the exchange and the queues, as often as one likes; a channel is closed by what the broker refuses, so it is
/// its own.
///
/// # Errors
///
/// Every queue that exists otherwise, with the difference; or what the broker says.
pub(crate) async fn declare(
    connection: &Connection,
    topology: &Topology,
) -> Result<(), RabbitError> {
    let mut channel = open_channel(connection).await?;
    let exchange = topology.exchange();
    let options = ExchangeDeclareOptions {
        durable: true,
        ..ExchangeDeclareOptions::default()
    };
    let declared = channel.exchange_declare(
        short(&exchange),
        ExchangeKind::Direct,
        options,
        FieldTable::default(),
    );
    let doing = format!("declaring the exchange {exchange}");
    answered(&doing, declared).await.map_err(differs)?;
    let mut differences = Vec::new();
    for (queue, arguments) in queues(topology) {
        match declare_queue(&channel, &queue, arguments, &exchange).await {
            Ok(()) => {}
            Err(error) if error.trouble() == Trouble::Mismatch => {
                differences.push(error.to_string());
                channel = open_channel(connection).await?;
            }
            Err(error) => return Err(error),
        }
    }
    if !differences.is_empty() {
        return Err(RabbitError::new(Trouble::Mismatch, differences.join("; ")));
    }
    for (exchange, key) in &topology.bindings {
        bind(&channel, &topology.queue, exchange, key).await?;
    }
    // An error would say that it is closed already.
    drop(answered("closing a channel", channel.close(200, short(""))).await);
    Ok(())
}

/// Declares a queue that keeps some messages for people to look up: the newest.
pub(crate) async fn declare_kept(connection: &Connection, queue: &str) -> Result<(), RabbitError> {
    let channel = open_channel(connection).await?;
    let mut arguments = quorum();
    arguments.insert(short("x-max-length"), AMQPValue::LongLongInt(MOST_KEPT));
    let declared = channel.queue_declare(short(queue), QueueDeclareOptions::durable(), arguments);
    let doing = format!("declaring the queue {queue}");
    answered(&doing, declared).await.map_err(differs)?;
    drop(answered("closing a channel", channel.close(200, short(""))).await);
    Ok(())
}

/// Counts what is ready in a queue; `None` if there is no such queue, which closes the channel.
pub(crate) async fn peek(channel: &Channel, queue: &str) -> Result<Option<u32>, RabbitError> {
    let passive = QueueDeclareOptions {
        passive: true,
        ..QueueDeclareOptions::default()
    };
    let found = channel.queue_declare(short(queue), passive, FieldTable::default());
    let doing = format!("looking at the queue {queue}");
    match answered(&doing, found).await {
        Ok(found) => Ok(Some(found.message_count())),
        Err(error) if error.trouble() == Trouble::Unroutable => Ok(None),
        Err(error) => Err(error),
    }
}

pub(crate) async fn open_channel(connection: &Connection) -> Result<Channel, RabbitError> {
    answered("opening a channel", connection.create_channel()).await
}

async fn declare_queue(
    channel: &Channel,
    queue: &str,
    arguments: FieldTable,
    exchange: &str,
) -> Result<(), RabbitError> {
    let declared = channel.queue_declare(short(queue), QueueDeclareOptions::durable(), arguments);
    let doing = format!("declaring the queue {queue}");
    answered(&doing, declared).await.map_err(differs)?;
    bind(channel, queue, exchange, queue).await
}

async fn bind(
    channel: &Channel,
    queue: &str,
    exchange: &str,
    key: &str,
) -> Result<(), RabbitError> {
    let (options, arguments) = (QueueBindOptions::default(), FieldTable::default());
    let bound = channel.queue_bind(
        short(queue),
        short(exchange),
        short(key),
        options,
        arguments,
    );
    let doing = format!("binding the queue {queue} to the exchange {exchange}");
    answered(&doing, bound).await
}

/// Says what to do where the broker only says what differs.
fn differs(error: RabbitError) -> RabbitError {
    if error.trouble() != Trouble::Mismatch {
        return error;
    }
    let remedy = "it exists otherwise: declare it as it is, or empty and delete it first";
    RabbitError::new(Trouble::Mismatch, format!("{error} ({remedy})"))
}

/// Each queue with its arguments.
fn queues(topology: &Topology) -> Vec<(String, FieldTable)> {
    let exchange = topology.exchange();
    let on = |to: &str| {
        let mut arguments = quorum();
        arguments.insert(short("x-dead-letter-exchange"), text(&exchange));
        arguments.insert(short("x-dead-letter-routing-key"), text(to));
        // Without it, the broker forgets what it hands on before the next queue has it.
        arguments.insert(short("x-dead-letter-strategy"), text("at-least-once"));
        arguments.insert(short("x-overflow"), text("reject-publish"));
        arguments
    };
    let limit = |mut arguments: FieldTable, deliveries: i64| {
        arguments.insert(
            short("x-delivery-limit"),
            AMQPValue::LongLongInt(deliveries),
        );
        arguments
    };
    let dead = topology.dead_letters();
    let main = limit(on(&dead), topology.delivery_limit.into());
    let mut all = vec![
        (topology.queue.clone(), main),
        (dead, limit(quorum(), ANY_NUMBER)),
    ];
    for (name, delay) in topology.retries() {
        let mut arguments = on(&topology.queue);
        arguments.insert(short("x-message-ttl"), millis(delay));
        all.push((name, arguments));
    }
    all
}

fn quorum() -> FieldTable {
    let mut arguments = FieldTable::default();
    arguments.insert(short("x-queue-type"), text("quorum"));
    arguments
}

fn text(value: &str) -> AMQPValue {
    AMQPValue::LongString(value.into())
}

fn millis(delay: Duration) -> AMQPValue {
    AMQPValue::LongLongInt(i64::try_from(delay.as_millis()).unwrap_or(i64::MAX))
}
