//! Transactions and rows of history as items, and back.

use std::collections::HashMap;
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use mamparo_durable::backend::{BackendError, NewTransaction, Trouble};
use mamparo_durable::limits::LONGEST_WAIT;
use mamparo_durable::machine::{
    AuditEvent, Cause, End, Label, Progress, Record, State, Terms, TransactionId, Utc,
};

use super::schema::{
    ATTEMPT_CURRENT, CREATED_AT, DEPENDENCY, EXPIRES_AT, HISTORY, ID, KIND, NEXT_FIRE_AT, PART,
    PLACE, RECORD, SINCE, UPDATED_AT, place, shard,
};

/// Attributes by name.
pub(crate) type Item = HashMap<String, AttributeValue>;

/// Why an item makes no sense.
pub(super) type Nonsense = String;

pub(crate) fn text(value: impl Into<String>) -> AttributeValue {
    AttributeValue::S(value.into())
}

pub(crate) fn number(value: impl Display) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

/// The key of a part of a transaction.
pub(super) fn key(id: &TransactionId, part: impl Into<String>) -> Item {
    Item::from([
        (ID.to_owned(), text(id.as_str())),
        (PART.to_owned(), text(part)),
    ])
}

/// When the service removes what ended then, in seconds.
pub(super) fn expiry(ended_at: Utc, retention: Duration) -> i64 {
    ended_at.plus(retention).millis() / 1000
}

/// What every transition writes; what is `None` is removed.
pub(super) fn progress(
    id: &TransactionId,
    to: &Progress,
    retention: Duration,
) -> [(&'static str, Option<AttributeValue>); 12] {
    let since = match to.state {
        State::Scheduled => to.next_fire_at.unwrap_or(to.updated_at),
        _ => to.updated_at,
    };
    let expires = (to.state.is_terminal()).then(|| number(expiry(to.updated_at, retention)));
    [
        ("state", Some(text(to.state.as_str()))),
        (ATTEMPT_CURRENT, Some(number(to.attempt_current))),
        ("attempt_next", to.attempt_next.map(number)),
        ("schedule_seq", Some(number(to.schedule_seq))),
        ("postponements", Some(number(to.postponements))),
        (NEXT_FIRE_AT, to.next_fire_at.map(Utc::millis).map(number)),
        ("reason", label(to.reason.as_ref())),
        ("ended", to.end.map(|end| text(end.as_str()))),
        (UPDATED_AT, Some(number(to.updated_at.millis()))),
        (PLACE, Some(text(place(to.state, shard(id))))),
        (SINCE, Some(number(since.millis()))),
        (EXPIRES_AT, expires),
    ]
}

fn label(label: Option<&Label>) -> Option<AttributeValue> {
    label.map(|label| text(label.as_str()))
}

/// A transaction that begins, and stands there.
pub(super) fn begun(new: &NewTransaction, stands: &Progress, retention: Duration) -> Item {
    let terms = &*new.record.terms;
    let constant = [
        (KIND, Some(text(terms.kind.as_str()))),
        ("customer", label(terms.customer.as_ref())),
        (DEPENDENCY, label(terms.dependency.as_ref())),
        ("trace", label(terms.trace.as_ref())),
        ("max_attempts", Some(number(terms.max_attempts))),
        ("max_postponements", Some(number(terms.max_postponements))),
        ("give_up_at", Some(number(terms.give_up_at.millis()))),
        (CREATED_AT, Some(number(terms.created_at.millis()))),
    ];
    let mut item = key(&terms.id, RECORD);
    let changing = progress(&terms.id, stands, retention);
    fill(&mut item, constant.into_iter().chain(changing));
    item
}

fn fill(
    item: &mut Item,
    attributes: impl IntoIterator<Item = (&'static str, Option<AttributeValue>)>,
) {
    let there = attributes
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)));
    item.extend(there);
}

/// A row of history, of the transition to there.
///
/// The service keeps it for a year longer than what ended: no wait is longer, so a transaction that ends is gone before its history.
pub(super) fn told(
    id: &TransactionId,
    event: &AuditEvent,
    to: &Progress,
    retention: Duration,
) -> Item {
    let expires = expiry(event.at, retention.saturating_add(LONGEST_WAIT));
    let attributes = [
        ("at", Some(number(event.at.millis()))),
        ("from", event.from.map(|from| text(from.as_str()))),
        ("to", Some(text(event.to.as_str()))),
        ("attempt", Some(number(event.attempt))),
        ("seq", Some(number(event.seq))),
        ("fire_at", event.fire_at.map(Utc::millis).map(number)),
        ("cause", Some(text(event.cause.as_str()))),
        ("reason", label(event.reason.as_ref())),
        (EXPIRES_AT, Some(number(expires))),
    ];
    let mut item = key(id, history_part(event, to));
    fill(&mut item, attributes);
    item
}

