use std::time::Duration;

use proptest::prelude::*;

use super::{Adaptive, MAX_KINDS, MAX_RULES, Policies, Policy, Rule, Wait};
use crate::limits::LONGEST_WAIT;

const HOUR: Duration = Duration::from_secs(3600);
const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn the_typical_waits_are_two_four_and_eight_hours_give_or_take_a_tenth() {
    let wait = *Policy::default().business();
    for (k, least, middle, most) in [(1, 108, 120, 132), (2, 216, 240, 264), (3, 432, 480, 528)] {
        assert_eq!(
            [-1.0, 0.0, 1.0].map(|draw| wait.after(k, draw, 1.0)),
            [least, middle, most].map(|m| m * MINUTE)
        );
    }
}

#[test]
fn the_jitter_goes_beyond_the_cap_unless_the_cap_is_hard() {
    let wait = |hard| Wait::builder().hard_cap(hard).build().unwrap();
    assert_eq!(
        wait(false).after(9, 1.0, 1.0),
        Duration::from_secs_f64(26.4 * 3600.0)
    );
    assert_eq!(wait(true).after(9, 1.0, 1.0), 24 * HOUR);
    assert_eq!(
        wait(true).after(9, -1.0, 1.0),
        Duration::from_secs_f64(21.6 * 3600.0)
    );
}

#[test]
fn a_stretch_moves_the_base_within_its_bounds_and_stays_below_the_cap() {
    let wait = Wait::builder().jitter(0.0).build().unwrap();
    assert_eq!(
        [0.0, 0.5, 4.0, 100.0].map(|stretch| wait.after(1, 0.0, stretch)),
        [1, 1, 8, 8].map(|h| h * HOUR)
    );
    assert_eq!(wait.after(4, 0.0, 4.0), 24 * HOUR);
    assert_eq!(wait.after(1, f64::NAN, f64::NAN), 2 * HOUR);
}

proptest! {
    #[test]
    fn no_wait_is_shorter_or_longer_than_its_jitter_and_its_bounds_allow(
        base in 1..100_000_u64, factor in 1.0..10.0_f64, over in 0..1_000_000_u64, jitter in 0.0..=1.0_f64, hard: bool,
        k: u32, draw: f64, stretch: f64,
    ) {
        let (base, cap) = (Duration::from_millis(base), Duration::from_millis(base + over));
        let wait = Wait::builder().base(base).factor(factor).cap(cap).jitter(jitter).hard_cap(hard).build().unwrap();
        let after = wait.after(k, draw, stretch);
        let most = if hard { cap } else { cap.mul_f64(1.0 + jitter) };
        let slack = Duration::from_micros(1);
        prop_assert!(after <= most + slack && after <= LONGEST_WAIT);
        prop_assert!(after + slack >= base.mul_f64(0.5 * (1.0 - jitter)));
    }

    #[test]
    fn waits_grow_with_their_number(k in 1..1_000_u32, draw in -1.0..1.0_f64) {
        let wait = Wait::builder().build().unwrap();
        prop_assert!(wait.after(k, draw, 1.0) <= wait.after(k + 1, draw, 1.0));
    }

    /// After a change of how often retries succeed, the factor is near where it belongs after 60 outcomes, whatever it was.
    #[test]
    fn the_adaptive_factor_converges(share in 0.0..=1.0_f64, before: Vec<bool>, seed: u64) {
        let mut adaptive = Adaptive::new(0.05).unwrap();
        for success in before {
            adaptive.observe("payout", success);
        }
        let mut rng = fastrand::Rng::with_seed(seed);
        let (mut sum, rounds) = (0.0, 2_000);
        for round in 0..60 + rounds {
            adaptive.observe("payout", rng.f64() < share);
            let factor = adaptive.factor("payout");
            prop_assert!((0.5..=4.0).contains(&factor));
            if round >= 60 {
                sum += factor.ln();
            }
        }
        let (mean, target) = ((sum / f64::from(rounds)).exp(), 0.5 * 8.0_f64.powf(1.0 - share));
        prop_assert!((mean / target).ln().abs() < 0.2, "{mean} for {target}");
    }
}

