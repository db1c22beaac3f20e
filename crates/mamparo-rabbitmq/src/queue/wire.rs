//! How the engine's messages are written, and what their headers say: pure.

use bytes::Bytes;
use lapin::BasicProperties;
use lapin::types::AMQPValue;
use mamparo_durable::backend::{Message as Engines, QueueName, Request};
use mamparo_durable::machine::{Label, Terms, TransactionId, Utc};
use mamparo_durable::policy::Policy;

use crate::Message;
use crate::message::{attempts_made, header, headers, number, with_number};

/// As long as an id of a message may be.
const LONGEST_ID: usize = 255;

/// How often the broker has handed it to somebody who did not settle it; its own header.
const DELIVERY_COUNT: &str = "x-delivery-count";

/// An answer or a fire is JSON; a request is its own body, what it is about is in its headers, and its id is its idempotency key.
pub(super) fn write(message: &Engines, now: Utc) -> Message {
    let written = match message {
        Engines::Request(request) => {
            let written = Message::new(request.body.clone())
                .header(headers::TRANSACTION, request.id.as_str())
                .header(headers::KIND, request.kind.as_str());
            let with = |written: Message, name, label: &Option<Label>| match label {
                Some(label) => written.header(name, label.as_str()),
                None => written,
            };
            let written = with(written, headers::DEPENDENCY, &request.dependency);
            let mut written = with(written, headers::TRACEPARENT, &request.trace);
            for (name, number) in [
                (headers::ATTEMPT, request.attempt),
                (headers::SEQ, request.seq),
            ] {
                written.properties = with_number(written.properties, name, number.into());
            }
            let key = request.key();
            if key.len() <= LONGEST_ID {
                written.id(&key)
            } else {
                written
            }
        }
        other => Message::new(other.to_json()).content_type("application/json"),
    };
    let properties = with_number(written.properties, headers::PUBLISHED_AT, now.millis());
    Message {
        properties,
        ..written
    }
}

/// Reads what was written so, or says why it can't be read.
pub(super) fn read(
    name: QueueName,
    properties: &BasicProperties,
    body: &Bytes,
) -> Result<Engines, String> {
    if name != QueueName::Requests {
        return Engines::from_json(name, body).map_err(|error| error.to_string());
    }
    let text = |name| header(properties, name).ok_or_else(|| format!("it has no header {name}"));
    let small = |name| {
        let number = number(properties, name).and_then(|number| u32::try_from(number).ok());
        number.ok_or_else(|| format!("its header {name} is no number"))
    };
    let label = |name| header(properties, name).map(Label::from);
    let id = TransactionId::new(text(headers::TRANSACTION)?).map_err(|error| error.to_string())?;
    // As much of the terms as a request says.
    let mut terms = Terms::new(id, text(headers::KIND)?, &Policy::default(), Utc::MIN);
    terms.dependency = label(headers::DEPENDENCY);
    terms.trace = label(headers::TRACEPARENT);
    let (attempt, seq) = (small(headers::ATTEMPT)?, small(headers::SEQ)?);
    Ok(Engines::Request(Request::new(
        &terms,
        attempt,
        seq,
        body.clone(),
    )))
}

/// Which delivery of it this is, from 1: those that we count, and those that ended without our doing.
pub(super) fn delivery_number(properties: &BasicProperties) -> u32 {
    let lost = number(properties, DELIVERY_COUNT).unwrap_or(0).max(0);
    let lost = u32::try_from(lost).unwrap_or(u32::MAX);
    attempts_made(properties, u32::MAX)
        .saturating_add(lost)
        .saturating_add(1)
}

/// When it was published first, if anybody says.
pub(super) fn since(properties: &BasicProperties) -> Option<Utc> {
    let ours = number(properties, headers::PUBLISHED_AT);
    let millis = ours.or_else(|| {
        let seconds = properties.timestamp().as_ref()?;
        i64::try_from(seconds.saturating_mul(1_000)).ok()
    });
    Utc::from_millis(millis?).ok()
}

/// Before when it is not to be handled, if its wait is a long one.
pub(super) fn not_before(properties: &BasicProperties) -> Option<Utc> {
    Utc::from_millis(number(properties, headers::NOT_BEFORE)?).ok()
}

/// A dead letter's number says when it was buried: the milliseconds are in front of these bits. JSON's readers know 53.
const BELOW_MILLIS: u32 = 12;

/// The number of a letter that is buried now, after the one of that number.
pub(super) fn next_letter(last: u64, now: Utc) -> u64 {
    // Others bury in the same millisecond.
    let drawn = fastrand::u64(..1 << BELOW_MILLIS);
    ((now.millis().unsigned_abs() << BELOW_MILLIS) | drawn).max(last.saturating_add(1))
}

/// The number of a letter. Of one that the broker buried itself, it is made of what does not change: when, and what it says.
pub(super) fn letter_number(properties: &BasicProperties, body: &Bytes) -> u64 {
    if let Some(number) = number(properties, headers::DEAD_NUMBER) {
        return number.unsigned_abs();
    }
    let second = 1_000 << BELOW_MILLIS;
    let id = properties
        .message_id()
        .as_ref()
        .map_or("", |id| id.as_str());
    let said = id.bytes().chain(body.iter().copied());
    // FNV-1a.
    let hash = said.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    died_at(properties) * second + hash % second
}

/// When a letter of that number was buried.
pub(super) fn buried_at(number: u64) -> Utc {
    let millis = i64::try_from(number >> BELOW_MILLIS).unwrap_or(0);
    Utc::from_millis(millis).unwrap_or(Utc::MAX)
}

/// When the broker buried it, in seconds since 1970.
fn died_at(properties: &BasicProperties) -> u64 {
    let headers = properties.headers().as_ref();
    let deaths = headers.and_then(|headers| headers.inner().get("x-death"));
    let Some(AMQPValue::FieldArray(deaths)) = deaths else {
        return 0;
    };
    let newest = deaths.as_slice().first();
    let Some(AMQPValue::FieldTable(newest)) = newest else {
        return 0;
    };
    match newest.inner().get("time") {
        Some(AMQPValue::Timestamp(seconds)) => (*seconds).min(LAST_SECOND),
        _ => 0,
    }
}

/// The last that a number has room for; it is in the year 10889.
const LAST_SECOND: u64 = (1 << 48) / 1_000;
