//! The algorithms, over windows of made-up calls.

use std::time::Duration;

use mamparo_core::clock::{self, Instant};
use mamparo_core::{Kind, Resend, Verdict};
use proptest::prelude::*;

use super::baseline::Baseline;
use super::meter::{Meter, Sample};
use super::*;

const MINUTE: Duration = Duration::from_secs(60);

const fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// A dependency whose callers always want more than the limit allows.
struct Traffic {
    settings: AdaptiveLimit,
    meter: Meter,
    limit: usize,
    now: Instant,
    wanted: usize,
}

impl Traffic {
    fn new(algorithm: impl LimitAlgorithm, limit: usize) -> Self {
        let settings = AdaptiveLimit::builder(algorithm).build().unwrap();
        Self {
            meter: Meter::new(&settings, limit),
            settings,
            limit,
            now: clock::now(),
            wanted: usize::MAX,
        }
    }

    /// A call every 5 ms ends with such a sample, for so long; returns every limit that was in force.
    fn run(&mut self, time: Duration, sample: impl Fn(usize) -> Sample) -> Vec<usize> {
        let end = self.now + time;
        let mut limits = Vec::new();
        while self.now < end {
            self.now += millis(5);
            let in_flight = self.limit.min(self.wanted);
            let sample = sample(in_flight);
            if let Some(limit) = self
                .meter
                .learn(&self.settings, self.now, sample, in_flight)
            {
                self.limit = limit;
                limits.push(limit);
            }
        }
        limits
    }
}

fn took(latency: Duration) -> impl Fn(usize) -> Sample {
    move |_| Sample::Succeeded(latency)
}

/// Rows K2 and K3: a tenfold latency that stays does not become normal for ten minutes.
#[test]
fn a_lasting_tenfold_latency_holds_the_limit_down_for_ten_minutes() {
    let low = 10;
    let mut all = [
        Traffic::new(Gradient2::default(), 200),
        Traffic::new(Vegas, 1_000),
        Traffic::new(Aimd::default().slower_than(millis(50)), 200),
    ];
    for traffic in &mut all {
        let algorithm = format!("{:?}", traffic.settings.algorithm());
        let before = traffic.run(MINUTE, took(millis(10)));
        assert!(
            before.last().is_some_and(|limit| *limit >= 200),
            "{algorithm}: {before:?}"
        );
        let falling = traffic.run(2 * MINUTE, took(millis(100)));
        assert!(
            falling.last().is_some_and(|limit| *limit <= low),
            "{algorithm}: {falling:?}"
        );
        let low_for_long = traffic.run(8 * MINUTE - millis(200), took(millis(100)));
        let highest = low_for_long.iter().max().copied();
        assert!(
            highest.is_some_and(|limit| limit <= low),
            "{algorithm}: {highest:?}"
        );
    }
}

/// The horizon is where it is said to be: by a tenth later at most.
#[test]
fn what_lasts_longer_than_the_memory_is_what_there_is_to_compare_with() {
    let mut traffic = Traffic::new(Gradient2::default(), 200);
    traffic.run(MINUTE, took(millis(10)));
    traffic.run(12 * MINUTE, took(millis(100)));
    assert!(traffic.limit > 500, "{}", traffic.limit);
}

#[test]
fn a_dependency_that_recovers_gets_its_limit_back() {
    for mut traffic in [
        Traffic::new(Gradient2::default(), 200),
        Traffic::new(Vegas, 200),
    ] {
        traffic.run(MINUTE, took(millis(10)));
        traffic.run(MINUTE, took(millis(100)));
        assert!(traffic.limit <= 10);
        traffic.run(MINUTE, took(millis(10)));
        assert!(
            traffic.limit >= 200,
            "{:?}: {}",
            traffic.settings,
            traffic.limit
        );
    }
}

/// With fifty at once it answers in 20 ms; beyond that calls queue there.
#[test]
fn the_limit_finds_what_the_dependency_can_do() {
    let fifty = |in_flight: usize| {
        Sample::Succeeded(millis(20).mul_f64((in_flight as f64 / 50.0).max(1.0)))
    };
    for mut traffic in [
        Traffic::new(Gradient2::default(), 10),
        Traffic::new(Vegas, 10),
    ] {
        let limits = traffic.run(5 * MINUTE, fifty);
        let settled = &limits[limits.len() / 2..];
        let name = format!("{:?}", traffic.settings.algorithm());
        assert!(
            settled.iter().all(|limit| (45..=150).contains(limit)),
            "{name}: {settled:?}"
        );
    }
}

/// Row K4: nobody earns a limit that was never tried.
#[test]
fn a_trickle_for_ten_minutes_does_not_raise_the_limit() {
    for mut traffic in [
        Traffic::new(Gradient2::default(), 20),
        Traffic::new(Vegas, 20),
        Traffic::new(Aimd::default(), 20),
    ] {
        traffic.wanted = 3;
        let limits = traffic.run(10 * MINUTE, took(millis(10)));
        assert!(limits.iter().all(|limit| *limit <= 6), "{limits:?}");
        traffic.wanted = 1;
        traffic.run(MINUTE, took(millis(10)));
        assert_eq!(traffic.limit, 4, "the floor");
        traffic.wanted = usize::MAX;
        traffic.run(MINUTE, took(millis(10)));
        assert!(traffic.limit > 200, "and it grows when it is needed");
    }
}

