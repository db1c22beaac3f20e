//! The handle: reading, following, forcing; and shadow mode.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use mamparo_core::{Event, Observer, Plain, What};
use mamparo_testkit::service::{Script, Step};
use proptest::prelude::*;
use tower::{Layer, ServiceExt};

use super::cast::{Rig, SECOND, by_window, millis, policy, rejection};
use crate::breaker::{
    BreakerBuilder, BreakerHandle, BreakerLayer, BreakerPolicy, BreakerState, Ramp, Window,
};

/// Row A13: what it says of itself is what it does.
#[tokio::test(start_paused = true)]
async fn a_forced_state_is_the_one_that_calls_meet() {
    let rig = Rig::new(policy());
    rig.handle.force_open();
    assert_eq!(rig.state(), BreakerState::ForcedOpen);
    assert!(rig.is_rejected().await);
    rig.handle.disable();
    rig.plays_all(&[false; 20]).await;
    assert_eq!(
        (rig.state(), rig.peer.started()),
        (BreakerState::Disabled, 20)
    );
    rig.handle.reset();
    assert_eq!(
        (rig.state(), rig.read().consecutive_failures),
        (BreakerState::Closed, 0)
    );
    rig.call().await.unwrap();
}

/// Row A14.
#[tokio::test(start_paused = true)]
async fn a_forced_state_lasts_until_an_operator_changes_it() {
    let rig = Rig::new(policy());
    rig.fails().await;
    rig.handle.force_open();
    tokio::time::sleep(Duration::from_secs(86_400)).await;
    assert!(rig.is_rejected().await);
    assert_eq!(rig.state(), BreakerState::ForcedOpen);

    rig.handle.reset();
    rig.fails().await;
    rig.handle.disable();
    tokio::time::sleep(6 * SECOND).await;
    rig.plays_all(&[false; 3]).await;
    assert_eq!(rig.state(), BreakerState::Disabled);
}

#[tokio::test(start_paused = true)]
async fn a_reset_forgets_the_window_and_the_openings() {
    for window in [Window::calls(10), Window::time(60 * SECOND)] {
        let rig = Rig::new(by_window().failures_in_window(3).window(window));
        rig.plays_all(&[false, false]).await;
        rig.handle.reset();
        assert_eq!(rig.counts(), (0, 0, 0));
        rig.plays_all(&[false, false]).await;
        assert_eq!(rig.state(), BreakerState::Closed);
        rig.plays_all(&[false]).await;
        rig.handle.reset();
        assert_eq!(
            (rig.state(), rig.read().openings),
            (BreakerState::Closed, 0)
        );
    }
}

/// Row A15: an observer reads the breaker, forces it and calls through it while it is told.
#[derive(Debug, Default)]
struct Meddler {
    handle: OnceLock<BreakerHandle>,
    heard: Mutex<Vec<(BreakerState, BreakerState)>>,
}

impl Observer for Meddler {
    fn on(&self, event: &Event<'_>) {
        let What::BreakerTransition(change) = event.what else {
            return;
        };
        let to = change.to.expect("it is not keyed");
        self.heard.lock().unwrap().push((change.from, to));
        let handle = self.handle.get().unwrap();
        assert_eq!(handle.snapshot().state, handle.state());
        if to == BreakerState::HalfOpen {
            handle.force_open();
        }
    }
}