/// Sorts rows as a transaction goes, whatever the clocks of different machines say: by the attempt that it is about, the schedule
/// of that attempt, and the state; its begin is first. Where it is only looked after, and stays where it is, by the time.
fn history_part(event: &AuditEvent, to: &Progress) -> String {
    let attempt = event
        .from
        .map_or(0, |_| to.attempt_next.unwrap_or(to.attempt_current));
    let (attempt, place) = match to.state {
        State::Scheduling => (attempt, 0),
        State::Scheduled => (attempt, 1),
        State::Sending => (attempt, 2),
        State::InFlight => (attempt, 3),
        _ => (u32::MAX, 4),
    };
    let seq = to.schedule_seq;
    let millis = event.at.millis();
    let random = fastrand::u32(..);
    format!("{HISTORY}{attempt:010}#{seq:010}#{place}#{millis:015}#{random:08x}")
}

/// Reads a transaction; one that can't be read fails by its id.
pub(super) fn record(item: &Item) -> Result<Record, BackendError> {
    read_record(item).map_err(|what| {
        let id = maybe(item, ID).ok().flatten().unwrap_or("without an id");
        corrupt(format!("transaction {id} can't be read: {what}"))
    })
}

pub(super) fn corrupt(what: String) -> BackendError {
    BackendError::new(Trouble::Corrupt, what)
}

fn read_record(item: &Item) -> Result<Record, Nonsense> {
    let progress = Progress {
        state: named(item, "state", State::parse)?,
        attempt_current: count(item, ATTEMPT_CURRENT)?,
        attempt_next: maybe_count(item, "attempt_next")?,
        schedule_seq: count(item, "schedule_seq")?,
        postponements: count(item, "postponements")?,
        next_fire_at: maybe_instant(item, NEXT_FIRE_AT)?,
        updated_at: instant(item, UPDATED_AT)?,
        reason: maybe_label(item, "reason")?,
        end: maybe_named(item, "ended", End::parse)?,
    };
    let terms = Terms {
        id: id(item)?,
        kind: Label::from(some(item, KIND, maybe)?),
        customer: maybe_label(item, "customer")?,
        dependency: maybe_label(item, DEPENDENCY)?,
        trace: maybe_label(item, "trace")?,
        max_attempts: count(item, "max_attempts")?,
        max_postponements: count(item, "max_postponements")?,
        give_up_at: instant(item, "give_up_at")?,
        created_at: instant(item, CREATED_AT)?,
    };
    Ok(Record::new(terms, progress))
}

/// Reads a row of history.
pub(super) fn event(item: &Item) -> Result<AuditEvent, Nonsense> {
    Ok(AuditEvent {
        at: instant(item, "at")?,
        from: maybe_named(item, "from", State::parse)?,
        to: named(item, "to", State::parse)?,
        attempt: count(item, "attempt")?,
        seq: count(item, "seq")?,
        fire_at: maybe_instant(item, "fire_at")?,
        cause: named(item, "cause", Cause::parse)?,
        reason: maybe_label(item, "reason")?,
    })
}

pub(super) fn id(item: &Item) -> Result<TransactionId, Nonsense> {
    TransactionId::new(some(item, ID, maybe)?).map_err(|error| error.to_string())
}

pub(super) fn count(item: &Item, name: &str) -> Result<u32, Nonsense> {
    some(item, name, maybe_count)
}

pub(super) fn instant(item: &Item, name: &str) -> Result<Utc, Nonsense> {
    some(item, name, maybe_instant)
}

pub(super) fn maybe_instant(item: &Item, name: &str) -> Result<Option<Utc>, Nonsense> {
    let Some(millis) = maybe_number::<i64>(item, name)? else {
        return Ok(None);
    };
    let read = Utc::from_millis(millis).map_err(|error| format!("its {name}: {error}"))?;
    Ok(Some(read))
}

pub(super) fn maybe_label(item: &Item, name: &str) -> Result<Option<Label>, Nonsense> {
    Ok(maybe(item, name)?.map(Label::from))
}

pub(super) fn named<T>(
    item: &Item,
    name: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<T, Nonsense> {
    maybe_named(item, name, parse)?.ok_or_else(|| format!("it has no {name}"))
}

fn maybe_named<T>(
    item: &Item,
    name: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, Nonsense> {
    let Some(word) = maybe(item, name)? else {
        return Ok(None);
    };
    let read = parse(word).ok_or_else(|| format!("its {name} is {word:?}"))?;
    Ok(Some(read))
}

fn maybe_count(item: &Item, name: &str) -> Result<Option<u32>, Nonsense> {
    maybe_number(item, name)
}

fn maybe_number<T: FromStr<Err: Display>>(item: &Item, name: &str) -> Result<Option<T>, Nonsense> {
    match item.get(name) {
        None => Ok(None),
        Some(AttributeValue::N(digits)) => match digits.parse() {
            Ok(read) => Ok(Some(read)),
            Err(error) => Err(format!("its {name} is {digits:?}: {error}")),
        },
        Some(_) => Err(format!("its {name} is no number")),
    }
}

fn maybe<'a>(item: &'a Item, name: &str) -> Result<Option<&'a str>, Nonsense> {
    match item.get(name) {
        None => Ok(None),
        Some(AttributeValue::S(text)) => Ok(Some(text)),
        Some(_) => Err(format!("its {name} is no text")),
    }
}

fn some<'a, T>(
    item: &'a Item,
    name: &str,
    read: impl Fn(&'a Item, &str) -> Result<Option<T>, Nonsense>,
) -> Result<T, Nonsense> {
    read(item, name)?.ok_or_else(|| format!("it has no {name}"))
}
