//! A RabbitMQ consumer that never loses a message, and what belongs to it.
//!
//! [`Consumer`] hands each message to a tower `Service<Delivery>`, so that mamparo's layers compose before it, and settles it by
//! what comes of it: [`consumer`] has the table. [`Topology`] says which queues there are and declares them; [`Publisher`]
//! publishes with confirmations; [`DeadLetters`] is what a person does with what nobody could handle.
//!
//! | module | what it is for |
//! |---|---|
//! | `link` | one connection, made again when it is lost; what an error means |
//! | `topology` | the queues and their exchange; what differs, if they exist otherwise |
//! | `message` | deliveries, messages, and how one is copied from queue to queue |
//! | `publisher` | confirmed, bounded in time |
//! | [`consumer`] | takes, hands on, judges, settles; connects again, starts again, stops |
//! | `dead_letters` | looks, puts back, discards |
//! | `queue` | a queue of the defer plane's engine ([`RabbitQueue`]) |
//!
//! Everything is at least once: a crash, or a connection that is lost, between an effect and its acknowledgement shows a message
//! twice. Handlers must bear that, by an idempotency key or by remembering the ids of messages.

pub mod consumer;
mod dead_letters;
mod link;
mod message;
mod publisher;
mod queue;
mod settings;
#[cfg(test)]
mod tests;
mod topology;

pub use consumer::{
    Consumer, ConsumerBuilder, ConsumerError, ConsumerEvent, ConsumerStatus, DeadReason,
    MessageClass, Panics, Permanent, Settled,
};
pub use dead_letters::{DeadLetters, Depths, Letter, Selection};
pub use lapin;
pub use link::{RabbitError, Trouble};
pub use message::{Delivery, Message, headers};
pub use publisher::Publisher;
pub use queue::{RabbitQueue, RabbitQueueBuilder};
pub use settings::{Settings, SettingsBuilder};
pub use topology::{Topology, TopologyBuilder};
