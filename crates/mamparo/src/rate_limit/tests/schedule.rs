//! The decision, over any schedule; no clock, no service.

use std::time::Duration;

use proptest::prelude::*;

use super::super::meter::{Meter, Taken};
use super::super::state::{Decision, Gcra};

/// What a test does next: lets time pass, then takes, or gives the last takings back.
#[derive(Clone, Copy, Debug)]
struct Turn {
    gap: u64,
    cost: u32,
    gives_back: bool,
}

fn turns(longest_gap: u64) -> impl Strategy<Value = Vec<Turn>> {
    let turn = (0..longest_gap, 0_u32..5, prop::bool::weighted(0.2));
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
        if turn.gives_back {
            if let Some(last) = passed.pop() {
                meter.undo(last.taken);
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
    meter.undo(first);
    assert!(meter.take(gcra, 50, 1).is_err());
}
