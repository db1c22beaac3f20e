//! Compensating what is stuck.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mamparo_core::BoxError;
use mamparo_durable::backend::{BackendError, BoxFuture};
use mamparo_durable::events::{Compensated, Event, StuckSagas};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _, query_scalar};

use super::PostgresEvents;
use crate::database::{is_conflict, trouble};

/// As often as one is tried in a transaction where another is in its way (40001, 40P01), with this wait between.
const TRIES: u32 = 3;
const BETWEEN: Duration = Duration::from_millis(50);

type Compensate = dyn for<'c> Fn(&'c mut PgConnection, String) -> BoxFuture<'c, Result<Vec<Event>, BoxError>>
    + Send
    + Sync;

/// Stuck sagas of one kind: how they are found, and what is done about each.
#[derive(Clone)]
struct Stuck {
    events: PostgresEvents,
    select: Arc<str>,
    each: Arc<Compensate>,
}

impl PostgresEvents {
    /// Makes what a [`Watchdog`](mamparo_durable::events::Watchdog) runs of a statement and a closure.
    ///
    /// The statement selects the ids of stuck sagas, as text, at most `$1` of them, `FOR UPDATE SKIP LOCKED`. The closure is called with
    /// each, changes its state and returns the events that say so. All of that is one transaction, on a connection of the watchdogs'
    /// own; one whose closure fails is undone alone, and a deadlock or a serialisation failure is tried three times. A closure that takes
    /// longer than a [statement may](crate::SettingsBuilder::statement_timeout), and a second, ends the transaction.
    ///
    /// ```no_run
    /// use mamparo_durable::events::{Event, Watchdog};
    /// use mamparo_postgres::{PostgresEvents, sqlx};
    ///
    /// # fn watchdog(events: &PostgresEvents) -> Result<Watchdog, mamparo_core::InvalidSetting> {
    /// let stuck = events.stuck(
    ///     "SELECT id FROM orders WHERE state = 'PENDING' AND since < now() - interval '10 minutes'
    ///      ORDER BY since LIMIT $1 FOR UPDATE SKIP LOCKED",
    ///     |tx, order| Box::pin(async move {
    ///         sqlx::query("UPDATE orders SET state = 'CANCELLED' WHERE id = $1").bind(&order).execute(tx).await?;
    ///         let cancelled = Event::builder(format!("{order}/cancelled")).key(order).to("orders", "order.cancelled");
    ///         Ok(vec![cancelled.build()?])
    ///     }),
    /// );
    /// let watchdog = Watchdog::builder("payment-timeout", stuck).build()?;
    /// # Ok(watchdog)
    /// # }
    /// # let _ = watchdog;
    /// ```
    #[must_use]
    pub fn stuck<F>(&self, select: impl Into<Arc<str>>, each: F) -> Arc<dyn StuckSagas>
    where
        F: for<'c> Fn(&'c mut PgConnection, String) -> BoxFuture<'c, Result<Vec<Event>, BoxError>>
            + Send
            + Sync
            + 'static,
    {
        Arc::new(Stuck {
            events: self.clone(),
            select: select.into(),
            each: Arc::new(each),
        })
    }
}

impl Stuck {
    async fn run(&self, limit: usize) -> Result<Compensated, sqlx::Error> {
        let mut connection = self.events.shared.own.acquire().await?;
        let compensated = self.transaction(&mut connection, limit).await;
        if compensated.is_err() {
            // It may be in the middle of an answer, or lead nowhere.
            connection.close_on_drop();
        }
        compensated
    }

    async fn transaction(
        &self,
        connection: &mut PgConnection,
        limit: usize,
    ) -> Result<Compensated, sqlx::Error> {
        let database = &self.events.shared.database;
        let mut transaction = database.in_time(connection.begin()).await?;
        let select = query_scalar(AssertSqlSafe(Arc::clone(&self.select)))
            .bind(i64::try_from(limit).unwrap_or(i64::MAX))
            .fetch_all(&mut *transaction);
        let ids: Vec<String> = database.in_time(select).await?;
        let mut compensated = Compensated::default();
        for id in ids {
            match database.in_time(self.tried(&mut transaction, &id)).await? {
                Ok(()) => compensated.done += 1,
                Err(error) => compensated.failed.push((id, error.to_string())),
            }
        }
        database.in_time(transaction.commit()).await?;
        Ok(compensated)
    }

    /// The outer error is the transaction's, of which nothing is left then.
    async fn tried(
        &self,
        transaction: &mut PgConnection,
        id: &str,
    ) -> Result<Result<(), BoxError>, sqlx::Error> {
        let mut tries = 0;
        loop {
            tries += 1;
            let mut savepoint = transaction.begin().await?;
            let Err(error) = self.one(&mut savepoint, id).await else {
                savepoint.commit().await?;
                return Ok(Ok(()));
            };
            savepoint.rollback().await?;
            let conflict = error.downcast_ref().is_some_and(is_conflict);
            if !conflict || tries == TRIES {
                return Ok(Err(error));
            }
            tokio::time::sleep(BETWEEN).await;
        }
    }

    async fn one(&self, savepoint: &mut PgConnection, id: &str) -> Result<(), BoxError> {
        let events = (self.each)(&mut *savepoint, id.to_owned()).await?;
        for event in events {
            self.events.put_in(savepoint, &event).await?;
        }
        Ok(())
    }
}

impl StuckSagas for Stuck {
    fn compensate(&self, limit: usize) -> BoxFuture<'_, Result<Compensated, BackendError>> {
        Box::pin(async move { self.run(limit).await.map_err(trouble) })
    }
}

impl fmt::Debug for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stuck")
            .field("select", &self.select)
            .finish_non_exhaustive()
    }
}
