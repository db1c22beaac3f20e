//! The table, as a relay sees it.

use std::sync::Arc;
use std::time::Duration;

use mamparo_durable::backend::{BackendError, BoxFuture};
use mamparo_durable::events::{
    Backlog, ClaimId, Claimed, ClaimedEvent, EventStore, ParkedEvent, Settlement,
};
use mamparo_durable::machine::Utc;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _, Error, query, query_as};
use tokio::time::timeout;

use super::PostgresEvents;
use super::handle::millis;
use super::row;
use super::sql::Statements;

/// What became of the events of a claim, sorted by what is done about them.
#[derive(Debug, Default)]
struct Settled {
    published: Vec<i64>,
    later: (Vec<i64>, Vec<i64>, Vec<bool>),
    parked: (Vec<i64>, Vec<String>),
}

impl Settled {
    /// In the order of their numbers, so that two never wait for each other.
    fn of(mut settled: Vec<(i64, Settlement)>) -> Self {
        settled.sort_by_key(|(number, _)| *number);
        let mut this = Self::default();
        for (number, settlement) in settled {
            match settlement {
                Settlement::Published => this.published.push(number),
                Settlement::Later { wait, failed } => {
                    this.later.0.push(number);
                    this.later.1.push(millis(wait));
                    this.later.2.push(failed);
                }
                Settlement::Parked(reason) => {
                    this.parked.0.push(number);
                    this.parked.1.push(reason.as_str().to_owned());
                }
            }
        }
        this
    }

    /// Returns how many rows were this claim's.
    async fn store(
        self,
        connection: &mut PgConnection,
        statements: &Statements,
        claim: i64,
    ) -> Result<u64, Error> {
        let mut transaction = connection.begin().await?;
        let mut stored = 0;
        if !self.published.is_empty() {
            let published = query(AssertSqlSafe(Arc::clone(&statements.published)));
            let published = published.bind(self.published).bind(claim);
            stored += published.execute(&mut *transaction).await?.rows_affected();
        }
        let (numbers, waits, failed) = self.later;
        if !numbers.is_empty() {
            let later = query(AssertSqlSafe(Arc::clone(&statements.later)));
            let later = later.bind(numbers).bind(claim).bind(waits).bind(failed);
            stored += later.execute(&mut *transaction).await?.rows_affected();
        }
        let (numbers, reasons) = self.parked;
        if !numbers.is_empty() {
            let park = query(AssertSqlSafe(Arc::clone(&statements.park)));
            let park = park.bind(numbers).bind(claim).bind(reasons);
            stored += park.execute(&mut *transaction).await?.rows_affected();
        }
        transaction.commit().await?;
        Ok(stored)
    }
}

impl PostgresEvents {
    /// Does a statement about rows of these numbers; returns how many there were.
    async fn change(&self, statement: &Arc<str>, numbers: Vec<i64>) -> Result<usize, BackendError> {
        let statement = Arc::clone(statement);
        let changed = self
            .with(move |connection| {
                let change = query(AssertSqlSafe(statement)).bind(numbers);
                Box::pin(change.execute(connection))
            })
            .await?;
        // What waited behind them may go on.
        self.wake();
        Ok(usize::try_from(changed.rows_affected()).unwrap_or(usize::MAX))
    }
}

impl EventStore for PostgresEvents {
    fn claim(&self, limit: usize, lease: Duration) -> BoxFuture<'_, Result<Claimed, BackendError>> {
        let id = ClaimId::random();
        let statement = Arc::clone(&self.shared.statements.claim);
        let claim = self.with(move |connection| {
            Box::pin(async move {
                let claim = query(AssertSqlSafe(statement))
                    .bind(i64::try_from(limit).unwrap_or(i64::MAX))
                    .bind(id.number())
                    .bind(millis(lease));
                let rows = claim.fetch_all(connection).await?;
                rows.iter()
                    .map(row::claimed)
                    .collect::<Result<Vec<ClaimedEvent>, _>>()
            })
        });
        Box::pin(async move { Ok(Claimed::new(id, claim.await?)) })
    }

    fn settle(
        &self,
        claim: ClaimId,
        settled: Vec<(i64, Settlement)>,
    ) -> BoxFuture<'_, Result<usize, BackendError>> {
        let count = settled.len();
        let settled = Settled::of(settled);
        let statements = self.shared.statements.clone();
        let stored = self.with(move |connection| {
            Box::pin(async move { settled.store(connection, &statements, claim.number()).await })
        });
        Box::pin(async move {
            let stored = usize::try_from(stored.await?).unwrap_or(usize::MAX);
            Ok(count.saturating_sub(stored))
        })
    }

    fn ready(&self, longest: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            // A notification that was lost is found when the time is over.
            drop(timeout(longest, self.shared.changed.notified()).await);
        })
    }

    fn backlog(&self) -> BoxFuture<'_, Result<Backlog, BackendError>> {
        let statement = Arc::clone(&self.shared.statements.backlog);
        let asked = self.with(move |connection| {
            let backlog = query_as::<_, (i64, i64, Option<i64>)>(AssertSqlSafe(statement));
            let backlog = backlog.bind(i64::from(Backlog::COUNTED));
            Box::pin(backlog.fetch_one(connection))
        });
        Box::pin(async move {
            let (waiting, parked, oldest) = asked.await?;
            let count = |rows| u64::try_from(rows).unwrap_or_default();
            let oldest = oldest.map(|millis| Utc::from_millis(millis).unwrap_or(Utc::MIN));
            Ok(Backlog::new(count(waiting), count(parked), oldest))
        })
    }

    fn parked(
        &self,
        after: i64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<ParkedEvent>, BackendError>> {
        let statement = Arc::clone(&self.shared.statements.parked);
        Box::pin(self.with(move |connection| {
            Box::pin(async move {
                let parked = query(AssertSqlSafe(statement))
                    .bind(after)
                    .bind(i64::try_from(limit).unwrap_or(i64::MAX));
                let rows = parked.fetch_all(connection).await?;
                rows.iter().map(row::parked).collect()
            })
        }))
    }

    fn unpark(&self, numbers: Vec<i64>) -> BoxFuture<'_, Result<usize, BackendError>> {
        Box::pin(self.change(&self.shared.statements.unpark, numbers))
    }

    fn discard(&self, numbers: Vec<i64>) -> BoxFuture<'_, Result<usize, BackendError>> {
        Box::pin(self.change(&self.shared.statements.discard, numbers))
    }
}
