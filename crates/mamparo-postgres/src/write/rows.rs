//! Columns of rows, as the statements take them.

use mamparo_durable::backend::{Message, NewTransaction, QueueName};
use mamparo_durable::machine::{
    AuditEvent, Expect, Label, Progress, Schedule, State, TransactionId, Utc,
};
use sqlx::postgres::{PgArguments, PgConnection, PgQueryResult, PgRow};
use sqlx::query::Query;
use sqlx::{Error, Postgres, Row as _, query};

use super::statements;

fn millis(instant: Option<Utc>) -> Option<i64> {
    instant.map(Utc::millis)
}

/// What every transition writes.
#[derive(Default)]
struct ProgressRows<'a> {
    id: Vec<&'a str>,
    state: Vec<&'static str>,
    attempt_current: Vec<i64>,
    attempt_next: Vec<Option<i64>>,
    schedule_seq: Vec<i64>,
    postponements: Vec<i64>,
    next_fire_at: Vec<Option<i64>>,
    updated_at: Vec<i64>,
    reason: Vec<Option<&'a str>>,
    ended: Vec<Option<&'static str>>,
}

impl<'a> ProgressRows<'a> {
    fn push(&mut self, id: &'a TransactionId, to: &'a Progress) {
        self.id.push(id.as_str());
        self.state.push(to.state.as_str());
        self.attempt_current.push(to.attempt_current.into());
        self.attempt_next.push(to.attempt_next.map(Into::into));
        self.schedule_seq.push(to.schedule_seq.into());
        self.postponements.push(to.postponements.into());
        self.next_fire_at.push(millis(to.next_fire_at));
        self.updated_at.push(to.updated_at.millis());
        self.reason.push(to.reason.as_ref().map(Label::as_str));
        self.ended
            .push(to.end.map(mamparo_durable::machine::End::as_str));
    }

    fn bind(self, statement: &'static str) -> Query<'a, Postgres, PgArguments> {
        query(statement)
            .bind(self.id)
            .bind(self.state)
            .bind(self.attempt_current)
            .bind(self.attempt_next)
            .bind(self.schedule_seq)
            .bind(self.postponements)
            .bind(self.next_fire_at)
            .bind(self.updated_at)
            .bind(self.reason)
            .bind(self.ended)
    }
}

/// Transactions that begin.
#[derive(Default)]
pub(super) struct BeginRows<'a> {
    progress: ProgressRows<'a>,
    kind: Vec<&'a str>,
    customer: Vec<Option<&'a str>>,
    dependency: Vec<Option<&'a str>>,
    trace: Vec<Option<&'a str>>,
    max_attempts: Vec<i64>,
    max_postponements: Vec<i64>,
    give_up_at: Vec<i64>,
    created_at: Vec<i64>,
    request: Vec<&'a [u8]>,
}

impl<'a> BeginRows<'a> {
    pub(super) fn push(&mut self, new: &'a NewTransaction, stands: &'a Progress) {
        let terms = &*new.record.terms;
        self.progress.push(&terms.id, stands);
        self.kind.push(terms.kind.as_str());
        self.customer
            .push(terms.customer.as_ref().map(Label::as_str));
        self.dependency
            .push(terms.dependency.as_ref().map(Label::as_str));
        self.trace.push(terms.trace.as_ref().map(Label::as_str));
        self.max_attempts.push(terms.max_attempts.into());
        self.max_postponements.push(terms.max_postponements.into());
        self.give_up_at.push(terms.give_up_at.millis());
        self.created_at.push(terms.created_at.millis());
        self.request.push(&new.request);
    }

    /// Returns the ids of those that began.
    pub(super) async fn write(self, connection: &mut PgConnection) -> Result<Vec<String>, Error> {
        let statement = self
            .progress
            .bind(statements::BEGIN)
            .bind(self.kind)
            .bind(self.customer)
            .bind(self.dependency)
            .bind(self.trace)
            .bind(self.max_attempts)
            .bind(self.max_postponements)
            .bind(self.give_up_at)
            .bind(self.created_at)
            .bind(self.request);
        let rows = statement.fetch_all(connection).await?;
        rows.iter().map(|row| row.try_get(0)).collect()
    }
}

