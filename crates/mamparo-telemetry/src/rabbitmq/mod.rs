//! Messages of a RabbitMQ, as spans after OpenTelemetry's conventions for messaging.
//!
//! [`TracedPublisher`] records each message that is published, and writes the span's identity into it. [`ProcessLayer`] records each
//! attempt to handle one: a trace of its own, which links the span that the message was made in, however long it has waited.
//!
//! [`Metrics::watch_queue`](crate::Metrics::watch_queue) tells how many messages are ready, wait or are dead.
//!
//! | span | kind | lasts |
//! |---|---|---|
//! | `publish {destination}` | PRODUCER | until the broker has confirmed the message |
//! | the same, of a message that has a `traceparent`, which is kept and linked | CLIENT | likewise |
//! | `process {destination}` | CONSUMER | one attempt, which it numbers from 1 |
//!
//! ```no_run
//! use mamparo_core::BoxError;
//! use mamparo_rabbitmq::{Consumer, Delivery, Message, Publisher, Settings, Topology};
//! use mamparo_telemetry::rabbitmq::{ProcessLayer, TracedPublisher};
//! use tower::{ServiceBuilder, service_fn};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! let settings = Settings::builder("amqp://guest:guest@localhost/%2f").build()?;
//! let publisher = TracedPublisher::new(Publisher::new(settings.clone()));
//! publisher.publish("", "payments", Message::new("5 EUR").id("payment-1")).await?;
//!
//! let service = ServiceBuilder::new()
//!     .layer(ProcessLayer::new())
//!     .service(service_fn(async |delivery: Delivery| {
//!         println!("attempt {}", delivery.attempt());
//!         Ok::<(), BoxError>(())
//!     }));
//! let consumer = Consumer::builder(settings, Topology::builder("payments").build()?).build()?;
//! consumer.run(service, std::future::pending()).await?;
//! # Ok(())
//! # }
//! ```

mod depths;
mod open;
mod process;
mod publish;
#[cfg(test)]
mod tests;

pub use depths::QueueWatch;
pub(crate) use depths::Queues;
pub use process::{Process, ProcessFuture, ProcessLayer};
pub use publish::TracedPublisher;
