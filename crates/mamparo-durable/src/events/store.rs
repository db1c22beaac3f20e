//! Where events wait to be published.

use std::fmt::Debug;
use std::time::Duration;

use super::Event;
use crate::backend::{BackendError, BoxFuture};
use crate::machine::{Label, Utc};

/// The table of events, as a relay sees it. Services put events into it in their own transactions, by a method of the backend.
///
/// A row is claimed by its own state and a lease, never by a greatest number: what commits late is not skipped.
pub trait EventStore: Debug + Send + Sync + 'static {
    /// Takes events, oldest first, for as long as a lease; all of a key before a later one of the same key.
    ///
    /// A key of which anything is leased, put off or parked gives nothing. Called twice, the second call takes others.
    fn claim(&self, limit: usize, lease: Duration) -> BoxFuture<'_, Result<Claimed, BackendError>>;

    /// Stores what became of claimed events, all in one transaction; returns how many of them were no longer this claim's.
    ///
    /// Those, of which the lease was over and which another has claimed, are left alone. So is everything when it is called twice.
    fn settle(
        &self,
        claim: ClaimId,
        settled: Vec<(i64, Settlement)>,
    ) -> BoxFuture<'_, Result<usize, BackendError>>;

    /// Waits until there may be something to claim, and no longer than `longest`.
    fn ready(&self, longest: Duration) -> BoxFuture<'_, ()>;

    /// Says what waits.
    fn backlog(&self) -> BoxFuture<'_, Result<Backlog, BackendError>>;

    /// Lists at most `limit` parked events, oldest first, after the number `after`.
    fn parked(
        &self,
        after: i64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<ParkedEvent>, BackendError>>;

    /// Gives parked events back to the relay, as if they had never failed; returns how many there were.
    fn unpark(&self, numbers: Vec<i64>) -> BoxFuture<'_, Result<usize, BackendError>>;

    /// Removes parked events for ever; returns how many there were.
    fn discard(&self, numbers: Vec<i64>) -> BoxFuture<'_, Result<usize, BackendError>>;
}

/// Who has claimed a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClaimId(i64);

impl ClaimId {
    /// Makes one that no other claim has: 63 bits at random, never 0.
    #[must_use]
    pub fn random() -> Self {
        Self(fastrand::i64(1..))
    }

    /// Returns the number that a store keeps.
    #[must_use]
    pub const fn number(self) -> i64 {
        self.0
    }
}

/// What a claim took.
#[derive(Debug)]
#[non_exhaustive]
pub struct Claimed {
    /// Which claim it is.
    pub id: ClaimId,
    /// The events, in the order in which they were put.
    pub events: Vec<ClaimedEvent>,
}

impl Claimed {
    /// Sorts what was taken.
    #[must_use]
    pub fn new(id: ClaimId, mut events: Vec<ClaimedEvent>) -> Self {
        events.sort_by_key(|event| event.number);
        Self { id, events }
    }
}

/// One row of a claim.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "stores make it")]
pub struct ClaimedEvent {
    /// Its number in the table.
    pub number: i64,
    /// Its key, also where the rest can't be read.
    pub key: Option<String>,
    /// How often it failed before.
    pub failures: u32,
    /// What is stored, or why it can't be read.
    pub event: Result<Event, Label>,
}

/// What became of a claimed event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a store does something else about each"
)]
pub enum Settlement {
    /// It was published: it is removed.
    Published,
    /// It is given back.
    Later {
        /// It is not claimed before.
        wait: Duration,
        /// Whether that counts as a failure of its own.
        failed: bool,
    },
    /// It is parked, and its key waits behind it.
    Parked(Label),
}

/// What waits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Backlog {
    /// How many events wait, those being published included; [`COUNTED`](Self::COUNTED) are that many or more.
    pub waiting: u64,
    /// How many are parked; counted likewise.
    pub parked: u64,
    /// When the oldest was made that is not parked.
    pub oldest: Option<Utc>,
}

impl Backlog {
    /// As many as are counted, so that looking costs little when there are millions.
    pub const COUNTED: u32 = 10_000;

    /// Says what waits.
    #[must_use]
    pub const fn new(waiting: u64, parked: u64, oldest: Option<Utc>) -> Self {
        Self {
            waiting,
            parked,
            oldest,
        }
    }

    /// Returns how long the oldest has waited.
    #[must_use]
    pub fn lag(&self, now: Utc) -> Duration {
        self.oldest
            .map_or(Duration::ZERO, |oldest| now.since(oldest))
    }
}

/// An event that is parked.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "stores make it")]
pub struct ParkedEvent {
    /// Its number in the table.
    pub number: i64,
    /// Why it was parked.
    pub reason: Label,
    /// When.
    pub parked_at: Utc,
    /// How often it had failed then.
    pub failures: u32,
    /// What is stored, or why it can't be read.
    pub event: Result<Event, Label>,
}

/// Whether a consumer has processed a message before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "it has or it hasn't")]
pub enum Seen {
    /// Never, or so long ago that it is forgotten.
    First,
    /// It has: change nothing, and acknowledge.
    Before,
}