/// Transitions.
#[derive(Default)]
pub(super) struct TransitRows<'a> {
    to: ProgressRows<'a>,
    state: Vec<&'static str>,
    current: Vec<i64>,
    next: Vec<Option<i64>>,
    seq: Vec<i64>,
}

impl<'a> TransitRows<'a> {
    pub(super) fn push(&mut self, id: &'a TransactionId, from: Expect, to: &'a Progress) {
        self.to.push(id, to);
        self.state.push(from.state.as_str());
        self.current.push(from.attempt_current.into());
        self.next.push(from.attempt_next.map(Into::into));
        self.seq.push(from.schedule_seq.into());
    }

    /// Returns the places, from 0, of those that applied.
    pub(super) async fn write(self, connection: &mut PgConnection) -> Result<Vec<usize>, Error> {
        let statement = self.to.bind(statements::TRANSIT);
        let statement = statement
            .bind(self.state)
            .bind(self.current)
            .bind(self.next)
            .bind(self.seq);
        let rows = statement.fetch_all(connection).await?;
        rows.iter().map(place).collect()
    }
}

/// The place in the arrays, from 0, that the server counts from 1.
fn place(row: &PgRow) -> Result<usize, Error> {
    let place: i64 = row.try_get(0)?;
    Ok(usize::try_from(place - 1).unwrap_or(usize::MAX))
}

/// Rows of history.
#[derive(Default)]
pub(super) struct HistoryRows<'a> {
    id: Vec<&'a str>,
    at: Vec<i64>,
    from: Vec<Option<&'static str>>,
    to: Vec<&'static str>,
    attempt: Vec<i64>,
    seq: Vec<i64>,
    fire_at: Vec<Option<i64>>,
    cause: Vec<&'static str>,
    reason: Vec<Option<&'a str>>,
}

impl<'a> HistoryRows<'a> {
    pub(super) fn push(&mut self, id: &'a TransactionId, event: &'a AuditEvent) {
        self.begun(id, event);
        self.reason.push(event.reason.as_ref().map(Label::as_str));
    }

    /// The first one, that has no reason.
    pub(super) fn push_first(&mut self, id: &'a TransactionId, event: &AuditEvent) {
        self.begun(id, event);
        self.reason.push(None);
    }

    fn begun(&mut self, id: &'a TransactionId, event: &AuditEvent) {
        self.id.push(id.as_str());
        self.at.push(event.at.millis());
        self.from.push(event.from.map(State::as_str));
        self.to.push(event.to.as_str());
        self.attempt.push(event.attempt.into());
        self.seq.push(event.seq.into());
        self.fire_at.push(millis(event.fire_at));
        self.cause.push(event.cause.as_str());
    }

    pub(super) async fn write(self, connection: &mut PgConnection) -> Result<(), Error> {
        if self.id.is_empty() {
            return Ok(());
        }
        query(statements::HISTORY)
            .bind(self.id)
            .bind(self.at)
            .bind(self.from)
            .bind(self.to)
            .bind(self.attempt)
            .bind(self.seq)
            .bind(self.fire_at)
            .bind(self.cause)
            .bind(self.reason)
            .execute(connection)
            .await
            .map(drop)
    }
}

/// Messages that are ready at once.
#[derive(Default)]
pub(super) struct MessageRows<'a> {
    queue: Vec<&'static str>,
    id: Vec<&'a str>,
    attempt: Vec<i64>,
    seq: Vec<i64>,
    outcome: Vec<Option<&'static str>>,
    reason: Vec<Option<&'a str>>,
    not_before: Vec<Option<i64>>,
}

impl<'a> MessageRows<'a> {
    /// A fire, or a request that is read with its transaction.
    pub(super) fn push(&mut self, queue: QueueName, id: &'a TransactionId, attempt: u32, seq: u32) {
        self.named(queue, id, attempt, seq);
        self.outcome.push(None);
        self.reason.push(None);
        self.not_before.push(None);
    }