/// Row A15.
#[tokio::test(start_paused = true)]
async fn changes_are_told_in_order_and_whoever_hears_them_may_change_it_again() {
    let meddler = Arc::new(Meddler::default());
    let layer = BreakerLayer::new(policy().build().unwrap(), Plain::idempotent());
    let layer = layer.observer(meddler.clone());
    meddler.handle.set(layer.handle()).unwrap();
    let mut follower = layer.handle().transitions();
    let peer = Script::<u32, u32>::new([Step::error("down")]).otherwise(|| Step::answer(7));
    let service = layer.layer(peer);
    service.clone().oneshot(1).await.unwrap_err();
    tokio::time::sleep(5 * SECOND).await;
    let forced = service.oneshot(1).await.unwrap_err();
    assert!(
        rejection(&forced).is_breaker_open(),
        "what is said holds at once"
    );

    use BreakerState::{Closed, ForcedOpen, HalfOpen, Open};
    let changes = [(Closed, Open), (Open, HalfOpen), (HalfOpen, ForcedOpen)];
    assert_eq!(*meddler.heard.lock().unwrap(), changes);
    for (from, to) in changes {
        let change = follower.next().await;
        assert_eq!((change.from, change.to), (from, Some(to)));
    }
    let nothing = tokio::time::timeout(SECOND, follower.next()).await;
    assert!(nothing.is_err());
}

/// Row A15: a panic in an observer keeps nobody else from hearing.
#[tokio::test(start_paused = true)]
async fn a_panic_of_an_observer_leaves_the_breaker_and_its_followers_as_they_are() {
    #[derive(Debug)]
    struct Panics;
    impl Observer for Panics {
        fn on(&self, event: &Event<'_>) {
            assert!(
                !matches!(event.what, What::BreakerTransition(_)),
                "an observer that panics"
            );
        }
    }
    let layer = BreakerLayer::new(policy().build().unwrap(), Plain::idempotent());
    let layer = layer.observer(Arc::new(Panics));
    let handle = layer.handle();
    let mut follower = handle.transitions();
    for _ in 0..2 {
        let handle = handle.clone();
        let forced = tokio::spawn(async move { handle.force_open() }).await;
        assert!(forced.is_err() || follower.next().await.to.is_some());
        let handle = layer.handle();
        assert!(tokio::spawn(async move { handle.reset() }).await.is_err());
    }
    assert_eq!(handle.state(), BreakerState::Closed);
    let changes: Vec<_> = [follower.next().await, follower.next().await]
        .map(|change| change.to)
        .into();
    assert_eq!(
        changes,
        [Some(BreakerState::ForcedOpen), Some(BreakerState::Closed)]
    );
}

#[tokio::test(start_paused = true)]
async fn a_follower_waits_for_the_next_change_and_a_slow_one_misses_the_oldest() {
    let rig = Rig::new(policy());
    let mut follower = rig.handle.transitions();
    let waiting = tokio::spawn(async move {
        let first = follower.next().await;
        (first, follower)
    });
    tokio::time::sleep(SECOND).await;
    rig.fails().await;
    let (first, mut follower) = waiting.await.unwrap();
    assert_eq!(
        (first.dependency.as_str(), first.wait),
        ("catalog", Some(5 * SECOND))
    );
    for _ in 0..200 {
        rig.handle.force_open();
        rig.handle.reset();
    }
    let mut seen = 0;
    while let Ok(_change) = tokio::time::timeout(millis(1), follower.next()).await {
        seen += 1;
    }
    assert_eq!(seen, 128);
}

#[tokio::test(start_paused = true)]
async fn in_shadow_mode_it_decides_and_reports_and_refuses_nothing() {
    let rig = Rig::new(policy().shadow(true));
    rig.plays_all(&[false; 10]).await;
    assert_eq!((rig.peer.started(), rig.state()), (10, BreakerState::Open));
    let shadowed = rig
        .heard
        .all()
        .iter()
        .filter(|text| text.starts_with("shadowed"))
        .count();
    assert_eq!((shadowed, rig.heard.changes().len()), (9, 1));
    tokio::time::sleep(5 * SECOND).await;
    rig.plays_all(&[true, true, true]).await;
    assert_eq!(
        rig.state(),
        BreakerState::Closed,
        "its probes are counted as if it had refused"
    );
}

/// Row A18: however short the wait and however often it fails, in frozen time too.
#[tokio::test(start_paused = true)]
async fn a_wait_of_a_millisecond_in_a_tight_loop_stays_bounded() {
    let shortest = policy().open_wait(millis(1), millis(1));
    let rig = Rig::new(shortest);
    for _ in 0..1_000 {
        rig.plays(Step::error("down")).await.unwrap_err();
    }
    assert_eq!(rig.peer.started(), 1, "time stands still");
    let zero = policy().open_wait(Duration::ZERO, SECOND).build();
    assert_eq!(zero.unwrap_err().setting(), "breaker.open_wait");
}

