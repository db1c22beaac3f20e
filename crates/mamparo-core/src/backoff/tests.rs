use super::{Backoff, Jitter, MAX_CAP};
use fastrand::Rng;
use proptest::prelude::*;
use std::collections::HashSet;
use std::time::Duration;

const DRAWS: usize = 10_000;
const MS: Duration = Duration::from_millis(1);

fn backoff(jitter: Jitter) -> Backoff {
    Backoff::builder()
        .cap(Duration::from_secs(1))
        .jitter(jitter)
        .build()
        .unwrap()
}

/// Draws the wait of one resend many times; the previous wait is itself a draw, as in an operation.
fn draws(backoff: &Backoff, resend: u32) -> Vec<Duration> {
    let mut rng = Rng::with_seed(7);
    let mut previous = backoff.cap;
    (0..DRAWS)
        .map(|_| {
            previous = backoff.wait(resend, previous, &mut rng);
            previous
        })
        .collect()
}

fn mean_ms(waits: &[Duration]) -> f64 {
    waits.iter().map(Duration::as_secs_f64).sum::<f64>() * 1e3 / waits.len() as f64
}

/// Row C7.
#[test]
fn waits_differ_and_do_not_gather_on_the_cap_once_it_is_reached() {
    for jitter in [Jitter::Full, Jitter::Equal, Jitter::Decorrelated] {
        let backoff = backoff(jitter);
        let waits = draws(&backoff, 12);
        let on_cap = waits.iter().filter(|wait| **wait == backoff.cap).count();
        let distinct: HashSet<_> = waits.iter().collect();
        assert!(on_cap < DRAWS / 100, "{jitter:?}: {on_cap} on the cap");
        assert!(distinct.len() > DRAWS * 99 / 100, "{jitter:?}");
    }
}

#[test]
fn full_jitter_is_uniform_from_zero_to_the_capped_wait() {
    let waits = draws(&backoff(Jitter::Full), 3);
    let mut tenths = [0_usize; 10];
    for wait in &waits {
        tenths[(wait.as_millis() / 40).min(9) as usize] += 1;
    }
    assert!(
        tenths.iter().all(|n| n.abs_diff(DRAWS / 10) < DRAWS / 50),
        "{tenths:?}"
    );
    assert!((mean_ms(&waits) - 200.0).abs() < 4.0);
}

#[test]
fn equal_jitter_waits_at_least_half() {
    let waits = draws(&backoff(Jitter::Equal), 3);
    assert!(
        waits
            .iter()
            .all(|wait| (200 * MS..=400 * MS).contains(wait))
    );
    assert!((mean_ms(&waits) - 300.0).abs() < 3.0);
}

#[test]
fn decorrelated_jitter_waits_between_the_base_and_three_times_the_previous_wait() {
    let backoff = backoff(Jitter::Decorrelated);
    let mut rng = Rng::with_seed(7);
    let waits: Vec<_> = (0..DRAWS)
        .map(|_| backoff.wait(2, 150 * MS, &mut rng))
        .collect();
    assert!(
        waits
            .iter()
            .all(|wait| (100 * MS..=450 * MS).contains(wait))
    );
    assert!((mean_ms(&waits) - 275.0).abs() < 3.0);
    assert!(waits.iter().any(|wait| *wait > 440 * MS));
}

#[test]
fn the_first_decorrelated_wait_counts_the_base_as_the_previous_one() {
    let backoff = backoff(Jitter::Decorrelated);
    let mut rng = Rng::with_seed(7);
    let waits: Vec<_> = (0..DRAWS)
        .map(|_| backoff.wait(1, Duration::ZERO, &mut rng))
        .collect();
    assert!(
        waits
            .iter()
            .all(|wait| (100 * MS..=300 * MS).contains(wait))
    );
    assert!((mean_ms(&waits) - 200.0).abs() < 2.0);
}

#[test]
fn without_jitter_the_wait_doubles_up_to_the_cap() {
    let backoff = backoff(Jitter::None);
    let mut rng = Rng::with_seed(7);
    let waits = [1, 2, 3, 4, 5, u32::MAX].map(|n| backoff.wait(n, Duration::ZERO, &mut rng));
    assert_eq!(waits, [100, 200, 400, 800, 1_000, 1_000].map(|ms| ms * MS));
}

#[test]
fn the_ceiling_of_a_decorrelated_wait_grows_threefold() {
    let backoff = backoff(Jitter::Decorrelated);
    assert_eq!(
        [1, 2, 3].map(|n| backoff.ceiling(n)),
        [300, 900, 1_000].map(|ms| ms * MS)
    );
}

