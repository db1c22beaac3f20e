//! What holds whatever happens, in whatever order: random histories of one transaction.

use std::time::Duration;

use proptest::prelude::*;

use super::super::{
    Answer, Context, Effect, Fire, Gate, Input, Outcome, Patience, Progress, Record, State, Utc,
    decide,
};
use super::support::{at, terms};
use crate::policy::Policy;

/// As many histories as are tried; `MAMPARO_HISTORIES=1000000` tries a million.
const HISTORIES: u32 = 5_000;

/// As many inputs as one history has.
const LENGTH: usize = 60;

/// Mostly refusals, so that histories are long.
const OUTCOMES: [Outcome; 8] = [
    Outcome::Success,
    Outcome::Refused,
    Outcome::Refused,
    Outcome::Refused,
    Outcome::Refused,
    Outcome::Declined,
    Outcome::Technical,
    Outcome::Technical,
];

fn histories() -> ProptestConfig {
    let asked = std::env::var("MAMPARO_HISTORIES").ok();
    let cases = asked.map_or(HISTORIES, |number| {
        number.parse().expect("a number of histories")
    });
    ProptestConfig::with_cases(cases)
}

/// An input that fits where the transaction stands more often than chance would have it, and one that doesn't else.
fn input(progress: &Progress, dice: [u8; 4]) -> Input {
    let [what, off, seq_off, outcome] = dice;
    let near = |value: u32, off: u8| match off {
        0..200 => value,
        200..228 => value.saturating_sub(1),
        _ => value + 1,
    };
    let seq = near(progress.schedule_seq, seq_off);
    let attempt = near(progress.attempt_current, off);
    let next = near(
        progress.attempt_next.unwrap_or(progress.attempt_current),
        off,
    );
    let until = (outcome > 128).then(|| at(100));
    match what % 16 {
        0..=5 => Input::Answer(Answer::new(
            attempt,
            seq,
            OUTCOMES[usize::from(outcome % 8)],
        )),
        6..=8 => Input::Fire(Fire::new(next, seq)),
        9 => Input::Fire(Fire::new(next, seq).with_gate(Gate::Postpone { until })),
        10 => Input::Confirmed { attempt: next, seq },
        11 => Input::Published { attempt: next, seq },
        12 => Input::Reconcile(Patience {
            in_flight: Duration::ZERO,
            ..Patience::default()
        }),
        13 if outcome < 32 => Input::Resolve { reason: None },
        13 if outcome < 64 => Input::Cancel { reason: None },
        14 => Input::Postpone { until },
        _ => Input::Move {
            to: at(u32::from(outcome)),
            reason: None,
        },
    }
}

/// Everything that a history must keep: called with each write.
fn keeps(before: &Progress, to: &Progress, max: u32, now: Utc) -> Result<(), TestCaseError> {
    prop_assert!(to.is_sound(), "{to:?}");
    prop_assert!(!before.state.is_terminal(), "a terminal state changed");
    prop_assert!(
        to.attempt_current <= max && to.attempt_next.is_none_or(|next| next <= max),
        "{to:?}"
    );
    prop_assert!(
        to.attempt_current >= before.attempt_current && to.postponements >= before.postponements
    );
    prop_assert!(to.attempt_current <= before.attempt_current + 1);
    prop_assert_eq!(to.updated_at, now);
    let order = |at: &Progress| {
        (
            at.attempt_next.unwrap_or(at.attempt_current),
            at.schedule_seq,
        )
    };
    prop_assert!(
        to.state.is_terminal() || order(to) >= order(before),
        "a schedule's number was used twice"
    );
    let claims = to.attempt_current > before.attempt_current;
    prop_assert!(
        !claims || to.state == State::Sending,
        "the attempt moves when it is claimed, and only then"
    );
    Ok(())
}

#[test]
fn no_random_history_exceeds_max_attempts_or_changes_an_end() {
    let steps = prop::collection::vec((any::<[u8; 4]>(), 0..40_u32, -1.0..1.0_f64), 1..LENGTH);
    proptest!(histories(), |(max in 1..5_u32, steps in steps)| {
        let policy = Policy::builder().max_attempts(max).max_postponements(3).build().unwrap();
        let terms = super::super::Terms { max_attempts: max, max_postponements: 3, ..terms() };
        let mut progress = Record::in_flight(terms.clone()).progress;
        let mut now = at(0);
        for (dice, hours, draw) in steps {
            now = now.plus(Duration::from_secs(3600) * hours);
            let decision = decide(&terms, &progress, &input(&progress, dice), &Context::new(now, draw, &policy));
            let Some(write) = decision.write else { continue };
            prop_assert_eq!(write.expect, progress.expect());
            prop_assert_eq!((write.event.from, write.event.to), (Some(progress.state), write.to.state));
            keeps(&progress, &write.to, max, now)?;
            prop_assert!(write.to.postponements <= 3);
            let sends = decision.effects.iter().any(|effect| matches!(effect, Effect::Send { attempt, .. } if *attempt > max));
            prop_assert!(!sends);
            progress = write.to;
        }
    });
}

/// Forced redelivery: what has been applied, delivered again to what it left, writes nothing more.
#[test]
fn the_same_input_delivered_twice_is_as_if_once() {
    let steps = prop::collection::vec(any::<[u8; 4]>(), 1..LENGTH);
    proptest!(histories(), |(steps in steps)| {
        let policy = super::support::policy();
        let terms = terms();
        let context = Context::new(at(1), 0.3, &policy);
        let mut progress = Record::in_flight(terms.clone()).progress;
        for dice in steps {
            let input = input(&progress, dice);
            // Who moves or postpones again, means it again.
            let once = matches!(input, Input::Move { .. } | Input::Postpone { .. } | Input::Reconcile(_));
            let Some(write) = decide(&terms, &progress, &input, &context).write else { continue };
            progress = write.to;
            let again = decide(&terms, &progress, &input, &context);
            prop_assert!(once || again.write.is_none(), "{input:?} twice: {again:?}");
        }
    });
}

#[test]
fn what_nothing_interferes_with_ends_after_as_many_attempts_as_are_allowed() {
    for max in 1..6 {
        let policy = Policy::builder().max_attempts(max).build().unwrap();
        let terms = super::super::Terms {
            max_attempts: max,
            ..terms()
        };
        let mut progress = Record::in_flight(terms.clone()).progress;
        let mut sent = 1;
        while !progress.state.is_terminal() {
            let mut then = Some(Input::Answer(Answer::new(
                progress.attempt_current,
                0,
                Outcome::Refused,
            )));
            if let (State::Scheduled, Some(attempt)) = (progress.state, progress.attempt_next) {
                then = Some(Input::Fire(Fire::new(attempt, 0)));
            }
            while let Some(input) = then.take() {
                let decision = decide(
                    &terms,
                    &progress,
                    &input,
                    &Context::new(at(1), 0.0, &policy),
                );
                sent += decision
                    .effects
                    .iter()
                    .filter(|effect| matches!(effect, Effect::Send { .. }))
                    .count();
                progress = decision.write.expect("every step writes").to;
                then = decision.then;
            }
        }
        assert_eq!((progress.state, sent), (State::Failed, max as usize));
        assert_eq!(progress.attempt_current, max);
    }
}
