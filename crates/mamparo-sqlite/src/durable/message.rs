//! Messages and schedules: a schedule is a message that is not ready yet.

use mamparo_core::BoxError;
use mamparo_durable::backend::{Created, Message, QueueName, Receipt, Request};
use mamparo_durable::machine::{Answer, Label, Outcome, Schedule, TransactionId, Utc};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::error::Failed;
use super::row;
use super::wake::Wakes;

/// What is kept of a message. A request's body and kind are its transaction's, and are read when it is taken.
#[derive(Debug)]
pub(super) struct Kept<'a> {
    queue: QueueName,
    id: &'a TransactionId,
    attempt: u32,
    seq: u32,
    answer: Option<&'a Answer>,
}

impl<'a> Kept<'a> {
    /// The request of (attempt, seq).
    pub(super) const fn request(id: &'a TransactionId, attempt: u32, seq: u32) -> Self {
        Self {
            queue: QueueName::Requests,
            id,
            attempt,
            seq,
            answer: None,
        }
    }
}

impl<'a> From<&'a Message> for Kept<'a> {
    fn from(message: &'a Message) -> Self {
        let (id, queue) = (message.id(), message.queue());
        let (attempt, seq, answer) = match message {
            Message::Answer { answer, .. } => (answer.attempt, answer.seq, Some(answer)),
            Message::Fire { attempt, seq, .. } => (*attempt, *seq, None),
            Message::Request(request) => (request.attempt, request.seq, None),
        };
        Self {
            queue,
            id,
            attempt,
            seq,
            answer,
        }
    }
}

