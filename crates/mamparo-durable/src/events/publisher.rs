//! Who publishes.

use std::fmt::Debug;

use super::Event;
use crate::backend::BoxFuture;

/// Publishes events to a broker, and waits until it has confirmed them.
///
/// Many are under way together, begun in the order in which they were put: two claims' worth at most, and no two of one key.
pub trait Publisher: Debug + Send + Sync + 'static {
    /// Publishes an event, and returns what became of it.
    ///
    /// Called twice with the same, consumers get it twice, under the same id. It may be dropped before it ends; then what it sent may
    /// have been published.
    fn publish<'a>(&'a self, event: &'a Event) -> BoxFuture<'a, Published>;
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
