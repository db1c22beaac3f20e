//! Open, half-open, and the probes between them.

use std::panic::AssertUnwindSafe;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mamparo_core::{BoxError, Classify, Kind, Plain, Reason, Rejection, Resend, Verdict};
use mamparo_testkit::service::{NeverReady, Script, Step};
use tower::{Layer, Service, ServiceExt};

use super::cast::{Rig, SECOND, judged, millis, policy, rejection};
use crate::breaker::{BreakerLayer, BreakerState, Ramp};

/// Row A1: what was let through while closed holds no probe's place, and gives none back.
#[tokio::test(start_paused = true)]
async fn a_call_of_the_closed_state_that_is_dropped_later_frees_no_probes_place() {
    let rig = Rig::new(policy().probes(1));
    let early = rig.starts(Step::hang()).await;
    rig.opens_and_waits().await;
    let _probe = rig.starts(Step::hang()).await;
    early.abort();
    assert!(early.await.is_err());
    assert!(rig.is_rejected().await);
    assert_eq!((rig.peer.started(), rig.read().probes), (3, 1));
}

/// Rows A2 and P-C5.
#[tokio::test(start_paused = true)]
async fn a_result_of_an_earlier_state_neither_closes_nor_opens_it() {
    let rig = Rig::new(policy().probes(1).successes_to_close(1));
    let early_success = rig.starts(Step::answer(7).after(6 * SECOND)).await;
    let early_failure = rig.starts(Step::error("late").after(9 * SECOND)).await;
    rig.opens_and_waits().await;
    let probe = rig.starts(Step::answer(7).after(2 * SECOND)).await;
    early_success.await.unwrap().unwrap();
    assert_eq!((rig.state(), rig.read().late), (BreakerState::HalfOpen, 1));
    probe.await.unwrap().unwrap();
    assert_eq!(rig.state(), BreakerState::Closed);
    early_failure.await.unwrap().unwrap_err();
    let read = rig.read();
    assert_eq!(
        (read.state, read.late, read.consecutive_failures),
        (BreakerState::Closed, 2, 0)
    );
}

/// Rows A4 and P-C4.
#[tokio::test(start_paused = true)]
async fn a_probe_that_is_dropped_gives_its_place_back_and_decides_nothing() {
    let rig = Rig::new(policy().probes(1).successes_to_close(1));
    rig.opens_and_waits().await;
    rig.cancels(millis(10)).await;
    assert_eq!(
        (rig.state(), rig.read().probes, rig.read().cancelled),
        (BreakerState::HalfOpen, 0, 1)
    );
    rig.call().await.unwrap();
    assert_eq!(rig.state(), BreakerState::Closed);
}

/// Rows A5 and P-C4: without any timeout further in.
#[tokio::test(start_paused = true)]
async fn a_probe_that_never_ends_loses_its_place_and_its_say() {
    let rig = Rig::new(policy().probes(1).successes_to_close(1));
    rig.opens_and_waits().await;
    let hung = rig.starts(Step::answer(7).after(40 * SECOND)).await;
    tokio::time::sleep(29 * SECOND).await;
    assert!(rig.is_rejected().await);
    tokio::time::sleep(SECOND).await;
    let next = rig.starts(Step::hang()).await;
    assert_eq!((rig.peer.running(), rig.read().probes), (2, 1));
    hung.await.unwrap().unwrap();
    assert_eq!((rig.state(), rig.read().late), (BreakerState::HalfOpen, 1));
    assert!(rig.is_rejected().await, "the place is the other one's");
    next.abort();
}

#[tokio::test(start_paused = true)]
async fn whoever_reads_it_sees_that_all_probes_are_under_way() {
    let rig = Rig::new(policy().probes(2).successes_to_close(2));
    rig.opens_and_waits().await;
    let first = rig.starts(Step::hang()).await;
    assert_eq!(
        (rig.state(), rig.read().retry_after),
        (BreakerState::HalfOpen, None)
    );
    let second = rig.starts(Step::hang()).await;
    assert_eq!(rig.read().retry_after, Some(SECOND));
    first.abort();
    assert!(first.await.is_err());
    assert_eq!(rig.read().retry_after, None);
    second.abort();
}

/// Row A6, with an end that was said to be ignored.
#[tokio::test(start_paused = true)]
async fn a_probe_that_says_nothing_gives_its_place_back() {
    let rig = Rig::new(policy().probes(1).successes_to_close(1));
    rig.opens_and_waits().await;
    let local = Rejection::refused(Reason::BulkheadFull, "catalog".into());
    rig.plays(Step::error(local)).await.unwrap_err();
    assert_eq!(
        (rig.state(), rig.read().ignored),
        (BreakerState::HalfOpen, 1)
    );
    rig.call().await.unwrap();
    assert_eq!(rig.state(), BreakerState::Closed);

    let policy = policy().ignore(Kind::Client).successes_to_close(1);
    let not_found = Classify::<u32>::refine(Plain::idempotent(), judged(Kind::Client));
    let layer = BreakerLayer::new(policy.build().unwrap(), not_found);
    let service = layer.layer(Script::<u32, u32>::new([]).otherwise(|| Step::error("404")));
    service.oneshot(1).await.unwrap_err();
    let read = layer.handle().snapshot();
    assert_eq!((read.ignored, read.state), (1, BreakerState::Closed));
}

