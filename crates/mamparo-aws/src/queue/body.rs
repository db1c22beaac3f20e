//! What stands in the body of a message.
//!
//! JSON in ASCII, since SQS refuses some characters: everything beyond is written as `\u` and four digits. An answer is what
//! [`Message::to_json`] writes, so that whoever hears the dependency's answers can put them into the queue in any language. A fire has
//! when it was due beside it, and a request all that its receiver needs, its body in base64.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use mamparo_core::InvalidSetting;
use mamparo_durable::backend::{Message, QueueName, Request};
use mamparo_durable::machine::{Label, Schedule, Terms, TransactionId, Utc};
use mamparo_durable::policy::Policy;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fire {
    transaction_id: String,
    attempt: u32,
    seq: u32,
    /// When its schedule was due, in milliseconds since 1970, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    due: Option<i64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sent {
    transaction_id: String,
    attempt: u32,
    seq: u32,
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dependency: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trace: Option<String>,
    /// In base64.
    body: String,
}

/// Writes a message.
pub(super) fn write(message: &Message) -> String {
    match message {
        Message::Answer { .. } => ascii(&message.to_json()),
        Message::Fire { id, attempt, seq } => json(&Fire {
            transaction_id: id.to_string(),
            attempt: *attempt,
            seq: *seq,
            due: None,
        }),
        Message::Request(request) => json(&Sent {
            transaction_id: request.id.to_string(),
            attempt: request.attempt,
            seq: request.seq,
            kind: request.kind.as_str().to_owned(),
            dependency: text(request.dependency.as_ref()),
            trace: text(request.trace.as_ref()),
            body: BASE64_STANDARD.encode(&request.body),
        }),
    }
}

/// Writes the fire of a schedule.
pub(crate) fn fire(id: &TransactionId, schedule: &Schedule) -> String {
    json(&Fire {
        transaction_id: id.to_string(),
        attempt: schedule.attempt,
        seq: schedule.seq,
        due: Some(schedule.fire_at.millis()),
    })
}

/// Reads a message, and of a fire when it was due.
///
/// # Errors
///
/// [`InvalidSetting`] that says in one line what is wrong.
pub(super) fn read(queue: QueueName, body: &str) -> Result<(Message, Option<Utc>), InvalidSetting> {
    match queue {
        QueueName::Answers => Ok((Message::from_json(queue, body.as_bytes())?, None)),
        QueueName::Fires => {
            let fire: Fire = parse(body)?;
            let message = Message::Fire {
                id: TransactionId::new(&fire.transaction_id)?,
                attempt: attempt(fire.attempt)?,
                seq: fire.seq,
            };
            Ok((message, fire.due.map(Utc::from_millis).transpose()?))
        }
        QueueName::Requests => Ok((Message::Request(request(&parse(body)?)?), None)),
    }
}

fn request(sent: &Sent) -> Result<Request, InvalidSetting> {
    let id = TransactionId::new(&sent.transaction_id)?;
    let body = BASE64_STANDARD
        .decode(&sent.body)
        .map_err(|error| refused(error.to_string(), "must have its body in base64"))?;
    // As much of the terms as a request says.
    let mut terms = Terms::new(id, sent.kind.as_str(), &Policy::default(), Utc::MIN);
    terms.dependency = sent.dependency.as_deref().map(Label::from);
    terms.trace = sent.trace.as_deref().map(Label::from);
    Ok(Request::new(
        &terms,
        attempt(sent.attempt)?,
        sent.seq,
        body.into(),
    ))
}

fn attempt(number: u32) -> Result<u32, InvalidSetting> {
    if number == 0 {
        let reason = "must be at least 1: attempt 1 is the original";
        return Err(InvalidSetting::new("attempt", number, reason));
    }
    Ok(number)
}

