//! Who publishes.

use std::fmt::Debug;

use super::Event;
use crate::backend::BoxFuture;

/// Publishes events to a broker, and waits until it has confirmed them.
///
/// The relay gives it no two events of one key at once, so all of a call may be under way together.
pub trait Publisher: Debug + Send + Sync + 'static {
    /// Publishes them, sent in this order, and returns what became of each, in this order too.
    ///
    /// Called twice with the same, consumers get them twice, under the same ids. It may be dropped before it ends; then what it sent may
    /// have been published.
    fn publish<'a>(&'a self, events: &'a [Event]) -> BoxFuture<'a, Vec<Published>>;
}

/// What became of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "the relay does something else about each"
)]
pub enum Published {
    /// The broker has it, on disk where that is promised.
    Confirmed,
    /// No other try would do better, until a person has done something: no queue takes it, or it is too large.
    Refused(String),
    /// The broker did not confirm it; it may have it all the same. Asked again, it may.
    NotNow(String),
}
