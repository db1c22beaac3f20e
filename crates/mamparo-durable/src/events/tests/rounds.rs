use std::collections::HashMap;
use std::time::Duration;

use proptest::prelude::*;

use super::super::rounds::Rounds;
use super::super::{ClaimedEvent, Event, Published, Settlement};

fn claimed(number: i64, key: Option<&str>) -> ClaimedEvent {
    let event = Event::builder(number.to_string());
    let event = match key {
        Some(key) => event.key(key),
        None => event,
    };
    ClaimedEvent {
        number,
        key: key.map(str::to_owned),
        failures: 0,
        event: Ok(event.build().unwrap()),
    }
}

fn ids(events: &[Event]) -> Vec<&str> {
    events.iter().map(Event::id).collect()
}

fn not_now() -> Published {
    Published::NotNow("busy".to_owned())
}

#[test]
fn of_a_key_the_next_leaves_when_the_one_before_was_confirmed() {
    let all = [
        (1, Some("a")),
        (2, Some("a")),
        (3, None),
        (4, Some("b")),
        (5, None),
    ];
    let claimed = all.map(|(number, key)| claimed(number, key)).to_vec_of();
    let (mut rounds, _) = Rounds::new(claimed, 10);
    assert_eq!(ids(&rounds.next()), ["1", "3", "4", "5"]);
    let outcome = rounds.heard(vec![Published::Confirmed; 4]);
    assert_eq!(outcome.confirmed, 4);
    assert_eq!(ids(&rounds.next()), ["2"]);
    rounds.heard(vec![Published::Confirmed]);
    assert!(rounds.next().is_empty());
    assert_eq!(rounds.settled().len(), 5);
}

/// A list by value, so that rows need not be clonable.
trait ToVecOf<T> {
    fn to_vec_of(self) -> Vec<T>;
}

impl<T, const N: usize> ToVecOf<T> for [T; N] {
    fn to_vec_of(self) -> Vec<T> {
        self.into_iter().collect()
    }
}

#[test]
fn what_fails_while_others_are_confirmed_waits_and_blocks_its_key_only() {
    let claimed = [
        claimed(1, Some("a")),
        claimed(2, Some("a")),
        claimed(3, Some("b")),
        claimed(4, Some("b")),
    ];
    let (mut rounds, _) = Rounds::new(claimed.to_vec_of(), 10);
    rounds.next();
    let outcome = rounds.heard(vec![not_now(), Published::Confirmed]);
    assert_eq!(outcome.outage, None);
    assert_eq!((outcome.confirmed, outcome.unconfirmed), (1, 1));
    assert_eq!(outcome.again_in, Some(Duration::from_secs(1)));
    assert_eq!(ids(&rounds.next()), ["4"]);
    rounds.heard(vec![Published::Confirmed]);
    let settled: HashMap<i64, Settlement> = rounds.settled().into_iter().collect();
    let failed = Settlement::Later {
        wait: Duration::from_secs(1),
        failed: true,
    };
    let back = Settlement::Later {
        wait: Duration::ZERO,
        failed: false,
    };
    assert_eq!(settled[&1], failed);
    assert_eq!(settled[&2], back);
    assert_eq!(settled[&4], Settlement::Published);
}

#[test]
fn a_broker_that_takes_nothing_is_an_outage_and_no_events_failure() {
    let (mut rounds, _) = Rounds::new([claimed(1, Some("a")), claimed(2, None)].to_vec_of(), 1);
    rounds.next();
    let outcome = rounds.heard(vec![not_now(), not_now()]);
    assert_eq!(outcome.outage.as_deref(), Some("busy"));
    assert_eq!(outcome.unconfirmed, 2);
    assert!(outcome.parked.is_empty());
    let back = Settlement::Later {
        wait: Duration::ZERO,
        failed: false,
    };
    assert_eq!(rounds.settled(), [(1, back.clone()), (2, back)]);
}

#[test]
fn what_is_refused_or_fails_too_often_or_cannot_be_read_is_parked() {
    let mut often = claimed(2, None);
    often.failures = 4;
    let mut unreadable = claimed(4, Some("c"));
    unreadable.event = Err("torn".into());
    let all = [
        claimed(1, Some("a")),
        often,
        claimed(3, None),
        unreadable,
        claimed(5, Some("c")),
    ];
    let (mut rounds, outcome) = Rounds::new(all.to_vec_of(), 5);
    assert_eq!(outcome.parked, [(4, "torn".into())]);
    assert_eq!(
        ids(&rounds.next()),
        ["1", "2", "3"],
        "5 waits behind what can't be read"
    );
    let refused = Published::Refused("no queue takes it".to_owned());
    let outcome = rounds.heard(vec![refused, not_now(), Published::Confirmed]);
    assert_eq!(
        outcome.parked,
        [(1, "no queue takes it".into()), (2, "busy".into())]
    );
}

proptest! {
    /// Whatever the publisher says: each event is settled once, and none is confirmed of a key after one that was not.
    #[test]
    fn each_is_settled_once_and_order_holds(
        keys in prop::collection::vec(prop::option::of(0u8..4), 1..40),
        draws in prop::collection::vec(0u8..6, 80),
        stop in prop::option::of(1usize..6),
    ) {
        let names: Vec<Option<String>> = keys.iter().map(|key| key.map(|key| key.to_string())).collect();
        let rows = (1..).zip(&names).map(|(number, key)| claimed(number, key.as_deref())).collect();
        let (mut rounds, _) = Rounds::new(rows, 3);
        let mut draws = draws.into_iter().cycle();
        let mut confirmed: Vec<i64> = Vec::new();
        let mut settled = Vec::new();
        for turn in 0.. {
            let round = rounds.next();
            settled.extend(rounds.settled());
            if round.is_empty() {
                break;
            }
            let results: Vec<Published> = round.iter().map(|event| match draws.next() {
                Some(0) => Published::Refused("no".into()),
                Some(1) => not_now(),
                _ => {
                    confirmed.push(event.id().parse().unwrap());
                    Published::Confirmed
                }
            }).collect();
            rounds.heard(results);
            if stop == Some(turn) {
                rounds.give_back();
            }
        }
        let mut numbers: Vec<i64> = settled.iter().map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        let all: Vec<i64> = (1..).take(names.len()).collect();
        prop_assert_eq!(numbers, all);
        for (number, settlement) in &settled {
            prop_assert_eq!(*settlement == Settlement::Published, confirmed.contains(number));
        }
        for key in names.iter().flatten() {
            let of_key = (1..).zip(&names).filter(|(_, name)| name.as_ref() == Some(key));
            let done: Vec<bool> = of_key.map(|(number, _)| confirmed.contains(&number)).collect();
            prop_assert!(done.is_sorted_by(|earlier, later| earlier >= later), "a later one left before an earlier");
        }
    }
}