/// Row A7: an end that is no verdict counts as none, and its place is free at once.
#[tokio::test(start_paused = true)]
async fn a_classifier_that_panics_leaves_no_place_taken() {
    let panics = |outcome: Result<&u32, &BoxError>, verdict: Verdict| match outcome {
        Ok(0) => panic!("a classifier that panics on 0"),
        _ => verdict,
    };
    let protocol = Classify::<u32>::refine(Plain::idempotent(), panics);
    let layer = BreakerLayer::new(policy().probes(2).build().unwrap(), protocol);
    let peer = Script::<u32, u32>::new([Step::error("down")]).otherwise(|| Step::answer(7));
    let service = layer.layer(peer.clone());
    service.clone().oneshot(1).await.unwrap_err();
    tokio::time::sleep(5 * SECOND).await;
    for _ in 0..4 {
        peer.push(Step::answer(0));
        let call = AssertUnwindSafe(service.clone().oneshot(1));
        assert!(tokio::spawn(call.0).await.unwrap_err().is_panic());
        let read = layer.handle().snapshot();
        assert_eq!((read.state, read.probes), (BreakerState::HalfOpen, 0));
    }
    for _ in 0..2 {
        service.clone().oneshot(1).await.unwrap();
    }
    assert_eq!(layer.handle().state(), BreakerState::Closed);
}

/// Rows A8, P-C3 and T6: the last of what this layer must show.
#[tokio::test(start_paused = true)]
async fn of_fifty_callers_as_the_wait_elapses_exactly_three_reach_the_peer() {
    for at_once in [1, 3] {
        let rig = Rig::new(policy().probes(at_once));
        rig.opens_and_waits().await;
        let before = rig.peer.started();
        let calls: Vec<_> = (0..50)
            .map(|_| {
                rig.peer.push(Step::answer(7).after(millis(20)));
                let rig = rig.clone();
                tokio::spawn(async move { rig.call().await })
            })
            .collect();
        let mut rejected = 0;
        for call in calls {
            if let Err(error) = call.await.unwrap() {
                rejected += 1;
                let rejection = rejection(&error);
                assert!(rejection.is_breaker_open() && !rejection.sent());
                assert_eq!(rejection.retry_after(), Some(SECOND));
            }
        }
        let at_once = at_once as usize;
        assert_eq!(
            (rig.peer.started() - before, rejected),
            (at_once, 50 - at_once)
        );
    }
}

/// Row A9: one change, and one wait.
#[tokio::test(start_paused = true)]
async fn failures_that_reach_the_threshold_together_open_it_once() {
    let rig = Rig::new(policy().consecutive_failures(5));
    let mut calls = Vec::new();
    for _ in 0..20 {
        calls.push(rig.starts(Step::error("down").after(millis(10))).await);
    }
    for call in calls {
        call.await.unwrap().unwrap_err();
    }
    assert_eq!(rig.heard.changes(), ["closed>open: consecutive_failures"]);
    tokio::time::sleep(5 * SECOND).await;
    rig.call().await.unwrap();
    assert_eq!(rig.state(), BreakerState::HalfOpen);
}

/// Row A10: whatever is further in refuses the probe, its place is free again.
#[tokio::test(start_paused = true)]
async fn a_probe_that_a_layer_further_in_refuses_gives_its_place_back() {
    let rig = Rig::new(policy().probes(1));
    rig.opens_and_waits().await;
    for reason in [
        Reason::BulkheadFull,
        Reason::RateLimited,
        Reason::Overloaded,
    ] {
        let refused = Rejection::refused(reason, "catalog".into());
        rig.plays(Step::error(refused)).await.unwrap_err();
        assert_eq!(
            (rig.state(), rig.read().probes),
            (BreakerState::HalfOpen, 0)
        );
    }
    assert_eq!(rig.peer.started(), 4);
}

/// Row A12.
#[tokio::test(start_paused = true)]
async fn without_traffic_nothing_changes_and_no_wait_grows() {
    let rig = Rig::new(policy());
    rig.opens_and_waits().await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let read = rig.read();
    assert_eq!(
        (read.state, read.openings, read.retry_after),
        (BreakerState::Open, 1, Some(Duration::ZERO))
    );
    assert_eq!(rig.heard.changes().len(), 1);
    assert!(rig.call().await.is_ok());
}

