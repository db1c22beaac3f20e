//! The outbox's trait: whole steps, and moving what is due together.

use mamparo_durable::backend::{
    BackendError, BoxFuture, Committed, Outbox, PostponeDue, QueueName, Step,
};
use sqlx::query;

use crate::Postgres;
use crate::store::committed;
use crate::write::Wanted;

/// As many are moved in one transaction: what it locks, handlers wait for.
const MOVED_AT_ONCE: u64 = 5_000;

/// Moves what is SCHEDULED and due before an instant: each to its own, with its row of history, its schedule with it.
const POSTPONE: &str = "\
WITH due AS MATERIALIZED (
    SELECT transaction_id, attempt_next, schedule_seq, $3 + floor(random() * $4)::bigint AS fire_at
    FROM transactions
    WHERE ended IS NULL AND state = 'SCHEDULED' AND dependency = $1 AND next_fire_at < $2
        AND postponements < max_postponements AND give_up_at > $5
    ORDER BY next_fire_at LIMIT $6 FOR UPDATE SKIP LOCKED
), moved AS (
    UPDATE transactions t SET schedule_seq = t.schedule_seq + 1, postponements = t.postponements + 1,
        next_fire_at = due.fire_at, updated_at = $5
    FROM due WHERE t.transaction_id = due.transaction_id
    RETURNING t.transaction_id
), told AS (
    INSERT INTO history (transaction_id, at, from_state, to_state, attempt, seq, fire_at, cause)
    SELECT transaction_id, $5, 'SCHEDULED', 'SCHEDULED', attempt_next, schedule_seq + 1, fire_at, 'postponed' FROM due
), gone AS (
    DELETE FROM messages m USING due
    WHERE m.transaction_id = due.transaction_id AND m.attempt = due.attempt_next AND m.seq = due.schedule_seq AND m.scheduled
), made AS (
    INSERT INTO messages (queue, transaction_id, attempt, seq, since, ready_at, scheduled)
    SELECT 'fires', transaction_id, attempt_next, schedule_seq + 1, fire_at, fire_at, true FROM due
    ON CONFLICT (transaction_id, attempt, seq) WHERE scheduled DO NOTHING
)
SELECT count(*) FROM moved";

/// By name, with as many parameters as it takes: for the tests that ask how it is planned.
#[cfg(test)]
pub(crate) const STATEMENTS: [(&str, &str, usize); 1] = [("postpone", POSTPONE, 6)];

impl Outbox for Postgres {
    fn commit(&self, steps: Vec<Step>) -> BoxFuture<'_, Vec<Result<Committed, BackendError>>> {
        Box::pin(async move {
            let wanted = steps.into_iter().map(|step| Wanted::Step(Box::new(step)));
            self.desk()
                .write_all(wanted)
                .await
                .into_iter()
                .map(committed)
                .collect()
        })
    }

    fn postpone(&self, due: PostponeDue) -> BoxFuture<'_, Result<u64, BackendError>> {
        Box::pin(async move {
            // What one has locked, the other skips.
            let half = due.limit / 2;
            let movers = (
                self.move_all(&due, half),
                self.move_all(&due, due.limit - half),
            );
            let (one, other) = tokio::join!(movers.0, movers.1);
            let moved = one? + other?;
            if moved > 0 {
                // Others sleep until the old instants at most, and look then.
                self.published(QueueName::Fires);
            }
            Ok(moved)
        })
    }
}

impl Postgres {
    async fn move_all(&self, due: &PostponeDue, limit: u64) -> Result<u64, BackendError> {
        let mut moved = 0;
        while moved < limit {
            let most = MOVED_AT_ONCE.min(limit - moved);
            let now = self.move_some(due, most).await?;
            moved += now;
            if now < most {
                break;
            }
        }
        Ok(moved)
    }

    async fn move_some(&self, due: &PostponeDue, most: u64) -> Result<u64, BackendError> {
        let dependency = due.dependency.as_str().to_owned();
        let millis = |number: u128| i64::try_from(number).unwrap_or(i64::MAX);
        let (spread, most) = (millis(due.spread.as_millis()), millis(most.into()));
        let (before, until, now) = (
            due.due_before.millis(),
            due.until.millis(),
            due.now.millis(),
        );
        let moved = self.database().with(move |connection| {
            let statement = query(POSTPONE).bind(dependency).bind(before).bind(until);
            let statement = statement.bind(spread).bind(now).bind(most);
            Box::pin(async move {
                let row = statement.fetch_one(connection).await?;
                sqlx::Row::try_get::<i64, _>(&row, 0)
            })
        });
        Ok(crate::read::number(moved.await?))
    }
}
