//! One of the three queues.

use std::time::Duration;

use mamparo_durable::backend::{
    BackendError, BoxFuture, DeadLetter, Delivery, Depth, Message, Queue, QueueName, Receipt,
};
use mamparo_durable::machine::{Label, Utc};
use sqlx::postgres::PgRow;
use sqlx::{Row as _, query, query_scalar};

use crate::Postgres;
use crate::database::{corrupt, trouble};
use crate::read::{dead_letter, fire_or_answer, number, request_of, small};
use crate::write::Wanted;

/// Takes what is ready, the earliest first, around what others are just taking. A lease needs no fsync: lost, the message is ready.
const TAKE: &str = "\
WITH ready AS MATERIALIZED (
    SELECT number FROM messages
    WHERE queue = $1 AND ready_at <= $2 AND (SELECT set_config('synchronous_commit', 'off', true)) = 'off'
    ORDER BY ready_at LIMIT $3 FOR UPDATE SKIP LOCKED
)
UPDATE messages m SET ready_at = $4, lease = $5, deliveries = m.deliveries + 1, scheduled = false
FROM ready WHERE m.number = ready.number
RETURNING m.number, m.transaction_id, m.attempt, m.seq, m.outcome, m.reason, m.not_before, m.deliveries, m.since";

/// The same, with what a request sends.
const TAKE_REQUESTS: &str = "\
WITH ready AS MATERIALIZED (
    SELECT number, transaction_id FROM messages
    WHERE queue = $1 AND ready_at <= $2 AND (SELECT set_config('synchronous_commit', 'off', true)) = 'off'
    ORDER BY ready_at LIMIT $3 FOR UPDATE SKIP LOCKED
)
UPDATE messages m SET ready_at = $4, lease = $5, deliveries = m.deliveries + 1
FROM ready LEFT JOIN transactions t ON t.transaction_id = ready.transaction_id WHERE m.number = ready.number
RETURNING m.number, m.transaction_id, m.attempt, m.seq, m.outcome, m.reason, m.not_before, m.deliveries, m.since,
    t.kind, t.dependency, t.trace, t.request";

const NEXT: &str = "SELECT min(ready_at) FROM messages WHERE queue = $1";

const DEPTH: &str = "\
SELECT count(*) FILTER (WHERE ready_at <= $2), count(*) FILTER (WHERE ready_at > $2 AND lease = 0),
    count(*) FILTER (WHERE ready_at > $2 AND lease <> 0), (SELECT count(*) FROM dead_letters WHERE queue = $1)
FROM messages WHERE queue = $1";

const DEAD: &str = "\
SELECT d.number, d.transaction_id, d.attempt, d.seq, d.outcome, d.reason, d.not_before, d.deliveries, d.why, d.buried_at,
    t.kind, t.dependency, t.trace, t.request
FROM dead_letters d LEFT JOIN transactions t ON d.queue = 'requests' AND t.transaction_id = d.transaction_id
WHERE d.queue = $1 AND d.number > $2 ORDER BY d.number LIMIT $3";

const REQUEUE: &str = "\
WITH back AS (
    DELETE FROM dead_letters WHERE queue = $1 AND number = ANY($2)
    RETURNING queue, transaction_id, attempt, seq, outcome, reason, not_before
)
INSERT INTO messages (queue, transaction_id, attempt, seq, outcome, reason, not_before, since, ready_at)
SELECT back.*, $3, $3 FROM back";

const DISCARD: &str = "\
WITH gone AS (DELETE FROM dead_letters WHERE queue = $1 AND number = ANY($2) RETURNING *)
INSERT INTO discarded (number, queue, transaction_id, attempt, seq, outcome, reason, why_buried, why, discarded_at)
SELECT number, queue, transaction_id, attempt, seq, outcome, reason, gone.why, $3, $4 FROM gone";

/// By name, with as many parameters as they take: for the tests that ask how they are planned.
#[cfg(test)]
pub(crate) const STATEMENTS: [(&str, &str, usize); 6] = [
    ("take", TAKE, 5),
    ("take requests", TAKE_REQUESTS, 5),
    ("next", NEXT, 1),
    ("dead", DEAD, 3),
    ("requeue", REQUEUE, 3),
    ("discard", DISCARD, 4),
];

/// After something was due, as long is waited at least for what is due next: then it is taken together.
const BREATH: Duration = Duration::from_millis(1);

