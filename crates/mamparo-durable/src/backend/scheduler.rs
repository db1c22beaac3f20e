//! When: schedules that become fires.

use std::fmt::Debug;

use super::{BackendError, BoxFuture};
use crate::machine::{Schedule, TransactionId};

/// Keeps schedules, and publishes the fire of each once it is due: at least once, never before its instant.
///
/// A schedule's name is [`Schedule::name`]; its payload, the fire, is the transaction's id, the attempt and its number.
pub trait Scheduler: Debug + Send + Sync + 'static {
    /// Makes schedules; a result for each.
    ///
    /// Called twice, the second call finds the same instant and payload and returns [`Created::Same`]; another instant or
    /// payload under that name stays as it is: [`Created::Conflict`]. A schedule that has fired may be gone; made again, it
    /// fires again. An instant in the past fires at once.
    fn create(
        &self,
        schedules: Vec<(TransactionId, Schedule)>,
    ) -> BoxFuture<'_, Vec<Result<Created, BackendError>>>;

    /// Deletes the schedule of (attempt, seq), if it is there. Called twice, the second call finds nothing: success.
    fn delete(
        &self,
        id: TransactionId,
        attempt: u32,
        seq: u32,
    ) -> BoxFuture<'_, Result<(), BackendError>>;
}

/// What came of making a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "it is there now, it was, or another was"
)]
pub enum Created {
    /// It exists now.
    New,
    /// It existed, with the same instant and payload.
    Same,
    /// One of that name exists with another instant or payload, and was left.
    Conflict,
}