#[test]
fn a_run_of_one_outcome_takes_the_factor_to_its_end_in_sixty() {
    for (success, end) in [(true, 0.5), (false, 4.0)] {
        let mut adaptive = Adaptive::new(0.05).unwrap();
        (0..60).for_each(|_| adaptive.observe("payout", success));
        assert!(
            (adaptive.factor("payout") / end).ln().abs() < 0.1,
            "{}",
            adaptive.factor("payout")
        );
    }
}

#[test]
fn kinds_past_the_bound_share_one_factor() {
    let mut adaptive = Adaptive::new(1.0).unwrap();
    (0..MAX_KINDS).for_each(|kind| adaptive.observe(&kind.to_string(), true));
    adaptive.observe("one more", false);
    assert_eq!(
        [
            adaptive.factor("0"),
            adaptive.factor("one more"),
            adaptive.factor("another")
        ],
        [0.5, 4.0, 4.0]
    );
}

#[test]
fn the_first_rule_that_fits_holds_and_the_default_else() {
    let policy = |attempts| Policy::builder().max_attempts(attempts).build().unwrap();
    let policies = Policies::new(policy(1))
        .rule(Rule::new(policy(2)).kind("payout").customer("acme"))
        .and_then(|it| it.rule(Rule::new(policy(3)).reason("NOT_AVAILABLE")))
        .and_then(|it| it.rule(Rule::new(policy(4)).kind("payout")))
        .unwrap();
    let pick = |kind, customer, reason| policies.pick(kind, customer, reason).max_attempts();
    assert_eq!(pick("payout", Some("acme"), Some("NOT_AVAILABLE")), 2);
    assert_eq!(pick("payout", None, Some("NOT_AVAILABLE")), 3);
    assert_eq!(pick("payout", Some("other"), None), 4);
    assert_eq!(pick("refund", Some("acme"), None), 1);
    let full = (0..MAX_RULES)
        .try_fold(Policies::default(), |it, _| it.rule(Rule::new(policy(2))))
        .unwrap();
    assert_eq!(
        full.rule(Rule::new(policy(2))).unwrap_err().setting(),
        "rules"
    );
}

#[test]
fn nonsense_is_refused_and_named() {
    let second = Duration::from_secs(1);
    let wait = |wait: super::WaitBuilder| wait.build().map_err(|error| error.setting());
    assert_eq!(wait(Wait::builder().base(Duration::ZERO)), Err("wait.base"));
    assert_eq!(wait(Wait::builder().cap(second)), Err("wait.cap"));
    assert_eq!(
        wait(Wait::builder().cap(LONGEST_WAIT + second)),
        Err("wait.cap")
    );
    for factor in [0.99, f64::NAN, f64::INFINITY] {
        assert_eq!(wait(Wait::builder().factor(factor)), Err("wait.factor"));
    }
    for jitter in [-0.1, 1.1, f64::NAN] {
        assert_eq!(wait(Wait::builder().jitter(jitter)), Err("wait.jitter"));
    }
    let policy = |policy: super::PolicyBuilder| policy.build().map_err(|error| error.setting());
    assert_eq!(
        policy(Policy::builder().max_attempts(0)),
        Err("max_attempts")
    );
    assert_eq!(
        policy(Policy::builder().max_attempts(1_001)),
        Err("max_attempts")
    );
    assert_eq!(
        policy(Policy::builder().max_postponements(1_000_001)),
        Err("max_postponements")
    );
    assert_eq!(
        policy(Policy::builder().give_up_after(Duration::ZERO)),
        Err("give_up_after")
    );
    assert_eq!(
        policy(Policy::builder().longest_hint(LONGEST_WAIT + second)),
        Err("longest_hint")
    );
    for weight in [0.0, 1.1, f64::NAN] {
        assert!(Adaptive::new(weight).is_err());
    }
}
