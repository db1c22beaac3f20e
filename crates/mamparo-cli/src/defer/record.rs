//! Transactions, their history and dead letters, as they are shown.

use mamparo_durable::backend::{DeadLetter, Message, QueueName};
use mamparo_durable::machine::{AuditEvent, End, Label, Record, State, TransactionId, Utc};
use serde_json::{Value, json};

use crate::output::plain;

/// A transaction, as JSON.
pub(super) fn transaction(record: &Record) -> Value {
    let (terms, progress) = (&record.terms, &record.progress);
    json!({
        "transaction_id": terms.id.as_str(),
        "state": progress.state.as_str(),
        "end": progress.end.map(End::as_str),
        "kind": terms.kind.as_str(),
        "customer": terms.customer.as_ref().map(Label::as_str),
        "dependency": terms.dependency.as_ref().map(Label::as_str),
        "attempt_current": progress.attempt_current,
        "attempt_next": progress.attempt_next,
        "max_attempts": terms.max_attempts,
        "schedule_seq": progress.schedule_seq,
        "postponements": progress.postponements,
        "max_postponements": terms.max_postponements,
        "next_fire_at": progress.next_fire_at.map(instant),
        "give_up_at": instant(terms.give_up_at),
        "reason": progress.reason.as_ref().map(Label::as_str),
        "created_at": instant(terms.created_at),
        "updated_at": instant(progress.updated_at),
    })
}

/// A row of history, as JSON.
pub(super) fn event(event: &AuditEvent, id: &TransactionId) -> Value {
    json!({
        "at": instant(event.at),
        "cause": event.cause.as_str(),
        "from": event.from.map(State::as_str),
        "to": event.to.as_str(),
        "attempt": event.attempt,
        "seq": event.seq,
        "fire_at": event.fire_at.map(instant),
        "schedule": event.schedule_name(id),
        "reason": event.reason.as_ref().map(Label::as_str),
    })
}

/// A dead letter, as JSON.
pub(super) fn dead(queue: QueueName, letter: &DeadLetter) -> Value {
    let (attempt, seq) = letter.message.as_ref().map(numbers).unzip();
    json!({
        "queue": queue.as_str(),
        "number": letter.number,
        "transaction_id": letter.message.as_ref().map(|message| message.id().as_str()),
        "attempt": attempt,
        "seq": seq,
        "why": letter.why.as_str(),
        "buried_at": instant(letter.buried_at),
        "deliveries": letter.deliveries,
    })
}

/// A dead letter, in a line.
pub(super) fn dead_line(queue: QueueName, letter: &DeadLetter) -> String {
    let about = match &letter.message {
        Some(message) => {
            let (attempt, seq) = numbers(message);
            format!("{} attempt {attempt} seq {seq}", message.id())
        }
        None => "a message that can't be read".to_owned(),
    };
    let (number, times, at) = (letter.number, letter.deliveries, letter.buried_at);
    let (queue, why) = (queue.as_str(), letter.why.as_str());
    plain(&format!(
        "{queue} {number}  {about}  delivered {times} times  {at}  {why}"
    ))
}

/// A transaction, in a line.
pub(super) fn line(record: &Record) -> String {
    let (terms, progress) = (&record.terms, &record.progress);
    let mut line = format!(
        "{}  {}  attempt {} of {}",
        terms.id, progress.state, progress.attempt_current, terms.max_attempts
    );
    if let Some(end) = progress.end {
        line += &format!("  {end}");
    }
    if let Some(due) = progress
        .next_fire_at
        .filter(|_| progress.state.is_waiting())
    {
        let next = progress.attempt_next.unwrap_or(progress.attempt_current);
        line += &format!("  attempt {next} at {due}");
    }
    if progress.postponements > 0 {
        line += &format!("  postponed {} times", progress.postponements);
    }
    // Of one that has succeeded it is why an earlier attempt did not: its history says so.
    let failing = progress.state != State::Succeeded;
    if let Some(reason) = progress.reason.as_ref().filter(|_| failing) {
        line += &format!("  {}", reason.as_str());
    }
    plain(&line)
}

/// A row of history, in a line.
pub(super) fn event_line(event: &AuditEvent, id: &TransactionId) -> String {
    let from = event.from.map_or("", State::as_str);
    let mut line = format!(
        "  {}  {:<17}  {from:>10} → {:<10}  attempt {}",
        event.at,
        event.cause.as_str(),
        event.to.as_str(),
        event.attempt
    );
    if let (Some(due), Some(name)) = (event.fire_at, event.schedule_name(id)) {
        line += &format!("  {name} at {due}");
    }
    if let Some(reason) = &event.reason {
        line += &format!("  {}", reason.as_str());
    }
    plain(line.trim_end())
}

pub(super) fn instant(instant: Utc) -> String {
    instant.to_string()
}

const fn numbers(message: &Message) -> (u32, u32) {
    match message {
        Message::Answer { answer, .. } => (answer.attempt, answer.seq),
        Message::Fire { attempt, seq, .. } => (*attempt, *seq),
        Message::Request(request) => (request.attempt, request.seq),
    }
}
