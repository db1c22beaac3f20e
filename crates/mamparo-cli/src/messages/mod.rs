//! `mamparo consume`, and `mamparo dlq --amqp`: messages of RabbitMQ, from the command line.

mod consume;
mod dlq;
mod execute;

pub(crate) use consume::consume;
pub(crate) use dlq::dlq;
