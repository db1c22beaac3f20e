//! Queues that deliver at least once, and their dead letters.

use std::fmt::Debug;
use std::time::Duration;

use super::{BackendError, BoxFuture, Message, QueueName};
use crate::machine::{Label, Utc};

/// One queue: at least once, in no order, each delivery under a lease.
///
/// A message that was delivered more than the redelivery limit of the backend allows, is buried instead of delivered again.
pub trait Queue: Debug + Send + Sync + 'static {
    /// Publishes messages. Called twice, they are in it twice: handlers bear that.
    fn publish(&self, messages: Vec<Message>) -> BoxFuture<'_, Result<(), BackendError>>;

    /// Takes at most `max` messages, without waiting for any. Nobody else gets them until the lease is over or they are
    /// released; then they are delivered again.
    fn take(
        &self,
        max: usize,
        lease: Duration,
    ) -> BoxFuture<'_, Result<Vec<Delivery>, BackendError>>;

    /// Waits until there may be something to take: a message, a schedule that is due, a lease that is over.
    ///
    /// It may return too early, and must not be relied on to return at all: whoever waits also looks now and then. Dropped
    /// at any time, nothing is lost.
    fn ready(&self) -> BoxFuture<'_, ()>;

    /// Removes messages that were handled. Called twice, or after the lease is over and another has it, nothing happens.
    fn acknowledge(&self, receipts: Vec<Receipt>) -> BoxFuture<'_, Result<(), BackendError>>;

    /// Gives a message back, to be delivered again after a delay. `spent` says whether this delivery counts towards the
    /// redelivery limit; a shutdown's does not. Called twice, or after the lease is over, nothing happens.
    fn release(
        &self,
        receipt: Receipt,
        delay: Duration,
        spent: bool,
    ) -> BoxFuture<'_, Result<(), BackendError>>;

    /// Puts a message among the dead letters, and says why. Called twice, or after the lease is over, nothing happens.
    fn bury(&self, receipt: Receipt, why: Label) -> BoxFuture<'_, Result<(), BackendError>>;

    /// Holds leases for longer, from now. Called after a lease is over, nothing happens to that one.
    fn extend(
        &self,
        receipts: Vec<Receipt>,
        lease: Duration,
    ) -> BoxFuture<'_, Result<(), BackendError>>;

    /// Counts what is in it.
    fn depth(&self) -> BoxFuture<'_, Result<Depth, BackendError>>;

    /// Reads at most `max` dead letters after the one of that number, oldest first, and leaves them there.
    fn dead(
        &self,
        after: Option<u64>,
        max: usize,
    ) -> BoxFuture<'_, Result<Vec<DeadLetter>, BackendError>>;

    /// Puts dead letters back into the queue, as if never delivered, and says how many it found. Called twice, the second
    /// call finds none.
    fn requeue(&self, numbers: Vec<u64>) -> BoxFuture<'_, Result<usize, BackendError>>;

    /// Removes dead letters for good and says how many it found; a backend that outlives its process notes who was removed,
    /// and why. Called twice, the second call finds none.
    fn discard(
        &self,
        numbers: Vec<u64>,
        reason: Label,
    ) -> BoxFuture<'_, Result<usize, BackendError>>;
}

/// A message, taken.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Delivery {
    /// What it says.
    pub message: Message,
    /// Which delivery of it this is, from 1.
    pub number: u32,
    /// When it was published; of a fire, when it was due.
    pub since: Utc,
    /// What settles it.
    pub receipt: Receipt,
}

impl Delivery {
    /// Puts a delivery together.
    #[must_use]
    pub const fn new(message: Message, number: u32, since: Utc, receipt: Receipt) -> Self {
        Self {
            message,
            number,
            since,
            receipt,
        }
    }
}

/// What settles one delivery: a message, and the lease under which it was taken.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Receipt {
    /// The queue that it was taken from.
    pub queue: QueueName,
    /// The message, in the backend's own numbers.
    pub message: u64,
    /// The lease: another taker of the same message has another.
    pub lease: u64,
    /// A broker's own handle, if it has one.
    pub handle: Option<Box<str>>,
}

/// What is in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// To be taken now.
    pub ready: u64,
    /// Not yet: schedules, and what was released with a delay.
    pub later: u64,
    /// Under a lease.
    pub taken: u64,
    /// Dead letters.
    pub dead: u64,
}

/// A message that nobody could handle.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadLetter {
    /// Its number, growing with the time of its burial.
    pub number: u64,
    /// What it says; `None` if it can't be read, or its transaction is gone.
    pub message: Option<Message>,
    /// Why it was buried.
    pub why: Label,
    /// When.
    pub buried_at: Utc,
    /// How often it had been delivered.
    pub deliveries: u32,
}

impl DeadLetter {
    /// Puts a dead letter together.
    #[must_use]
    pub const fn new(
        number: u64,
        message: Option<Message>,
        why: Label,
        buried_at: Utc,
        deliveries: u32,
    ) -> Self {
        Self {
            number,
            message,
            why,
            buried_at,
            deliveries,
        }
    }
}
