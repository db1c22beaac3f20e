//! The tables, for what nobody sees from outside: whether money and stock are right.

use std::time::Duration;

use mamparo_core::{BoxError, clock};
use mamparo_postgres::sqlx::{self, AssertSqlSafe, PgPool};
use tokio::time::sleep;

use super::day::PATIENCE;

/// Between two looks.
const LOOK: Duration = Duration::from_millis(50);

#[derive(Clone)]
pub(super) struct Ledger(PgPool);

impl Ledger {
    pub(super) fn open(database: &str) -> Result<Self, BoxError> {
        Ok(Self(PgPool::connect_lazy(database)?))
    }

    /// Asks for one number, of one order or of any.
    pub(super) async fn count(&self, asked: &str, order: &str) -> Result<i64, BoxError> {
        let asked = sqlx::query_scalar(AssertSqlSafe(asked.to_owned()));
        Ok(asked.bind(order).fetch_one(&self.0).await?)
    }

    /// Asks until the number is that, or the time is over; returns the last one.
    pub(super) async fn until(
        &self,
        asked: &str,
        order: &str,
        wanted: i64,
    ) -> Result<i64, BoxError> {
        self.until_it(asked, order, |count| count == wanted).await
    }

    /// The same, until the number is as it is wanted.
    pub(super) async fn until_it(
        &self,
        asked: &str,
        order: &str,
        is_wanted: impl Fn(i64) -> bool,
    ) -> Result<i64, BoxError> {
        let begun = clock::now();
        loop {
            let count = self.count(asked, order).await?;
            if is_wanted(count) || begun.elapsed() > PATIENCE {
                return Ok(count);
            }
            sleep(LOOK).await;
        }
    }

    /// Runs statements, as an operator at a console.
    pub(super) async fn run(&self, statements: &'static str) -> Result<(), BoxError> {
        sqlx::raw_sql(statements).execute(&self.0).await?;
        Ok(())
    }

    pub(super) const fn pool(&self) -> &PgPool {
        &self.0
    }
}
