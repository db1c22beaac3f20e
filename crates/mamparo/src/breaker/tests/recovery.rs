//! How long it stays open, and how calls come back.

use std::time::Duration;

use mamparo_core::{BoxError, Classify, Kind, Outcome, Plain, Resend, Verdict, clock};
use mamparo_testkit::service::{Script, Step};
use tower::{Layer, ServiceExt};

use super::cast::{Rig, SECOND, millis, policy, rejection};
use crate::breaker::{BreakerLayer, BreakerPolicy, BreakerState, Ramp};

/// How long it stays open now.
fn wait(rig: &Rig) -> Duration {
    rig.read().retry_after.expect("it is open")
}

#[tokio::test(start_paused = true)]
async fn each_opening_that_follows_another_waits_twice_as_long_up_to_the_longest() {
    let rig = Rig::new(policy());
    let mut waits = Vec::new();
    for _ in 0..6 {
        rig.fails().await;
        waits.push(wait(&rig).as_secs());
        tokio::time::sleep(wait(&rig)).await;
    }
    assert_eq!(waits, [5, 10, 20, 40, 60, 60]);
    for _ in 0..2 {
        rig.call().await.unwrap();
    }
    rig.fails().await;
    assert_eq!(
        (wait(&rig), rig.read().openings),
        (5 * SECOND, 1),
        "it was closed in between"
    );
}

/// Row A19: of many that open at once, not two come back at once.
#[tokio::test(start_paused = true)]
async fn waits_are_spread_by_a_fifth_to_either_side() {
    let mut waits = Vec::new();
    for _ in 0..100 {
        let rig = Rig::new(BreakerPolicy::builder().consecutive_failures(1));
        rig.fails().await;
        waits.push(wait(&rig));
    }
    assert!(
        waits
            .iter()
            .all(|wait| (4 * SECOND..=6 * SECOND).contains(wait))
    );
    let early = waits.iter().filter(|wait| **wait < 5 * SECOND).count();
    assert!((20..=80).contains(&early), "{early} of 100 early");
    waits.sort_unstable();
    waits.dedup();
    assert!(waits.len() > 90, "{} distinct", waits.len());
}

fn asking(hint: Duration) -> impl Outcome<u32> + Clone {
    let judge = move |outcome: Result<&u32, &BoxError>, verdict: Verdict| match outcome {
        Ok(_) => verdict,
        Err(_) => Verdict::failure(Kind::Throttled, Resend::Never).after(hint),
    };
    Classify::<u32>::refine(Plain::idempotent(), judge)
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_the_server_asks_for_lengthens_its_own_and_never_shortens_it() {
    for (hint, jitter, least, most) in [
        (2 * SECOND, 0.0, 5 * SECOND, 5 * SECOND),
        (20 * SECOND, 0.0, 20 * SECOND, 20 * SECOND),
        (20 * SECOND, 0.2, 20 * SECOND, 24 * SECOND),
        (Duration::MAX, 0.0, 60 * SECOND, 60 * SECOND),
    ] {
        let policy = policy().open_wait_jitter(jitter).build().unwrap();
        let layer = BreakerLayer::new(policy, asking(hint));
        let peer = Script::<u32, u32>::new([Step::error("429")]);
        drop(layer.layer(peer).oneshot(1).await);
        let wait = layer.handle().snapshot().retry_after.unwrap();
        assert!((least..=most).contains(&wait), "{wait:?} for {hint:?}");
    }
}

/// Row A19: offered a thousand calls a second, what passes is what the curve says.
#[tokio::test(start_paused = true)]
async fn calls_come_back_along_the_curve_and_no_faster() {
    for exponent in [1.0, 2.0] {
        let ramp = Ramp::curve(0.1, 10 * SECOND, exponent).unwrap().floor(1);
        let rig = Rig::new(policy().ramp(ramp).successes_to_close(1));
        rig.opens_and_waits().await;
        rig.call().await.unwrap();
        let closed = clock::now();
        let (mut allowed, mut passed, mut offered) = (1.0, 0_u32, 0_u32);
        while closed.elapsed() < 10 * SECOND {
            allowed += ramp.share(closed.elapsed());
            offered += 1;
            passed += u32::from(rig.call().await.is_ok());
            let by_time = closed.elapsed().as_secs_f64();
            assert!(
                f64::from(passed) <= allowed + by_time + 1.0,
                "{passed} of {offered}"
            );
            tokio::time::sleep(millis(1)).await;
        }
        assert!(
            f64::from(passed) > 0.98 * allowed,
            "{passed} of {allowed} allowed"
        );
        assert!(passed < offered * 7 / 10);
        for _ in 0..100 {
            rig.call().await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_calls_rarely_is_not_held_up_by_the_ramp() {
    let rig = Rig::new(policy().ramp(Ramp::default()).successes_to_close(1));
    rig.opens_and_waits().await;
    rig.call().await.unwrap();
    for _ in 0..10 {
        rig.call().await.unwrap();
        tokio::time::sleep(millis(200)).await;
    }
    assert!(rig.read().admitted < 1.0);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_the_ramp_holds_back_is_told_when_the_ramp_is_over() {
    let rig = Rig::new(policy().ramp(Ramp::default()).successes_to_close(1));
    rig.opens_and_waits().await;
    rig.call().await.unwrap();
    rig.call().await.unwrap();
    let error = rig.call().await.unwrap_err();
    assert_eq!(rejection(&error).retry_after(), Some(5 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn it_is_closed_for_good_once_the_ramp_is_over() {
    let rig = Rig::new(policy().ramp(Ramp::default()).successes_to_close(1));
    rig.opens_and_waits().await;
    rig.call().await.unwrap();
    assert_eq!(
        (rig.state(), rig.read().admitted),
        (BreakerState::Closed, 0.2)
    );
    rig.fails().await;
    assert_eq!(
        (rig.read().openings, wait(&rig)),
        (2, 10 * SECOND),
        "it fell back"
    );
    tokio::time::sleep(10 * SECOND).await;
    rig.call().await.unwrap();
    tokio::time::sleep(5 * SECOND).await;
    rig.call().await.unwrap();
    rig.fails().await;
    assert_eq!((rig.read().openings, wait(&rig)), (1, 5 * SECOND));
}