/// A6-04: centres 100, 200, 400, 800, 1000, 1000 ms, each ±20 %.
#[test]
fn grpc_waits_around_the_capped_wait() {
    let backoff = Backoff::grpc(100 * MS, 1_000 * MS, 2.0).unwrap();
    for (resend, centre) in (1..).zip([100, 200, 400, 800, 1_000, 1_000]) {
        let waits = draws(&backoff, resend);
        let (least, most) = (centre * 4 / 5 * MS, centre * 6 / 5 * MS);
        let (first, last) = (waits.iter().min().unwrap(), waits.iter().max().unwrap());
        assert!(least <= *first && *last <= most, "{first:?} to {last:?}");
        let reached = *first < least + most / 200 && *last > most - most / 200;
        assert!(reached, "not the whole range: {first:?} to {last:?}");
        assert!((mean_ms(&waits) / f64::from(centre) - 1.0).abs() < 0.01);
    }
}

/// A6-04: what gRPC allows and no other backoff does.
#[test]
fn grpc_waits_may_shrink_and_begin_above_the_cap() {
    let backoff = Backoff::grpc(100 * MS, 60 * MS, 0.5).unwrap();
    let ceilings = [1, 2, 3].map(|resend| backoff.ceiling(resend));
    assert_eq!(ceilings, [72 * MS, 60 * MS, 30 * MS]);
    assert!(Backoff::grpc(MS, Duration::MAX, f64::MAX).is_ok());
    for (initial, longest, multiplier, setting) in [
        (Duration::ZERO, MS, 2.0, "initialBackoff"),
        (MS, Duration::ZERO, 2.0, "maxBackoff"),
        (MS, MS, 0.0, "backoffMultiplier"),
        (MS, MS, f64::NAN, "backoffMultiplier"),
        (MS, MS, f64::INFINITY, "backoffMultiplier"),
    ] {
        let error = Backoff::grpc(initial, longest, multiplier).unwrap_err();
        assert_eq!(error.setting(), setting);
    }
}

#[test]
fn nonsense_is_refused_and_named() {
    let build = |base, cap, factor| {
        Backoff::builder()
            .base(base)
            .cap(cap)
            .factor(factor)
            .build()
            .map_err(|error| (error.setting(), error.value().to_owned()))
    };
    let refused = |setting, value: &str| Err((setting, value.to_owned()));
    assert_eq!(
        build(Duration::ZERO, MS, 2.0),
        refused("backoff.base", "0ns")
    );
    assert_eq!(build(2 * MS, MS, 2.0), refused("backoff.cap", "1ms"));
    assert_eq!(
        build(MS, MAX_CAP + MS, 2.0),
        refused("backoff.cap", "86400.001s")
    );
    assert_eq!(build(MS, MS, 0.99), refused("backoff.factor", "0.99"));
    assert_eq!(build(MS, MS, f64::NAN), refused("backoff.factor", "NaN"));
    assert_eq!(
        build(MS, MS, f64::INFINITY),
        refused("backoff.factor", "inf")
    );
    assert!(build(MS, MS, 1.0).is_ok());
    assert!(build(MS, MAX_CAP, f64::MAX).is_ok());
}

const JITTERS: [Jitter; 5] = [
    Jitter::Around,
    Jitter::Full,
    Jitter::Equal,
    Jitter::Decorrelated,
    Jitter::None,
];

fn any_backoff() -> impl Strategy<Value = Backoff> {
    let day = MAX_CAP.as_nanos() as u64;
    (
        1..=day,
        1..=day,
        1.0..1e300_f64,
        prop::sample::select(&JITTERS[..]),
    )
        .prop_map(|(a, b, factor, jitter)| {
            Backoff::builder()
                .base(Duration::from_nanos(a.min(b)))
                .cap(Duration::from_nanos(a.max(b)))
                .factor(factor)
                .jitter(jitter)
                .build()
                .unwrap()
        })
}

proptest! {
    /// Row C8.
    #[test]
    fn no_wait_is_longer_than_its_ceiling_nor_the_cap(
        backoff in any_backoff(),
        resend in any::<u32>(),
        previous in any::<u64>(),
        seed in any::<u64>(),
    ) {
        let mut rng = Rng::with_seed(seed);
        let wait = backoff.wait(resend, Duration::from_nanos(previous), &mut rng);
        prop_assert!(wait <= backoff.ceiling(resend));
        let cap = match backoff.jitter {
            Jitter::Around => backoff.cap + backoff.cap / 5,
            _ => backoff.cap,
        };
        prop_assert!(backoff.ceiling(resend) <= cap);
        prop_assert!(backoff.wait(resend, Duration::MAX, &mut rng) <= cap);
        prop_assert!(backoff.ceiling(resend) <= backoff.ceiling(resend.saturating_add(1)));
    }
}
