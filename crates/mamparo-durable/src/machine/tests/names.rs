use std::cell::RefCell;
use std::collections::HashMap;

use proptest::prelude::*;

use super::super::{
    Cause, End, Label, Outcome, State, TransactionId, Utc, idempotency_key, schedule_name,
};
use super::support::id;
use crate::limits::MAX_ID_BYTES;

/// Ids whose names could be taken for one another: digits and dashes at the end, hashes, odd characters, long ones.
fn ids() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-b1-2-]{1,6}",
        "h\\.[0-9a-f]{32}",
        "[a-c ñ/.#]{1,4}",
        "[x-]{50,70}",
        "[0-9a-f]{8}-[0-9]{12}"
    ]
}

#[test]
fn different_schedules_have_different_names_and_keys_that_every_scheduler_takes() {
    let names = RefCell::new(HashMap::new());
    let keys = RefCell::new(HashMap::new());
    proptest!(ProptestConfig::with_cases(20_000), |(text in ids(), attempt in 1..30_u32, seq in 0..30_u32)| {
        let id = id(&text);
        let name = schedule_name(&id, attempt, seq);
        prop_assert!(name.len() <= 64);
        prop_assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)));
        let this = (text.clone(), attempt, seq);
        prop_assert_eq!(names.borrow_mut().entry(name).or_insert_with(|| this.clone()).clone(), this);
        let this = (text, attempt);
        prop_assert_eq!(keys.borrow_mut().entry(idempotency_key(&id, attempt)).or_insert_with(|| this.clone()).clone(), this);
    });
}

#[test]
fn an_id_that_ends_like_an_attempt_is_not_taken_for_another_ids_retry() {
    assert_ne!(
        schedule_name(&id("order-1"), 2, 0),
        schedule_name(&id("order"), 1, 2)
    );
    assert_eq!(schedule_name(&id("order_1"), 2, 0), "retry-order_1-2");
    let longest = schedule_name(&id(&"x".repeat(MAX_ID_BYTES)), u32::MAX, u32::MAX);
    assert_eq!(longest.len(), 62, "{longest}");
}

#[test]
fn an_id_is_refused_when_it_is_empty_too_long_or_has_control_characters() {
    for bad in ["", "a\nb", "\0", &"x".repeat(MAX_ID_BYTES + 1)] {
        let error = TransactionId::new(bad).unwrap_err();
        assert_eq!(error.setting(), "transaction_id");
    }
    assert!(TransactionId::new("ñ".repeat(MAX_ID_BYTES / 2)).is_ok());
    assert_eq!(Label::from("a\0b\nc").as_str(), "a b\nc");
    assert_eq!(Label::from("ñ".repeat(400)).as_str().chars().count(), 256);
}

#[test]
fn stored_names_are_read_back_and_no_others() {
    assert!(
        State::ALL
            .iter()
            .all(|it| State::parse(it.as_str()) == Some(*it))
    );
    assert!(
        End::ALL
            .iter()
            .all(|it| End::parse(it.as_str()) == Some(*it))
    );
    assert!(
        Cause::ALL
            .iter()
            .all(|it| Cause::parse(it.as_str()) == Some(*it))
    );
    assert!(
        Outcome::ALL
            .iter()
            .all(|it| Outcome::parse(it.as_str()) == Some(*it))
    );
    assert_eq!(
        (State::parse("in_flight"), End::parse(""), Cause::parse("x")),
        (None, None, None)
    );
}

#[test]
fn an_instant_stays_between_1970_and_the_end_of_9999() {
    assert!(Utc::from_millis(-1).is_err() && Utc::from_millis(Utc::MAX.millis() + 1).is_err());
    assert_eq!(Utc::MAX.to_string(), "9999-12-31T23:59:59.999Z");
    assert_eq!(Utc::MAX.plus(std::time::Duration::MAX), Utc::MAX);
    assert_eq!(
        Utc::MIN.since(Utc::MAX),
        std::time::Duration::ZERO,
        "a clock that stepped back"
    );
    assert_eq!("9999-12-31T23:59:59.999Z".parse(), Ok(Utc::MAX));
    for bad in [
        "",
        "tomorrow",
        "1969-12-31T23:59:59Z",
        "10000-01-01T00:00:00Z",
        "2030-01-01T00:00:00+01:00",
    ] {
        assert!(bad.parse::<Utc>().is_err(), "{bad}");
    }
}
