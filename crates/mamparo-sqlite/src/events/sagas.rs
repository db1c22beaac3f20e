//! Compensating what is stuck.

use std::fmt;
use std::sync::Arc;

use mamparo_durable::backend::{BackendError, BoxFuture};
use mamparo_durable::events::{Compensated, Event, StuckSagas};
use rusqlite::Connection;

use super::SqliteEvents;
use crate::TransactionError;
use crate::durable::Failed;

type Compensate = dyn Fn(&Connection, &str) -> Result<Vec<Event>, TransactionError> + Send + Sync;

/// Stuck sagas of one kind: how they are found, and what is done about each.
#[derive(Clone)]
struct Stuck {
    events: SqliteEvents,
    select: Arc<str>,
    each: Arc<Compensate>,
}

impl SqliteEvents {
    /// Makes what a [`Watchdog`](mamparo_durable::events::Watchdog) runs of a statement and a closure.
    ///
    /// The statement selects the ids of stuck sagas, as text, at most `?1` of them. The closure is called with each, changes its state and
    /// returns the events that say so. All of that is one transaction, on the thread that writes; one whose closure fails is undone alone.
    ///
    /// ```
    /// use mamparo_durable::events::{Event, Watchdog};
    /// use mamparo_sqlite::{SqliteEvents, TransactionError};
    ///
    /// # fn watchdog(events: &SqliteEvents) -> Result<Watchdog, mamparo_core::InvalidSetting> {
    /// let stuck = events.stuck(
    ///     "SELECT id FROM orders WHERE state = 'PENDING' AND since < unixepoch() - 600 ORDER BY since LIMIT ?1",
    ///     |tx, order| {
    ///         tx.execute("UPDATE orders SET state = 'CANCELLED' WHERE id = ?1 AND state = 'PENDING'", [order])?;
    ///         let cancelled = Event::builder(format!("{order}/cancelled")).key(order).to("orders", "order.cancelled");
    ///         Ok(vec![cancelled.build().map_err(TransactionError::work)?])
    ///     },
    /// );
    /// let watchdog = Watchdog::builder("payment-timeout", stuck).build()?;
    /// # Ok(watchdog)
    /// # }
    /// # let _ = watchdog;
    /// ```
    #[must_use]
    pub fn stuck(
        &self,
        select: impl Into<Arc<str>>,
        each: impl Fn(&Connection, &str) -> Result<Vec<Event>, TransactionError> + Send + Sync + 'static,
    ) -> Arc<dyn StuckSagas> {
        Arc::new(Stuck {
            events: self.clone(),
            select: select.into(),
            each: Arc::new(each),
        })
    }
}

impl Stuck {
    fn run(&self, file: &Connection, limit: usize) -> Result<Compensated, Failed> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut select = file.prepare_cached(&self.select)?;
        let ids: Vec<String> = select
            .query_map([limit], |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        let mut compensated = Compensated::default();
        for id in ids {
            file.execute_batch("SAVEPOINT mamparo_saga")?;
            match self.one(file, &id) {
                Ok(()) => compensated.done += 1,
                Err(error) => {
                    file.execute_batch("ROLLBACK TO mamparo_saga")?;
                    compensated.failed.push((id, said(&error)));
                }
            }
            file.execute_batch("RELEASE mamparo_saga")?;
        }
        Ok(compensated)
    }

    fn one(&self, file: &Connection, id: &str) -> Result<(), TransactionError> {
        for event in (self.each)(file, id)? {
            self.events.put(file, &event)?;
        }
        Ok(())
    }
}

/// What happened, with what it comes from.
fn said(error: &TransactionError) -> String {
    let source = std::error::Error::source(error);
    source.map_or_else(|| error.to_string(), ToString::to_string)
}

impl StuckSagas for Stuck {
    fn compensate(&self, limit: usize) -> BoxFuture<'_, Result<Compensated, BackendError>> {
        let this = self.clone();
        Box::pin(self.events.write(move |file| this.run(file, limit)))
    }
}

impl fmt::Debug for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stuck")
            .field("select", &self.select)
            .finish_non_exhaustive()
    }
}