    pub(super) fn push_message(&mut self, message: &'a Message) {
        match message {
            Message::Fire { id, attempt, seq } => self.push(QueueName::Fires, id, *attempt, *seq),
            Message::Request(request) => {
                self.push(
                    QueueName::Requests,
                    &request.id,
                    request.attempt,
                    request.seq,
                );
            }
            Message::Answer { id, answer } => {
                self.named(QueueName::Answers, id, answer.attempt, answer.seq);
                self.outcome.push(Some(answer.outcome.as_str()));
                self.reason.push(answer.reason.as_ref().map(Label::as_str));
                self.not_before.push(millis(answer.not_before));
            }
        }
    }

    fn named(&mut self, queue: QueueName, id: &'a TransactionId, attempt: u32, seq: u32) {
        self.queue.push(queue.as_str());
        self.id.push(id.as_str());
        self.attempt.push(attempt.into());
        self.seq.push(seq.into());
    }

    pub(super) async fn write(self, connection: &mut PgConnection, now: Utc) -> Result<(), Error> {
        if self.id.is_empty() {
            return Ok(());
        }
        query(statements::PUBLISH)
            .bind(self.queue)
            .bind(self.id)
            .bind(self.attempt)
            .bind(self.seq)
            .bind(self.outcome)
            .bind(self.reason)
            .bind(self.not_before)
            .bind(now.millis())
            .execute(connection)
            .await
            .map(drop)
    }
}

/// Names of schedules, and when they fire.
#[derive(Clone, Default)]
pub(super) struct ScheduleRows<'a> {
    id: Vec<&'a str>,
    attempt: Vec<i64>,
    seq: Vec<i64>,
    fire_at: Vec<i64>,
}

/// What became of one of them.
pub(super) struct Made {
    pub(super) place: usize,
    pub(super) new: bool,
    pub(super) same: bool,
}

impl<'a> ScheduleRows<'a> {
    pub(super) fn push(&mut self, id: &'a TransactionId, schedule: &Schedule) {
        self.push_name(id, schedule.attempt, schedule.seq);
        self.fire_at.push(schedule.fire_at.millis());
    }

    /// One that is to be deleted.
    pub(super) fn push_name(&mut self, id: &'a TransactionId, attempt: u32, seq: u32) {
        self.id.push(id.as_str());
        self.attempt.push(attempt.into());
        self.seq.push(seq.into());
    }

    pub(super) fn earliest(&self) -> Option<i64> {
        self.fire_at.iter().min().copied()
    }

    /// Makes them; says what became of each if not all of them are new.
    pub(super) async fn write(self, connection: &mut PgConnection) -> Result<Vec<Made>, Error> {
        let count = self.id.len() as u64;
        if count == 0 {
            return Ok(Vec::new());
        }
        let made = self
            .clone()
            .bind(statements::SCHEDULE)
            .execute(&mut *connection)
            .await?;
        if made.rows_affected() == count {
            return Ok(Vec::new());
        }
        let rows = self
            .bind(statements::SCHEDULED)
            .fetch_all(connection)
            .await?;
        let read = |row: &PgRow| {
            let (place, new, same) = (place(row)?, row.try_get(1)?, row.try_get(2)?);
            Ok(Made { place, new, same })
        };
        rows.iter().map(read).collect()
    }

    fn bind(self, statement: &'static str) -> Query<'a, Postgres, PgArguments> {
        query(statement)
            .bind(self.id)
            .bind(self.attempt)
            .bind(self.seq)
            .bind(self.fire_at)
    }

    pub(super) async fn delete(self, connection: &mut PgConnection) -> Result<(), Error> {
        if self.id.is_empty() {
            return Ok(());
        }
        let deleted: Result<PgQueryResult, Error> = query(statements::UNSCHEDULE)
            .bind(self.id)
            .bind(self.attempt)
            .bind(self.seq)
            .execute(connection)
            .await;
        deleted.map(drop)
    }
}