fn parse<'a, T: Deserialize<'a>>(body: &'a str) -> Result<T, InvalidSetting> {
    serde_json::from_str(body).map_err(|error| {
        let reason = "must be JSON with transaction_id, attempt, seq and what else its queue needs";
        refused(error.to_string(), reason)
    })
}

fn refused(why: String, reason: &'static str) -> InvalidSetting {
    InvalidSetting::new("message", why, reason)
}

fn text(label: Option<&Label>) -> Option<String> {
    label.map(|label| label.as_str().to_owned())
}

fn json(value: &impl Serialize) -> String {
    // Strings and numbers can always be written.
    ascii(&serde_json::to_string(value).unwrap_or_default())
}

/// Escapes what is not ASCII; only strings of JSON have such characters.
fn ascii(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for character in json.chars() {
        if character.is_ascii() {
            escaped.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            escaped.push_str(&format!("\\u{unit:04x}"));
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use mamparo_durable::machine::{Answer, Outcome};
    use proptest::prelude::*;

    use super::*;

    fn id(text: &str) -> TransactionId {
        TransactionId::new(text).unwrap()
    }

    proptest! {
        #[test]
        fn whatever_is_written_is_ascii_and_read_back_whole(
            name in "[^\\p{Cc}]{1,60}", attempt in 1..=u32::MAX, seq: u32, bytes: Vec<u8>,
            reason in prop::option::of(".{0,100}"), due in 0..=Utc::MAX.millis(),
        ) {
            let id = id(&name);
            let mut answer = Answer::new(attempt, seq, Outcome::Refused);
            answer.reason = reason.as_deref().map(Into::into);
            let mut terms = Terms::new(id.clone(), "päyment", &Policy::default(), Utc::MIN);
            terms.dependency = reason.as_deref().map(Into::into);
            let request = Message::Request(Request::new(&terms, attempt, seq, bytes.into()));
            for message in [Message::Answer { id: id.clone(), answer }, Message::Fire { id: id.clone(), attempt, seq }, request] {
                let body = write(&message);
                prop_assert!(body.is_ascii());
                prop_assert_eq!(read(message.queue(), &body), Ok((message, None)));
            }
            let schedule = Schedule { attempt, seq, fire_at: Utc::from_millis(due).unwrap() };
            let fired = read(QueueName::Fires, &fire(&id, &schedule));
            prop_assert_eq!(fired, Ok((Message::Fire { id, attempt, seq }, Some(schedule.fire_at))));
        }

        #[test]
        fn no_text_makes_reading_panic(text: String) {
            for queue in QueueName::ALL {
                prop_assert!(read(queue, &text).is_err());
            }
        }
    }

    #[test]
    fn the_largest_request_fits_into_a_message() {
        let id = id(&"ñ".repeat(128));
        let mut terms = Terms::new(id, "😀".repeat(128), &Policy::default(), Utc::MIN);
        terms.dependency = Some(terms.kind.clone());
        let body = vec![0; mamparo_durable::limits::MAX_REQUEST_BYTES];
        let request = Message::Request(Request::new(&terms, 1, 0, body.into()));
        // As one item of DynamoDB too, should it become a dead letter.
        assert!(write(&request).len() < 390 * 1024);
    }

    #[test]
    fn a_message_that_makes_no_sense_is_refused_in_one_line() {
        let refuse = |queue, body| read(queue, body).unwrap_err().to_string();
        assert!(
            refuse(
                QueueName::Fires,
                r#"{"transaction_id":"t","attempt":0,"seq":0}"#
            )
            .contains("attempt = 0")
        );
        assert!(
            refuse(
                QueueName::Fires,
                r#"{"transaction_id":"t","attempt":1,"seq":0,"due":-1}"#
            )
            .contains("instant")
        );
        let body = r#"{"transaction_id":"t","attempt":1,"seq":0,"kind":"k","body":"?"}"#;
        assert!(refuse(QueueName::Requests, body).contains("base64"));
        assert!(!refuse(QueueName::Requests, "{\n\n").contains('\n'));
    }
}
