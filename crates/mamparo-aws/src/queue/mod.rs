//! Queues on SQS: standard ones, at least once, in no order.
//!
//! | what the engine asks | what SQS is asked |
//! |---|---|
//! | publish | `SendMessageBatch` of up to ten; what comes at the same time goes together |
//! | take | `ReceiveMessage` without waiting, the lease as visibility timeout, in whole seconds |
//! | ready | a long poll, whose messages are kept for the next take |
//! | acknowledge | `DeleteMessageBatch` |
//! | extend, release | `ChangeMessageVisibilityBatch` |
//! | release without spending a delivery | a copy that says how often it was delivered, then the original is deleted |
//! | bury | the letter is stored in DynamoDB, then the message is deleted |
//!
//! SQS counts what it delivers and nobody can take that back, so a copy begins a new count and carries the old one beside it. The
//! redrive policy of a queue is only the net under our own limit: what it has caught is moved to the other dead letters whenever
//! those are looked at or counted.

mod body;
mod entries;
mod held;
pub(crate) mod letters;
mod place;
mod sqs;
mod take;

pub(crate) use body::fire;
pub(crate) use entries::{LONGEST_DELAY, Outgoing};
pub(crate) use place::Place;
pub(crate) use sqs::SqsQueue;