/// Rows J11 and C20, peer 6: by name, when the policy is built.
#[test]
fn nonsense_is_refused_by_name() {
    let of = |builder: BreakerBuilder| builder.build().unwrap_err().setting();
    let new = BreakerPolicy::builder;
    let second = Duration::from_secs(1);
    let cases = [
        (
            new().consecutive_failures(0),
            "breaker.consecutive_failures",
        ),
        (
            new().no_consecutive_failures(),
            "breaker.consecutive_failures",
        ),
        (new().failures_in_window(0), "breaker.failures_in_window"),
        (
            new().failures_in_window(11).window(Window::calls(10)),
            "breaker.failures_in_window",
        ),
        (new().failure_rate(0.0), "breaker.failure_rate"),
        (new().failure_rate(1.01), "breaker.failure_rate"),
        (new().failure_rate(f64::NAN), "breaker.failure_rate"),
        (new().slow_calls(second, f64::INFINITY), "breaker.slow_rate"),
        (
            new().slow_calls(Duration::ZERO, 0.5),
            "breaker.slow_threshold",
        ),
        (new().window(Window::calls(0)), "breaker.window"),
        (new().window(Window::calls(513)), "breaker.window"),
        (new().window(Window::time(Duration::ZERO)), "breaker.window"),
        (new().window(Window::time(Duration::MAX)), "breaker.window"),
        (
            new().failure_rate(0.5).minimum_calls(0),
            "breaker.minimum_calls",
        ),
        (
            new().window(Window::calls(10)).minimum_calls(11),
            "breaker.minimum_calls",
        ),
        (
            new().open_wait(second, second / 2),
            "breaker.longest_open_wait",
        ),
        (
            new().open_wait(second, Duration::MAX),
            "breaker.longest_open_wait",
        ),
        (new().open_wait_growth(0.9), "breaker.open_wait_growth"),
        (new().open_wait_jitter(1.0), "breaker.open_wait_jitter"),
        (new().probes(0), "breaker.probes"),
        (new().probes(u32::MAX), "breaker.probes"),
        (new().successes_to_close(0), "breaker.successes_to_close"),
        (new().probe_age(Duration::ZERO), "breaker.probe_age"),
        (new().max_keys(0), "breaker.max_keys"),
    ];
    for (builder, setting) in cases {
        assert_eq!(of(builder), setting);
    }
    let huge = new()
        .consecutive_failures(u32::MAX)
        .failures_in_window(u64::MAX)
        .minimum_calls(u64::MAX);
    assert!(huge.build().is_ok());
}

/// Row J11.
#[test]
fn a_ramp_that_makes_no_sense_is_refused_by_name() {
    let second = Duration::from_secs(1);
    let ramps = [
        Ramp::linear(0.0, second),
        Ramp::linear(f64::NAN, second),
        Ramp::linear(1.1, second),
    ];
    assert!(
        ramps
            .iter()
            .all(|ramp| ramp.as_ref().unwrap_err().setting() == "breaker.ramp.start")
    );
    assert_eq!(
        Ramp::linear(0.5, Duration::ZERO).unwrap_err().setting(),
        "breaker.ramp.duration"
    );
    assert_eq!(
        Ramp::curve(0.5, second, 0.0).unwrap_err().setting(),
        "breaker.ramp.exponent"
    );
}

proptest! {
    #[test]
    fn the_defaults_are_what_the_builder_starts_from(keys in 1usize..1_000_000) {
        let built = BreakerPolicy::builder().build().unwrap();
        prop_assert_eq!(format!("{built:?}"), format!("{:?}", BreakerPolicy::default()));
        prop_assert!(BreakerPolicy::builder().max_keys(keys).build().is_ok());
    }
}
