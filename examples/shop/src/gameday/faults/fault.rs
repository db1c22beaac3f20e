//! All faults, by name.

use clap::ValueEnum;
use mamparo_core::BoxError;

use super::{bank, broker, calm, catalog, database, killed, saga, watchdogs};
use crate::gameday::day::Day;

/// What happens, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Fault {
    /// Nothing: this is how it looks when all is well.
    Calm,
    /// The catalog takes 1.8 s instead of milliseconds, with forty customers at once.
    SlowCatalog,
    /// The catalog is killed.
    CatalogStopped,
    /// The catalog stands still: it takes connections and answers nothing.
    CatalogHangs,
    /// The bank is killed.
    DeadBank,
    /// The bank charges, and its answer comes too late.
    LostAnswer,
    /// Payments is killed while the bank charges.
    KilledCharging,
    /// The broker is stopped for a while.
    BrokerAway,
    /// Messages that nobody can read fill the dead-letter queue.
    FilledDeadLetters,
    /// Every service of the saga is killed while customers order.
    KilledServices,
    /// Customers hold every connection of the request pool.
    RequestPoolFull,
    /// Transactions are undone by deadlocks.
    Deadlock,
    /// One client asks 400 times at once.
    GreedyClient,
    /// A release can't read payments: the saga of each order sticks.
    StuckSaga,
    /// Two hundred orders wait for ever, and there are two watchdogs, of which one is killed.
    TwoWatchdogs,
    /// Stock is reserved for an order that is not there.
    LostReservation,
}

impl Fault {
    pub(crate) fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Breaks it, looks, and mends it.
    pub(crate) async fn happen(self, day: &mut Day) -> Result<(), BoxError> {
        match self {
            Self::Calm => calm::calm(day).await,
            Self::GreedyClient => calm::greedy(day).await,
            Self::SlowCatalog => catalog::slow(day).await,
            Self::CatalogStopped => catalog::stopped(day).await,
            Self::CatalogHangs => catalog::hangs(day).await,
            Self::DeadBank => bank::dead(day).await,
            Self::LostAnswer => bank::lost_answer(day).await,
            Self::KilledCharging => bank::killed_charging(day).await,
            Self::BrokerAway => broker::away(day).await,
            Self::FilledDeadLetters => broker::dead_letters(day).await,
            Self::KilledServices => killed::killed(day).await,
            Self::RequestPoolFull => database::pool_full(day).await,
            Self::Deadlock => database::deadlock(day).await,
            Self::StuckSaga => saga::stuck(day).await,
            Self::TwoWatchdogs => watchdogs::two(day).await,
            Self::LostReservation => saga::lost_reservation(day).await,
        }
    }
}
