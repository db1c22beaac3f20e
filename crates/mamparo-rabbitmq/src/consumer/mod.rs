//! Hands each message to a service, and settles it by what comes of it.
//!
//! | what comes of it | what becomes of the message |
//! |---|---|
//! | success | acknowledged |
//! | a failure that may pass, before the last attempt | copied to `<queue>.retry` with [`x-attempts`](crate::headers::ATTEMPTS) + 1 |
//! | the same, at the last attempt | copied to `<queue>.dlq`, as `exhausted` |
//! | [`Permanent`], or a verdict that forbids another attempt | copied to `<queue>.dlq` at once, as `permanent` |
//! | a time limit, the consumer's or a layer's | as a failure that may pass |
//! | a panic | copied to `<queue>.dlq` as `panic`, or as a failure that may pass: [`ConsumerBuilder::panics`] |
//! | a body above [`ConsumerBuilder::max_bytes`] | copied to `<queue>.dlq` as `too-big`, unread |
//! | the connection is lost, the process dies | the broker delivers it again; no attempt is spent |
//!
//! A copy is confirmed by the broker **before** the original is acknowledged, so that a crash between the two doubles a message
//! and never loses one: handlers must bear a message twice.

mod handle;
mod report;
mod run;
mod session;
mod settings;
mod settle;
mod status;
mod verdict;

pub use report::ConsumerEvent;
pub use run::{Consumer, ConsumerError};
pub use settings::{ConsumerBuilder, Panics};
pub use settle::{DeadReason, Settled};
#[cfg(test)]
pub(crate) use settle::{Outcome, settle};
pub use status::ConsumerStatus;
pub use verdict::{MessageClass, Permanent};