/// Puts a message into its queue.
pub(super) fn publish(
    file: &Connection,
    message: &Kept<'_>,
    now: Utc,
    wakes: &Wakes,
) -> Result<(), Failed> {
    let answer = message.answer;
    let mut publish = file.prepare_cached(
        "INSERT INTO mamparo_durable_message
            (queue, ready_at, since, lease, deliveries, scheduled, id, attempt, seq, outcome, reason, not_before)
         VALUES (?1, ?2, ?2, 0, 0, 0, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?;
    publish.execute(params![
        message.queue.as_str(),
        now.millis(),
        message.id.as_str(),
        message.attempt,
        message.seq,
        answer.map(|answer| answer.outcome.as_str()),
        answer.and_then(|answer| answer.reason.as_ref().map(Label::as_str)),
        answer.and_then(|answer| answer.not_before.map(Utc::millis)),
    ])?;
    wakes.of(message.queue).tell(now);
    Ok(())
}

/// Makes a schedule.
pub(super) fn schedule(
    file: &Connection,
    id: &TransactionId,
    schedule: &Schedule,
    wakes: &Wakes,
) -> Result<Created, Failed> {
    let Schedule {
        attempt,
        seq,
        fire_at,
    } = *schedule;
    let mut create = file.prepare_cached(
        "INSERT INTO mamparo_durable_message (queue, ready_at, since, lease, deliveries, scheduled, id, attempt, seq)
         VALUES ('fires', ?1, ?1, 0, 0, 1, ?2, ?3, ?4)
         ON CONFLICT (id, attempt, seq) WHERE scheduled = 1 DO NOTHING",
    )?;
    if create.execute(params![fire_at.millis(), id.as_str(), attempt, seq])? == 1 {
        wakes.of(QueueName::Fires).tell(fire_at);
        return Ok(Created::New);
    }
    let mut asked = file.prepare_cached(SCHEDULED)?;
    let there: i64 = asked.query_row(params![id.as_str(), attempt, seq], |row| row.get(0))?;
    Ok(match there == fire_at.millis() {
        true => Created::Same,
        false => Created::Conflict,
    })
}

pub(super) const SCHEDULED: &str = "SELECT since FROM mamparo_durable_message
    WHERE id = ?1 AND attempt = ?2 AND seq = ?3 AND scheduled = 1";

/// Deletes a schedule that has not fired.
pub(super) fn unschedule(
    file: &Connection,
    id: &TransactionId,
    attempt: u32,
    seq: u32,
) -> Result<(), Failed> {
    let mut delete = file.prepare_cached(UNSCHEDULE)?;
    delete.execute(params![id.as_str(), attempt, seq])?;
    Ok(())
}

pub(super) const UNSCHEDULE: &str = "DELETE FROM mamparo_durable_message
    WHERE id = ?1 AND attempt = ?2 AND seq = ?3 AND scheduled = 1";

/// Moves a schedule to the next number and another instant, or makes it if it has fired.
pub(super) fn reschedule(
    file: &Connection,
    id: &TransactionId,
    to: &Schedule,
    wakes: &Wakes,
) -> Result<(), Failed> {
    let mut moved = file.prepare_cached(RESCHEDULE)?;
    let fire_at = to.fire_at.millis();
    let moved = moved.execute(params![id.as_str(), to.attempt, to.seq, fire_at])?;
    if moved == 1 {
        wakes.of(QueueName::Fires).tell(to.fire_at);
        return Ok(());
    }
    schedule(file, id, to, wakes)?;
    match to.seq.checked_sub(1) {
        Some(before) => unschedule(file, id, to.attempt, before),
        None => Ok(()),
    }
}

/// One that is there already under the new number is left.
pub(super) const RESCHEDULE: &str = "UPDATE OR IGNORE mamparo_durable_message
    SET seq = ?3, ready_at = ?4, since = ?4, lease = 0, deliveries = 0
    WHERE id = ?1 AND attempt = ?2 AND seq = ?3 - 1 AND scheduled = 1";

/// Removes a message that was handled, if that lease still has it.
pub(super) fn settle(file: &Connection, receipt: &Receipt) -> Result<(), Failed> {
    let mut settle = file
        .prepare_cached("DELETE FROM mamparo_durable_message WHERE number = ?1 AND lease = ?2")?;
    settle.execute(held(receipt))?;
    Ok(())
}

/// What finds the message of a receipt: its number and its lease. A number may be another message's later; a lease never is.
pub(super) const fn held(receipt: &Receipt) -> (i64, i64) {
    (receipt.message.cast_signed(), receipt.lease.cast_signed())
}

/// The columns of [`read`], in its order.
macro_rules! message_columns {
    () => {
        "id, attempt, seq, outcome, reason, not_before"
    };
}
pub(super) use message_columns;

/// Reads a message from a row, from that column on; says why where it can't be.
pub(super) fn read(
    file: &Connection,
    queue: QueueName,
    row: &Row<'_>,
    from: usize,
) -> Result<Result<Message, String>, Failed> {
    let read = match queue {
        QueueName::Answers => answer(row, from),
        QueueName::Fires => {
            fire(row, from).map(|(id, attempt, seq)| Message::Fire { id, attempt, seq })
        }
        QueueName::Requests => match fire(row, from) {
            Ok((id, attempt, seq)) => return request(file, &id, attempt, seq),
            Err(error) => Err(error),
        },
    };
    Ok(read.map_err(|error| format!("can't be read: {error}")))
}

fn fire(row: &Row<'_>, from: usize) -> Result<(TransactionId, u32, u32), BoxError> {
    let id: String = row.get(from)?;
    Ok((
        TransactionId::new(id)?,
        row.get(from + 1)?,
        row.get(from + 2)?,
    ))
}

fn answer(row: &Row<'_>, from: usize) -> Result<Message, BoxError> {
    let (id, attempt, seq) = fire(row, from)?;
    let outcome: String = row.get(from + 3)?;
    let known = Outcome::parse(&outcome);
    let outcome = known.ok_or_else(|| format!("\"{outcome}\" is no outcome of this version"))?;
    let mut answer = Answer::new(attempt, seq, outcome);
    let reason: Option<String> = row.get(from + 4)?;
    let not_before: Option<i64> = row.get(from + 5)?;
    answer.reason = reason.map(Label::from);
    answer.not_before = not_before.map(Utc::from_millis).transpose()?;
    Ok(Message::Answer { id, answer })
}

fn request(
    file: &Connection,
    id: &TransactionId,
    attempt: u32,
    seq: u32,
) -> Result<Result<Message, String>, Failed> {
    let mut asked = file.prepare_cached(REQUEST)?;
    let found = asked.query_row([id.as_str()], |row| {
        Ok((row::record(row), row.get::<_, Vec<u8>>(row::COLUMNS)?))
    });
    Ok(match found.optional()? {
        None => Err("its transaction is gone".to_owned()),
        Some((Err(error), _)) => Err(error.0.to_string()),
        Some((Ok(record), body)) => {
            let request = Request::new(&record.terms, attempt, seq, body.into());
            Ok(Message::Request(request))
        }
    })
}

pub(super) const REQUEST: &str = concat!(
    "SELECT ",
    row::columns!(),
    ", body FROM mamparo_durable JOIN mamparo_durable_request USING (number) WHERE id = ?1"
);