/// One of the queues of a [`Postgres`].
#[derive(Clone, Debug)]
pub(crate) struct PostgresQueue {
    postgres: Postgres,
    name: QueueName,
}

impl PostgresQueue {
    pub(crate) const fn new(postgres: Postgres, name: QueueName) -> Self {
        Self { postgres, name }
    }

    async fn take_now(&self, max: usize, lease: Duration) -> Result<Vec<Delivery>, BackendError> {
        let (name, now) = (self.name, self.postgres.now());
        let statement = if name == QueueName::Requests {
            TAKE_REQUESTS
        } else {
            TAKE
        };
        // Not from the server: one that crashes may give a number twice, and a stale taker would pass for the next one.
        let number = fastrand::i64(1..);
        let until = now.plus(lease).millis();
        let taken = self.postgres.database().with(move |connection| {
            let statement = query(statement)
                .bind(name.as_str())
                .bind(now.millis())
                .bind(i64::try_from(max).unwrap_or(i64::MAX))
                .bind(until)
                .bind(number);
            Box::pin(statement.fetch_all(connection))
        });
        let rows = taken.await?;
        let mut delivered = Vec::with_capacity(rows.len());
        let mut buried = Vec::new();
        for row in &rows {
            match self.delivery(row, number.unsigned_abs())? {
                Ok(delivery) => delivered.push(delivery),
                Err(bury) => buried.push(bury),
            }
        }
        for buried in self.postgres.desk().write_all(buried.into_iter()).await {
            buried?;
        }
        delivered.sort_by_key(|delivery| (delivery.since, delivery.receipt.message));
        Ok(delivered)
    }

    /// Reads a message that was taken, or says that it is to be buried: it was delivered too often, or can't be read.
    fn delivery(&self, row: &PgRow, lease: u64) -> Result<Result<Delivery, Wanted>, BackendError> {
        let get = |column| row.try_get::<i64, _>(column).map_err(trouble);
        let receipt = Receipt {
            queue: self.name,
            message: number(get(0)?),
            lease,
            handle: None,
        };
        let deliveries = small(get(7)?).unwrap_or(u32::MAX);
        if deliveries > self.postgres.redelivery_limit() {
            let why = format!("delivered {} times", deliveries - 1);
            return Ok(Err(Wanted::Bury {
                receipt,
                why: why.into(),
                spent: false,
            }));
        }
        let message = match self.name {
            QueueName::Requests => request_of(row, 1, 9),
            QueueName::Answers | QueueName::Fires => fire_or_answer(self.name, row, 1),
        };
        let since = Utc::from_millis(get(8)?).unwrap_or(Utc::MIN);
        Ok(match message {
            Ok(message) => Ok(Delivery::new(message, deliveries, since, receipt)),
            Err(what) => Err(Wanted::Bury {
                receipt,
                why: format!("can't be read: {what}").into(),
                spent: true,
            }),
        })
    }

    /// When something can be taken next.
    async fn next(&self) -> Result<Option<i64>, BackendError> {
        let name = self.name.as_str();
        let next = self.postgres.database().with(move |connection| {
            Box::pin(
                query_scalar::<_, Option<i64>>(NEXT)
                    .bind(name)
                    .fetch_one(connection),
            )
        });
        next.await
    }

    async fn wait(&self) {
        let (wake, poll) = (self.postgres.wake(), self.postgres.poll());
        let changed = wake.changed(self.name);
        tokio::pin!(changed);
        // From here on a change is heard, also one that comes before the first poll.
        changed.as_mut().enable();
        // If the server does not answer, the poll is the pause.
        let next = self.next().await.ok().flatten();
        let now = self.postgres.now();
        let latest = now.plus(poll).millis();
        let until = next.map_or(latest, |next| next.min(latest));
        let _sleeping = wake.sleeps_until(self.name, until);
        let wait = u64::try_from(until - now.millis()).unwrap_or(0);
        let wait = Duration::from_millis(wait).max(BREATH);
        tokio::select! {
            () = changed => {}
            () = tokio::time::sleep(wait) => {}
        }
    }