/// Rows B13 and peer 3: at once, and over the whole time; successes do not age out.
#[tokio::test(start_paused = true)]
async fn probes_are_bounded_and_count_whenever_they_end() {
    let rig = Rig::new(policy().probes(2).successes_to_close(4));
    rig.opens_and_waits().await;
    for round in 0..4 {
        assert_eq!(rig.state() == BreakerState::Open, round == 0);
        let slow = rig.starts(Step::answer(7).after(20 * SECOND)).await;
        let other = rig.starts(Step::hang()).await;
        assert!(rig.is_rejected().await);
        other.abort();
        slow.await.unwrap().unwrap();
    }
    assert_eq!(
        (rig.peer.max_running(), rig.state()),
        (2, BreakerState::Closed)
    );
    assert_eq!(rig.peer.started(), 1 + 4 * 2);
}

/// Row P-C8: too many requests are a failure, and a request at fault is none.
#[tokio::test(start_paused = true)]
async fn a_throttled_probe_fails_and_one_whose_request_was_at_fault_succeeds() {
    for (kind, after) in [
        (Kind::Throttled, BreakerState::Open),
        (Kind::Timeout, BreakerState::Open),
        (Kind::Client, BreakerState::Closed),
    ] {
        let down = Verdict::failure(Kind::Server, Resend::Never);
        let judge = move |outcome: Result<&u32, &BoxError>, verdict: Verdict| match outcome {
            Err(error) if error.to_string() == "down" => down,
            Err(_) => Verdict::failure(kind, Resend::Never),
            Ok(_) => verdict,
        };
        let protocol = Classify::<u32>::refine(Plain::idempotent(), judge);
        let policy = policy().successes_to_close(1).build().unwrap();
        let layer = BreakerLayer::new(policy, protocol);
        let peer = Script::<u32, u32>::new([Step::error("down"), Step::error("probe")]);
        let service = layer.layer(peer);
        service.clone().oneshot(1).await.unwrap_err();
        tokio::time::sleep(5 * SECOND).await;
        service.oneshot(1).await.unwrap_err();
        assert_eq!(layer.handle().state(), after, "{kind:?}");
    }
}

/// Row P-C8: when to come back, to the moment, and in whole once nobody knows.
#[tokio::test(start_paused = true)]
async fn a_rejection_says_how_long_it_stays_open() {
    let rig = Rig::new(policy());
    rig.fails().await;
    tokio::time::sleep(SECOND).await;
    let error = rig.call().await.unwrap_err();
    assert_eq!(rejection(&error).retry_after(), Some(4 * SECOND));
    assert_eq!(
        error.to_string(),
        "catalog: circuit breaker is open: not sent"
    );
    rig.handle.force_open();
    let error = rig.call().await.unwrap_err();
    assert_eq!(rejection(&error).retry_after(), None);
}

/// Peer 5: the rule on slow calls holds for probes too.
#[tokio::test(start_paused = true)]
async fn a_slow_probe_opens_it_again() {
    let slow = policy().slow_calls(millis(500), 1.0);
    let rig = Rig::new(slow);
    rig.opens_and_waits().await;
    rig.plays(Step::answer(7).after(millis(500))).await.unwrap();
    assert_eq!(rig.state(), BreakerState::Open);
    assert_eq!(rig.heard.changes()[2], "half_open>open: probe_failed");
}

/// Rows T5 and P-C8: readiness of what will not be called is not waited for.
#[test]
fn an_open_breaker_does_not_wait_for_the_inner_service() {
    let layer = BreakerLayer::new(policy().build().unwrap(), Plain::idempotent());
    layer.handle().force_open();
    let mut service = layer.layer(NeverReady::<u32>::new());
    let mut cx = Context::from_waker(Waker::noop());
    assert!(matches!(
        Service::<u32>::poll_ready(&mut service, &mut cx),
        Poll::Ready(Ok(()))
    ));
    let call = std::pin::pin!(service.call(1));
    let Poll::Ready(Err(error)) = call.poll(&mut cx) else {
        panic!("it waits")
    };
    assert!(rejection(&error).is_breaker_open());
}

/// A probe that waits for a place further in is not ready yet, and is driven by its own future.
#[tokio::test(start_paused = true)]
async fn a_probe_drives_an_inner_service_that_was_not_ready() {
    let rig = Rig::new(policy().successes_to_close(1).ramp(Ramp::none()));
    rig.opens_and_waits().await;
    let service = rig
        .layer
        .layer(tower::buffer::Buffer::new(rig.peer.clone(), 1));
    assert_eq!(service.oneshot(1).await.unwrap(), 7);
    assert_eq!(rig.state(), BreakerState::Closed);
}
