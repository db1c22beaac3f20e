use proptest::prelude::*;

use super::{Message, NewTransaction, QueueName};
use crate::limits::MAX_REQUEST_BYTES;
use crate::machine::{Answer, Outcome, Record, Terms, TransactionId, Utc};
use crate::policy::Policy;

fn id(text: &str) -> TransactionId {
    TransactionId::new(text).unwrap()
}

proptest! {
    #[test]
    fn an_answer_or_a_fire_is_read_back_as_it_was_written(
        name in "[^\\p{Cc}]{1,60}", attempt in 1..=u32::MAX, seq: u32, outcome in 0..4_usize,
        reason in prop::option::of(".{0,100}"), not_before in prop::option::of(0..=Utc::MAX.millis()),
    ) {
        let mut answer = Answer::new(attempt, seq, Outcome::ALL[outcome]);
        answer.reason = reason.map(Into::into);
        answer.not_before = not_before.map(|millis| Utc::from_millis(millis).unwrap());
        let answer = Message::Answer { id: id(&name), answer };
        let fire = Message::Fire { id: id(&name), attempt, seq };
        for message in [answer, fire] {
            prop_assert_eq!(Message::from_json(message.queue(), message.to_json().as_bytes()), Ok(message));
        }
    }

    #[test]
    fn no_bytes_make_reading_a_message_panic(bytes: Vec<u8>) {
        for queue in QueueName::ALL {
            let read = Message::from_json(queue, &bytes);
            prop_assert!(read.is_err() || !bytes.is_empty());
        }
    }
}

#[test]
fn a_message_that_makes_no_sense_is_refused_in_one_line() {
    let read = |json: &str| {
        Message::from_json(QueueName::Answers, json.as_bytes())
            .unwrap_err()
            .to_string()
    };
    let answer = |attempt: &str, outcome: &str| {
        read(&format!(
            r#"{{"transaction_id":"t","attempt":{attempt},"seq":0,"outcome":"{outcome}"}}"#
        ))
    };
    assert_eq!(
        answer("0", "success"),
        "attempt = 0 is refused: must be at least 1: attempt 1 is the original"
    );
    assert!(answer("4294967296", "success").contains("invalid value: integer `4294967296`"));
    assert!(answer("-1", "success").contains("invalid value"));
    assert_eq!(
        answer("1", "maybe"),
        "outcome = maybe is refused: must be success, refused, declined or technical"
    );
    assert!(read("{}").contains("missing field `transaction_id`"));
    assert!(
        read(r#"{"transaction_id":"","attempt":1,"seq":0,"outcome":"success"}"#)
            .starts_with("transaction_id")
    );
    assert!(read(&" ".repeat(20_000)).contains("at most 16384 bytes"));
    assert!(!read("nonsense\n\n").contains('\n'));
    let request = Message::from_json(
        QueueName::Requests,
        br#"{"transaction_id":"t","attempt":1,"seq":0}"#,
    );
    assert!(request.is_err());
}

#[test]
fn a_request_over_the_bound_is_refused() {
    let now = Utc::from_millis(0).unwrap();
    let record = Record::in_flight(Terms::new(id("t"), "payment", &Policy::default(), now));
    assert!(NewTransaction::new(record.clone(), vec![0; MAX_REQUEST_BYTES]).is_ok());
    let error = NewTransaction::new(record, vec![0; MAX_REQUEST_BYTES + 1]).unwrap_err();
    assert_eq!(
        (error.setting(), error.value()),
        ("request", "262145 bytes")
    );
}
