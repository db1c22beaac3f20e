//! Rows that become messages.

use bytes::Bytes;
use mamparo_durable::backend::{DeadLetter, Message, QueueName, Request};
use mamparo_durable::machine::{Answer, Label, Outcome, Terms, TransactionId, Utc};
use mamparo_durable::policy::Policy;
use sqlx::postgres::PgRow;

use super::record::{get, instant, label, number, small};

/// Reads a fire or an answer whose columns begin, at `first`, with its transaction, attempt and seq; or says why
/// it can't be read. A request is read with its transaction.
pub(crate) fn fire_or_answer(
    queue: QueueName,
    row: &PgRow,
    first: usize,
) -> Result<Message, String> {
    let id = TransactionId::new(get::<&str>(row, first)?).map_err(|error| error.to_string())?;
    let (attempt, seq) = (small(get(row, first + 1)?)?, small(get(row, first + 2)?)?);
    if queue == QueueName::Fires {
        return Ok(Message::Fire { id, attempt, seq });
    }
    let outcome: Option<&str> = get(row, first + 3)?;
    let named = outcome.and_then(Outcome::parse);
    let outcome = named.ok_or_else(|| format!("its outcome is {outcome:?}"))?;
    let mut answer = Answer::new(attempt, seq, outcome);
    answer.reason = label(row, first + 4)?;
    answer.not_before = get::<Option<i64>>(row, first + 5)?
        .map(instant)
        .transpose()?;
    Ok(Message::Answer { id, answer })
}

/// Reads a request whose columns begin with transaction, attempt, seq at `first`, and its transaction's kind, dependency, trace and
/// request at `joined`.
pub(crate) fn request_of(row: &PgRow, first: usize, joined: usize) -> Result<Message, String> {
    let id = TransactionId::new(get::<&str>(row, first)?).map_err(|error| error.to_string())?;
    let body: Option<Vec<u8>> = get(row, joined + 3)?;
    let (Some(kind), Some(body)) = (label(row, joined)?, body) else {
        return Err("its transaction is gone".to_owned());
    };
    // As much of the terms as a request says.
    let mut terms = Terms::new(id, kind, &Policy::default(), Utc::MIN);
    terms.dependency = label(row, joined + 1)?;
    terms.trace = label(row, joined + 2)?;
    let (attempt, seq) = (small(get(row, first + 1)?)?, small(get(row, first + 2)?)?);
    Ok(Message::Request(Request::new(
        &terms,
        attempt,
        seq,
        Bytes::from(body),
    )))
}

/// Reads a dead letter: its number, the columns of a message, how often it was delivered, why and when it was buried, and its
/// transaction's columns.
pub(crate) fn dead_letter(queue: QueueName, row: &PgRow) -> Result<DeadLetter, String> {
    let message = match queue {
        QueueName::Requests => request_of(row, 1, 10),
        QueueName::Answers | QueueName::Fires => fire_or_answer(queue, row, 1),
    };
    let why: &str = get(row, 8)?;
    let (buried_at, deliveries) = (instant(get(row, 9)?)?, small(get(row, 7)?)?);
    Ok(DeadLetter::new(
        number(get(row, 0)?),
        message.ok(),
        Label::from(why),
        buried_at,
        deliveries,
    ))
}
