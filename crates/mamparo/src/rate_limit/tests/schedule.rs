//! The decision, over any schedule; no clock, no service.

use std::time::Duration;

use proptest::prelude::*;

use super::super::meter::{Meter, Taken};
use super::super::state::{Decision, Gcra};

/// What a test does next: lets time pass, then takes, or gives one of the takings back.
#[derive(Clone, Copy, Debug)]
struct Turn {
    gap: u64,
    cost: u32,
    gives_back: Option<prop::sample::Index>,
}

fn turns(longest_gap: u64) -> impl Strategy<Value = Vec<Turn>> {
    let gives_back = prop::option::weighted(0.4, any::<prop::sample::Index>());
    let turn = (0..longest_gap, 0_u32..5, gives_back);
    let turn = turn.prop_map(|(gap, cost, gives_back)| Turn {
        gap,
        cost,
        gives_back,
    });
    prop::collection::vec(turn, 1..80)
}

struct Passed {
    at: u64,
    cost: u32,
    taken: Taken,
}

/// Plays a schedule, and returns what passed and was not given back.
fn play(gcra: Gcra, turns: &[Turn]) -> Vec<Passed> {
    let meter = Meter::default();
    let (mut now, mut passed) = (0, Vec::<Passed>::new());
    for turn in turns {
        now += turn.gap;
        if let Some(which) = turn.gives_back {
            if !passed.is_empty() {
                let which = passed.remove(which.index(passed.len()));
                meter.undo(gcra, now, which.taken);
            }
        } else if let Ok(taken) = meter.take(gcra, now, turn.cost) {
            passed.push(Passed {
                at: now,
                cost: turn.cost,
                taken,
            });
        }
    }
    passed
}

proptest! {
    /// Rows F2 and F4, in every stretch of time: what passes is at most the rate's share of it plus a burst.
    #[test]
    fn in_no_stretch_of_time_passes_more_than_the_rate_and_a_burst(
        count in 1_u32..50,
        period in 1_u64..3_000,
        burst in 1_u32..8,
        turns in turns(400),
    ) {
        prop_assume!(u64::from(count) <= period);
        let gcra = Gcra::new(count, Duration::from_nanos(period), burst);
        let passed = play(gcra, &turns);
        for (first, from) in passed.iter().enumerate() {
            let mut sum = 0;
            for to in &passed[first..] {
                sum += u128::from(to.cost);
                let time = u128::from(to.at - from.at);
                let most = u128::from(burst) * u128::from(period) + time * u128::from(count);
                prop_assert!(sum * u128::from(period) <= most, "{sum} in {time} ns");
            }
        }
    }

    /// A token bucket, counted in nanoseconds of rate: the same decisions, where an interval is a whole number of them.
    #[test]
    fn it_lets_pass_exactly_what_a_token_bucket_would(
        interval in 1_u64..200,
        burst in 1_u32..8,
        turns in turns(400),
    ) {
        let gcra = Gcra::new(1, Duration::from_nanos(interval), burst);
        let meter = Meter::default();
        let full = interval * u64::from(burst);
        let (mut now, mut tokens) = (0, full);
        for turn in turns {
            now += turn.gap;
            tokens = full.min(tokens + turn.gap);
            let price = interval * u64::from(turn.cost);
            let passes = turn.cost <= burst && price <= tokens;
            prop_assert_eq!(meter.take(gcra, now, turn.cost).is_ok(), passes);
            tokens -= if passes { price } else { 0 };
        }
    }

    #[test]
    fn the_wait_it_tells_is_exact(
        interval in 1_u64..1_000,
        burst in 1_u32..8,
        full_at in 0_u64..20_000,
        now in 0_u64..10_000,
        cost in 1_u32..12,
    ) {
        let gcra = Gcra::new(1, Duration::from_nanos(interval), burst);
        match gcra.decide(full_at, now, cost) {
            Decision::Pass { full_at: after } => {
                prop_assert_eq!(after, full_at.max(now) + interval * u64::from(cost));
            }
            Decision::NotYet { wait } => {
                let passes = |at| matches!(gcra.decide(full_at, at, cost), Decision::Pass { .. });
                prop_assert!(passes(now + wait) && !passes(now + wait - 1));
                prop_assert_eq!(gcra.wait(full_at, now, u64::from(cost)), wait);
            }
            Decision::Never => prop_assert!(cost > burst),
        }
    }

    /// The largest settings and instants saturate.
    #[test]
    fn nothing_overflows(full_at: u64, now: u64, cost: u32, count in 1_u32.., seconds in 1_u64..31_000_000) {
        let gcra = Gcra::new(count, Duration::from_secs(seconds), u32::MAX);
        let _: Decision = gcra.decide(full_at, now, cost);
        prop_assert!(gcra.closed(now, full_at) >= now.min(full_at));
    }
}

