//! The pure parts, over all their inputs.

use std::time::Duration;

use mamparo_core::breaker::{BreakerState, Rates};
use proptest::prelude::*;

use super::super::config::BreakerPolicy;
use super::super::state::{Control, Probing, nanos, trips, wait};
use super::super::window::{Bad, Kept};
use crate::breaker::{Ramp, Window};

/// What may happen to a breaker that is not simply closed.
#[derive(Clone, Copy, Debug)]
enum Step {
    Trip,
    Ask(u64),
    Succeed(usize),
    Fail(usize),
    GiveBack(usize),
    Force(BreakerState),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let states = vec![
        BreakerState::Closed,
        BreakerState::ForcedOpen,
        BreakerState::Disabled,
    ];
    let step = prop_oneof![
        2 => Just(Step::Trip),
        6 => (0u64..20).prop_map(Step::Ask),
        4 => (0usize..4).prop_map(Step::Succeed),
        1 => (0usize..4).prop_map(Step::Fail),
        3 => (0usize..4).prop_map(Step::GiveBack),
        1 => prop::sample::select(states).prop_map(Step::Force),
    ];
    prop::collection::vec(step, 1..80)
}

proptest! {
    /// Rows A1, A8 and B13: never more probes than places, each given back once, whatever happens between.
    #[test]
    fn probes_never_outnumber_their_places_and_epochs_only_grow(
        steps in steps(),
        probes in 1u32..5,
        successes in 1u32..4,
    ) {
        let policy = BreakerPolicy::builder().probes(probes).successes_to_close(successes);
        let recovery = policy.build().unwrap().recovery;
        let mut control = Control::new();
        let (mut now, mut epoch, mut held) = (0, control.epoch(), Vec::new());
        for step in steps {
            let open = |control: &mut Control, cause| {
                control.open(now, cause, Rates::default(), |opening| wait(&recovery, opening, None, 0.5))
            };
            match step {
                Step::Trip if control.state() == BreakerState::Closed => {
                    let change = open(&mut control, crate::breaker::BreakerCause::FailureRate);
                    prop_assert!(change.wait.is_some());
                }
                Step::Trip => {}
                Step::Ask(seconds) => {
                    now += nanos(Duration::from_secs(seconds));
                    control.elapse(&recovery, now);
                    if control.state() == BreakerState::HalfOpen {
                        match control.probe(&recovery, now) {
                            Probing::Probe(lease) => held.push(lease),
                            Probing::Full => prop_assert!(control.refuses_until(&recovery) > now),
                        }
                    }
                }
                Step::Succeed(at) | Step::Fail(at) | Step::GiveBack(at) if at < held.len() => {
                    let lease = held[at];
                    let had = control.give_back(lease);
                    prop_assert!(!control.give_back(lease), "given back twice");
                    match step {
                        Step::Succeed(_) if had => { control.succeeded(&recovery, now, 1); }
                        Step::Fail(_) if had => { open(&mut control, crate::breaker::BreakerCause::ProbeFailed); }
                        _ => {}
                    }
                }
                Step::Succeed(_) | Step::Fail(_) | Step::GiveBack(_) => {}
                Step::Force(state) => { control.force(state); }
            }
            prop_assert!(control.probes() <= probes as usize);
            prop_assert!(control.probes() == 0 || control.state() == BreakerState::HalfOpen);
            prop_assert!(control.epoch() >= epoch);
            epoch = control.epoch();
            let forced = control.refuses_until(&recovery) == u64::MAX;
            prop_assert_eq!(forced, control.state() == BreakerState::ForcedOpen);
        }
    }

    #[test]
    fn rates_are_from_nothing_to_all_and_only_known_from_the_minimum_on(
        calls in any::<u64>(), failures in any::<u64>(), slow in any::<u64>(), minimum in any::<u64>(),
    ) {
        let rates = Rates::new(calls, failures, slow, minimum);
        for rate in [rates.failure_rate(), rates.slow_rate()] {
            prop_assert_eq!(rate.is_none(), calls < minimum || calls == 0);
            prop_assert!(rate.is_none_or(|rate| (0.0..=1.0).contains(&rate)));
        }
    }

    /// Either window against the simplest that there could be: a list of all calls.
    #[test]
    fn a_window_counts_what_a_list_of_all_calls_says(
        calls in prop::collection::vec((0u64..30, any::<(bool, bool)>()), 1..300),
        size in 1u32..40,
        resets in prop::collection::vec(0usize..300, 0..3),
        spread in any::<bool>(),
    ) {
        let length = Duration::from_secs(10);
        let windows = [Window::calls(size), Window::time(length)].map(|window| Kept::new(Some(window), spread));
        let (mut epoch, mut now, mut list) = (1, 0, Vec::new());
        windows.iter().for_each(|window| window.begin(epoch));
        for (at, (pause, (failed, slow))) in calls.into_iter().enumerate() {
            now += nanos(Duration::from_millis(pause * 100));
            if resets.contains(&at) {
                epoch += 1;
                list.clear();
                windows.iter().for_each(|window| window.begin(epoch));
            }
            for window in &windows {
                match failed || slow {
                    true => window.bad(epoch, now, Bad { failed, slow }),
                    false => window.good(epoch, || now),
                }
            }
            list.push((now, failed, slow));
            let count = |held: &[(u64, bool, bool)]| {
                let failures = held.iter().filter(|call| call.1).count() as u64;
                let slow = held.iter().filter(|call| call.2).count() as u64;
                Rates::new(held.len() as u64, failures, slow, 1)
            };
            let last = &list[list.len().saturating_sub(size as usize)..];
            prop_assert_eq!(windows[0].rates(epoch, now, 1), count(last));
            // To a tenth of its length.
            let tenth = nanos(length) / 10;
            let since = |call: &&(u64, bool, bool)| call.0 / tenth + 10 > now / tenth;
            let recent: Vec<_> = list.iter().filter(since).copied().collect();
            prop_assert_eq!(windows[1].rates(epoch, now, 1), count(&recent));
        }
    }

    #[test]
    fn a_wait_lies_between_its_bounds_and_obeys_the_server(
        opening in 1u32..2_000, hint in prop::option::of(any::<u32>()), random in 0.0f64..1.0,
        first in 1u64..10_000, longer in 0u64..100_000, growth in 1.0f64..10.0, jitter in 0.0f64..0.9,
    ) {
        let (first, longest) = (Duration::from_millis(first), Duration::from_millis(first + longer));
        let policy = BreakerPolicy::builder().open_wait(first, longest);
        let policy = policy.open_wait_growth(growth).open_wait_jitter(jitter).build().unwrap();
        let hint = hint.map(|millis| Duration::from_millis(millis.into()));
        let wait = wait(&policy.recovery, opening, hint, random);
        let rounding = Duration::from_nanos(10);
        prop_assert!(wait + rounding >= first.mul_f64(1.0 - jitter));
        prop_assert!(wait <= longest.mul_f64(1.0 + jitter) + rounding);
        prop_assert!(wait + rounding >= hint.unwrap_or_default().min(longest));
    }

    #[test]
    fn no_rule_opens_it_without_a_failure_or_a_slow_call(calls in 0u64..1_000, minimum in 1u64..100) {
        let policy = BreakerPolicy::builder().failure_rate(0.01).slow_calls(Duration::from_secs(1), 0.01);
        let policy = policy.failures_in_window(1).minimum_calls(minimum).build().unwrap();
        prop_assert_eq!(trips(&policy.rules, 0, &Rates::new(calls, 0, 0, minimum)), None);
    }

    #[test]
    fn a_ramp_grows_from_its_start_to_all_and_admits_no_more_than_it_says(
        start in 0.01f64..1.0, exponent in 0.1f64..10.0, steps in prop::collection::vec(0u64..500, 1..200),
        floor in 0u32..20,
    ) {
        let length = Duration::from_secs(10);
        let ramp = Ramp::curve(start, length, exponent).unwrap().floor(floor);
        let (mut since, mut saved, mut allowed, mut passed, mut share) = (Duration::ZERO, 0, 0.0, 0.0, 0.0);
        for step in steps {
            since += Duration::from_millis(step);
            let next = ramp.share(since);
            prop_assert!(next >= share && next <= 1.0 && next >= start - 1e-9);
            share = next;
            allowed += share;
            let (left, passes) = ramp.offer(since, saved);
            saved = left;
            passed += f64::from(u8::from(passes));
            prop_assert!(passed <= allowed + f64::from(floor) * since.as_secs_f64() + 1e-3);
        }
    }
}