    async fn change(
        &self,
        statement: &'static str,
        numbers: Vec<u64>,
        reason: Option<Label>,
    ) -> Result<usize, BackendError> {
        let (name, now) = (self.name.as_str(), self.postgres.now().millis());
        let numbers: Vec<i64> = numbers
            .into_iter()
            .filter_map(|number| i64::try_from(number).ok())
            .collect();
        let done = self.postgres.database().with(move |connection| {
            let mut statement = query(statement).bind(name).bind(numbers);
            if let Some(reason) = reason {
                statement = statement.bind(reason.as_str().to_owned());
            }
            Box::pin(statement.bind(now).execute(connection))
        });
        Ok(usize::try_from(done.await?.rows_affected()).unwrap_or(usize::MAX))
    }

    /// Writes all; the first that can't be written is what is told.
    async fn write_all(
        &self,
        wanted: impl Iterator<Item = Wanted> + Send,
    ) -> Result<(), BackendError> {
        let written = self.postgres.desk().write_all(wanted).await;
        written.into_iter().try_for_each(|done| done.map(drop))
    }
}

impl Queue for PostgresQueue {
    fn publish(&self, messages: Vec<Message>) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async move {
            let wanted = messages.into_iter().map(Wanted::Publish);
            self.write_all(wanted).await
        })
    }

    fn take(
        &self,
        max: usize,
        lease: Duration,
    ) -> BoxFuture<'_, Result<Vec<Delivery>, BackendError>> {
        Box::pin(self.take_now(max, lease))
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.wait())
    }

    fn acknowledge(&self, receipts: Vec<Receipt>) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async move {
            let wanted = receipts.into_iter().map(Wanted::Acknowledge);
            self.write_all(wanted).await
        })
    }

    fn release(
        &self,
        receipt: Receipt,
        delay: Duration,
        spent: bool,
    ) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async move {
            let ready_at = self.postgres.now().plus(delay);
            self.postgres
                .desk()
                .write(Wanted::Release {
                    receipt,
                    ready_at,
                    spent,
                })
                .await
                .map(drop)
        })
    }

    fn bury(&self, receipt: Receipt, why: Label) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async move {
            self.postgres
                .desk()
                .write(Wanted::Bury {
                    receipt,
                    why,
                    spent: true,
                })
                .await
                .map(drop)
        })
    }

    fn extend(
        &self,
        receipts: Vec<Receipt>,
        lease: Duration,
    ) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async move {
            let until = self.postgres.now().plus(lease);
            let wanted = receipts
                .into_iter()
                .map(|receipt| Wanted::Extend { receipt, until });
            self.write_all(wanted).await
        })
    }

    fn depth(&self) -> BoxFuture<'_, Result<Depth, BackendError>> {
        Box::pin(async move {
            let (name, now) = (self.name.as_str(), self.postgres.now().millis());
            let counted = self.postgres.database().with(move |connection| {
                Box::pin(query(DEPTH).bind(name).bind(now).fetch_one(connection))
            });
            let row = counted.await?;
            let count = |column| row.try_get(column).map(number).map_err(trouble);
            Ok(Depth {
                ready: count(0)?,
                later: count(1)?,
                taken: count(2)?,
                dead: count(3)?,
            })
        })
    }

    fn dead(
        &self,
        after: Option<u64>,
        max: usize,
    ) -> BoxFuture<'_, Result<Vec<DeadLetter>, BackendError>> {
        Box::pin(async move {
            let name = self.name;
            let after = after.map_or(-1, |after| i64::try_from(after).unwrap_or(i64::MAX));
            let max = i64::try_from(max).unwrap_or(i64::MAX);
            let read = self.postgres.database().with(move |connection| {
                Box::pin(
                    query(DEAD)
                        .bind(name.as_str())
                        .bind(after)
                        .bind(max)
                        .fetch_all(connection),
                )
            });
            let rows = read.await?;
            let read = |row| dead_letter(name, row).map_err(corrupt);
            rows.iter().map(read).collect()
        })
    }

    fn requeue(&self, numbers: Vec<u64>) -> BoxFuture<'_, Result<usize, BackendError>> {
        Box::pin(async move {
            let requeued = self.change(REQUEUE, numbers, None).await?;
            if requeued > 0 {
                self.postgres.published(self.name);
            }
            Ok(requeued)
        })
    }

    fn discard(
        &self,
        numbers: Vec<u64>,
        reason: Label,
    ) -> BoxFuture<'_, Result<usize, BackendError>> {
        Box::pin(self.change(DISCARD, numbers, Some(reason)))
    }
}