#[test]
fn failures_for_overload_lower_every_limit_and_fast_ones_are_no_baseline() {
    for mut traffic in [
        Traffic::new(Gradient2::default(), 100),
        Traffic::new(Vegas, 100),
        Traffic::new(Aimd::default(), 100),
    ] {
        traffic.run(MINUTE, took(millis(10)));
        let before = traffic.limit;
        traffic.run(millis(300), |_| Sample::Overloaded);
        assert!(traffic.limit < before);
        traffic.run(MINUTE, |_| Sample::Overloaded);
        assert!(traffic.limit <= 10, "{}", traffic.limit);
        traffic.run(MINUTE, took(millis(10)));
        assert!(traffic.limit >= 100, "{}", traffic.limit);
    }
}

#[test]
fn only_what_tells_of_the_load_is_a_sample() {
    let failed = |kind| Sample::of(millis(5), Verdict::failure(kind, Resend::Never));
    for kind in [
        Kind::Timeout,
        Kind::Throttled,
        Kind::Unavailable,
        Kind::Connect,
        Kind::Reset,
    ] {
        assert_eq!(failed(kind), Some(Sample::Overloaded), "{kind:?}");
    }
    for kind in [Kind::Client, Kind::Server, Kind::Other] {
        assert_eq!(failed(kind), None, "{kind:?}");
    }
    assert_eq!(Sample::of(millis(5), Verdict::IGNORED), None);
    let ignored = Verdict::IGNORED.after(millis(1));
    assert_eq!(
        Sample::of(millis(5), ignored),
        None,
        "whatever else it says"
    );
    assert_eq!(Sample::of(Duration::ZERO, Verdict::SUCCESS), None);
    let success = Sample::of(millis(5), Verdict::SUCCESS);
    assert_eq!(success, Some(Sample::Succeeded(millis(5))));
}

#[test]
fn a_window_with_nothing_to_compare_moves_nothing_and_divides_by_nothing() {
    for algorithm in [&Gradient2::default() as &dyn LimitAlgorithm, &Vegas] {
        let mut window = Window::default();
        assert_eq!(algorithm.next(20.0, &window), 20.0);
        window.latency = Some(Duration::ZERO);
        window.baseline = Some(Duration::ZERO);
        assert_eq!(algorithm.next(20.0, &window), 20.0);
    }
}

proptest! {
    /// Whatever is measured, the limit is a number within its bounds, and never more than is tried.
    #[test]
    fn a_limit_stays_within_its_bounds(
        samples in prop::collection::vec((0..10_000_u64, any::<bool>(), 1..500_usize, 0..400_u64), 0..500),
        which in 0..3_usize,
    ) {
        let settings = match which {
            0 => AdaptiveLimit::builder(Aimd::default()),
            1 => AdaptiveLimit::builder(Vegas),
            _ => AdaptiveLimit::builder(Gradient2::default()),
        };
        let settings = settings.floor(3).ceiling(300).build().unwrap();
        let mut meter = Meter::new(&settings, 20);
        let (mut now, mut most) = (clock::now(), 0);
        for (latency, overloaded, in_flight, later) in samples {
            now += millis(later);
            most = most.max(in_flight);
            let sample = if overloaded { Sample::Overloaded } else { Sample::Succeeded(millis(latency)) };
            if let Some(limit) = meter.learn(&settings, now, sample, in_flight) {
                prop_assert!((3..=300).contains(&limit), "{limit}");
                prop_assert!(limit <= (2 * most).max(3), "{limit} of {most}");
                most = 0;
            }
        }
    }

    /// The baseline is the lowest of at least the memory, and of a tenth more at most.
    #[test]
    fn the_baseline_forgets_neither_early_nor_late(
        seen in prop::collection::vec((1..1_000_u64, 0..90_u64), 1..60),
    ) {
        let memory = Duration::from_secs(600);
        let mut baseline = Baseline::new(memory);
        let (start, mut now) = (clock::now(), clock::now());
        let mut past: Vec<(Instant, Duration)> = Vec::new();
        for (latency, later) in seen {
            now += Duration::from_secs(later);
            past.push((now, millis(latency)));
            let lowest = baseline.observe(now, millis(latency));
            let since = |age: Duration| {
                let recent = past.iter().filter(|(at, _)| now - *at <= age);
                recent.map(|(_, latency)| *latency).min().unwrap()
            };
            prop_assert!(lowest <= since(memory), "forgotten early, after {:?}", now - start);
            prop_assert!(lowest >= since(memory + memory / 10), "remembered for too long");
        }
    }
}
