//! How an answer or a fire is written, for brokers and rows.

use mamparo_core::InvalidSetting;
use serde::{Deserialize, Serialize};

use super::Message;
use crate::machine::{Answer, Outcome, TransactionId, Utc};

/// As many bytes as are read of a message.
const MAX_BYTES: usize = 16 * 1024;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire<'a> {
    transaction_id: std::borrow::Cow<'a, str>,
    attempt: u32,
    seq: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outcome: Option<std::borrow::Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<std::borrow::Cow<'a, str>>,
    /// Milliseconds since 1970, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    not_before: Option<i64>,
}

impl Message {
    /// Writes an answer or a fire as JSON; a request only names its transaction and attempt, and its body travels beside it.
    ///
    /// ```
    /// use mamparo_durable::backend::{Message, QueueName};
    /// use mamparo_durable::machine::{Answer, Outcome, TransactionId};
    ///
    /// let answer = Answer::new(1, 0, Outcome::Refused).with_reason("CANCELLED");
    /// let message = Message::Answer { id: TransactionId::new("payment-1")?, answer };
    /// let json = r#"{"transaction_id":"payment-1","attempt":1,"seq":0,"outcome":"refused","reason":"CANCELLED"}"#;
    /// assert_eq!(message.to_json(), json);
    /// assert_eq!(Message::from_json(QueueName::Answers, json.as_bytes())?, message);
    /// # Ok::<(), mamparo_core::InvalidSetting>(())
    /// ```
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut wire = Wire {
            transaction_id: self.id().as_str().into(),
            attempt: 0,
            seq: 0,
            outcome: None,
            reason: None,
            not_before: None,
        };
        match self {
            Self::Answer { answer, .. } => {
                (wire.attempt, wire.seq) = (answer.attempt, answer.seq);
                wire.outcome = Some(answer.outcome.as_str().into());
                wire.reason = answer.reason.as_ref().map(|reason| reason.as_str().into());
                wire.not_before = answer.not_before.map(Utc::millis);
            }
            Self::Fire { attempt, seq, .. } => (wire.attempt, wire.seq) = (*attempt, *seq),
            Self::Request(request) => (wire.attempt, wire.seq) = (request.attempt, request.seq),
        }
        serde_json::to_string(&wire).unwrap_or_default()
    }

    /// Reads an answer or a fire.
    ///
    /// # Errors
    ///
    /// [`InvalidSetting`] when it is no such JSON, names an attempt 0 or past 2³² − 1, an unknown outcome, an instant out of
    /// range or an id that is refused, or is too long.
    pub fn from_json(queue: super::QueueName, json: &[u8]) -> Result<Self, InvalidSetting> {
        let refuse = |why: String, reason| InvalidSetting::new("message", why, reason);
        if json.len() > MAX_BYTES {
            return Err(refuse(
                format!("{} bytes", json.len()),
                "must have at most 16384 bytes",
            ));
        }
        let wire: Wire<'_> = serde_json::from_slice(json).map_err(|error| {
            refuse(
                error.to_string(),
                "must be JSON with transaction_id, attempt, seq and, in an answer, outcome",
            )
        })?;
        let id = TransactionId::new(&*wire.transaction_id)?;
        let (attempt, seq) = (wire.attempt, wire.seq);
        if attempt == 0 {
            return Err(InvalidSetting::new(
                "attempt",
                0,
                "must be at least 1: attempt 1 is the original",
            ));
        }
        match queue {
            super::QueueName::Answers => answer(id, &wire),
            super::QueueName::Fires => Ok(Self::Fire { id, attempt, seq }),
            super::QueueName::Requests => Err(refuse(
                "requests".to_owned(),
                "must be read with its transaction, which has the body",
            )),
        }
    }
}

fn answer(id: TransactionId, wire: &Wire<'_>) -> Result<Message, InvalidSetting> {
    let named = wire.outcome.as_deref().unwrap_or_default();
    let reason = "must be success, refused, declined or technical";
    let outcome =
        Outcome::parse(named).ok_or_else(|| InvalidSetting::new("outcome", named, reason))?;
    let mut answer = Answer::new(wire.attempt, wire.seq, outcome);
    answer.reason = wire.reason.as_deref().map(Into::into);
    answer.not_before = wire.not_before.map(Utc::from_millis).transpose()?;
    Ok(Message::Answer { id, answer })
}