#[test]
fn after_it_was_closed_one_passes_and_not_a_burst() {
    let gcra = Gcra::new(1, Duration::from_nanos(10), 5);
    let meter = Meter::default();
    meter.close(gcra, 100, 50);
    assert_eq!(meter.take(gcra, 100, 1), Err(Decision::NotYet { wait: 50 }));
    assert!(meter.take(gcra, 150, 1).is_ok());
    assert!(meter.take(gcra, 150, 1).is_err());
    assert!(meter.take(gcra, 160, 1).is_ok());
}

/// What came later may have found the burst whole: taking an earlier one's cost off would let too much pass.
#[test]
fn a_taking_that_others_came_after_stays_taken() {
    let gcra = Gcra::new(1, Duration::from_nanos(10), 1);
    let meter = Meter::default();
    let first = meter.take(gcra, 0, 1).unwrap();
    assert!(meter.take(gcra, 50, 1).is_ok());
    meter.undo(gcra, 50, first);
    assert!(meter.take(gcra, 50, 1).is_err());
}

/// Row F1: those who go away in the order in which they came leave nothing taken.
#[test]
fn all_that_was_taken_comes_back_whoever_gives_it_back_first() {
    let gcra = Gcra::new(1, Duration::from_nanos(10), 10);
    for (now, backwards) in [
        (0, false),
        (0, true),
        (35, false),
        (35, true),
        (1_000, false),
    ] {
        let meter = Meter::default();
        let mut taken: Vec<_> = (0..10).map(|_| meter.take(gcra, 0, 1).unwrap()).collect();
        if backwards {
            taken.reverse();
        }
        for taken in taken {
            meter.undo(gcra, now, taken);
        }
        for _ in 0..10 {
            assert!(meter.take(gcra, now, 1).is_ok(), "at {now}, {backwards}");
        }
        assert!(meter.take(gcra, now, 1).is_err());
    }
}

/// What an earlier undoing made of the debt is not given back a second time.
#[test]
fn two_that_are_undone_give_back_no_more_than_they_kept_from_others() {
    let gcra = Gcra::new(1, Duration::from_nanos(10), 2);
    let meter = Meter::default();
    let first = meter.take(gcra, 0, 1).unwrap();
    let second = meter.take(gcra, 0, 1).unwrap();
    meter.undo(gcra, 0, first);
    assert!(meter.take(gcra, 11, 1).is_ok());
    meter.undo(gcra, 12, second);
    assert!(meter.take(gcra, 12, 1).is_ok());
    assert!(meter.take(gcra, 12, 1).is_err());
}

/// Law 4: what was taken before it was closed does not open it again.
#[test]
fn a_taking_that_is_undone_opens_no_limit_that_was_closed_since() {
    let gcra = Gcra::new(1, Duration::from_nanos(10), 5);
    let meter = Meter::default();
    let taken = meter.take(gcra, 0, 3).unwrap();
    meter.close(gcra, 0, 50);
    meter.undo(gcra, 0, taken);
    assert!(meter.take(gcra, 49, 1).is_err());
    assert!(meter.take(gcra, 50, 1).is_ok());
}

/// However large the burst, it ends: an instant that saturates would let everything pass.
#[test]
fn the_largest_burst_is_bounded() {
    let gcra = Gcra::new(1, Duration::from_secs(366 * 86_400), u32::MAX);
    let meter = Meter::default();
    let passed = (0..1_000)
        .filter(|now| meter.take(gcra, *now, 1).is_ok())
        .count();
    assert_eq!(passed, 291);
    assert_eq!(gcra.decide(0, 0, 292), Decision::Never);
}
