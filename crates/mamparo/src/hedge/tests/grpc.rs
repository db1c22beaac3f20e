//! gRPC's hedges, as gRFC A6 has them: scripted answers, paused time.

use mamparo_core::budget::Throttle;
use mamparo_core::grpc::{Code, Grpc};
use mamparo_core::{BoxError, Budget, Cause, NotResent, clock};
use mamparo_testkit::service::Step;
use tower::{Layer, ServiceExt};

use crate::grpc::tests::cast::*;
use crate::grpc::{MethodConfig, ServiceConfig};
use crate::hedge::{Ending, HedgeLayer, HedgePolicy, RetryError};

/// Nothing but the plan bounds the load: whoever writes one says how much there may be.
fn layer() -> HedgeLayer<Grpc> {
    let policy = HedgePolicy::builder().budget(Budget::unlimited());
    let policy = policy.build().unwrap();
    HedgeLayer::grpc(policy).dependency("catalog")
}

async fn configured(peer: &Peer, config: &ServiceConfig) -> Result<Answer, BoxError> {
    let layer = layer().service_config(config);
    layer.layer(peer.clone()).oneshot(request()).await
}

/// Sends under a plan of four attempts, one every 500 ms, for which UNAVAILABLE is not fatal.
async fn planned(peer: &Peer) -> Result<Answer, BoxError> {
    let config = hedged(4, 500 * MS, &[Code::Unavailable]).build().unwrap();
    configured(peer, &config).await
}

fn after(ms: u32, answer: Answer) -> Step<Answer> {
    Step::answer(answer).after(ms * MS)
}

/// HG-V1, A6-08.
#[tokio::test(start_paused = true)]
async fn attempts_begin_one_delay_apart() {
    let peer = peer([Step::hang(), Step::hang(), Step::hang(), after(100, ok())]);
    let answer = planned(&peer).await.unwrap();
    assert_eq!(sends(&peer), [0, 500, 1_000, 1_500]);
    let told = previous_attempts(&peer);
    let told: Vec<_> = told.iter().map(Option::as_deref).collect();
    assert_eq!(told, [None, Some("1"), Some("2"), Some("3")]);
    assert_eq!(
        (peer.finished(), peer.dropped()),
        (1, 3),
        "losers are given up"
    );
    assert_eq!(Ending::of(&answer).unwrap().attempts(), 4);
}

/// HG-V1: no delay is all at once.
#[tokio::test(start_paused = true)]
async fn without_a_delay_all_attempts_begin_at_once() {
    let peer = peer([Step::hang(), Step::hang(), after(5, ok())]);
    let config = hedged(3, std::time::Duration::ZERO, &[]).build().unwrap();
    configured(&peer, &config).await.unwrap();
    assert_eq!(sends(&peer), [0, 0, 0]);
}

/// HG-V2, P-D5: the delay resumes after the attempt that was brought forward.
#[tokio::test(start_paused = true)]
async fn a_status_that_is_not_fatal_brings_the_next_attempt_forward() {
    let peer = peer([
        after(100, status(Code::Unavailable)),
        Step::hang(),
        after(10, ok()),
    ]);
    planned(&peer).await.unwrap();
    assert_eq!(sends(&peer), [0, 100, 600]);
}

/// HG-V3, P-D5.
#[tokio::test(start_paused = true)]
async fn a_fatal_status_ends_the_call() {
    let start = clock::now();
    let early = peer([after(100, status(Code::NotFound))]);
    let answer = planned(&early).await.unwrap();
    assert_eq!(
        (early.started(), answer.headers()["grpc-status"].as_bytes()),
        (1, &b"5"[..])
    );
    assert_eq!(clock::now() - start, 100 * MS);
    let late = peer([Step::hang(), after(100, status(Code::NotFound))]);
    planned(&late).await.unwrap();
    assert_eq!(
        (late.started(), late.dropped()),
        (2, 1),
        "the first is cancelled"
    );
}

/// HG-V4, P-D2.
#[tokio::test(start_paused = true)]
async fn the_first_success_cancels_the_others() {
    let peer = peer([Step::hang(), after(120, ok())]);
    let start = clock::now();
    planned(&peer).await.unwrap();
    assert_eq!(clock::now() - start, 620 * MS);
    assert_eq!((peer.started(), peer.dropped()), (2, 1));
}

/// A head commits the call: the others are given up, whatever its trailers say.
#[tokio::test(start_paused = true)]
async fn a_head_without_a_status_wins() {
    let frames = mamparo_testkit::body::Frames::new().trailer("grpc-status", "14");
    let peer = peer([after(100, streamed(frames))]);
    planned(&peer).await.unwrap();
    assert_eq!(peer.started(), 1);
}

/// PB-04, P-D5: no more hedges, and those in flight run on.
#[tokio::test(start_paused = true)]
async fn a_servers_no_begins_no_more_attempts_and_lets_others_finish() {
    let no = || pushed_back(Code::Unavailable, &["-1"]);
    let won = peer([after(900, ok()), after(100, no())]);
    let answer = planned(&won).await.unwrap();
    assert_eq!(
        (sends(&won), Ending::of(&answer).unwrap().attempts()),
        (vec![0, 500], 2)
    );
    let lost = peer([after(100, no())]);
    let answer = planned(&lost).await.unwrap();
    assert_eq!(lost.started(), 1);
    assert_eq!(
        Ending::of(&answer).unwrap().not_resent(),
        Some(NotResent::Forbidden)
    );
}

/// A fatal status ends the call, whatever the server says of sending it again.
#[tokio::test(start_paused = true)]
async fn a_fatal_status_with_a_servers_no_ends_the_call() {
    let fatal = pushed_back(Code::NotFound, &["-1"]);
    let peer = peer([Step::hang(), after(100, fatal)]);
    let answer = planned(&peer).await.unwrap();
    assert_eq!(answer.headers()["grpc-status"], "5");
    assert_eq!(peer.dropped(), 1);
}

/// PB-03 among hedges: the next at the pushback, and the one after it a delay later.
#[tokio::test(start_paused = true)]
async fn a_pushback_says_when_the_next_attempt_begins() {
    let peer = peer([
        after(100, pushed_back(Code::Unavailable, &["1000"])),
        Step::hang(),
        after(10, ok()),
    ]);
    planned(&peer).await.unwrap();
    assert_eq!(sends(&peer), [0, 1_100, 1_600]);
}

/// A6-05 among hedges.
#[tokio::test(start_paused = true)]
async fn too_many_failures_stop_the_hedges() {
    let throttle = Throttle::new(4, 0.5).unwrap();
    let plan = hedged(5, 500 * MS, &[Code::Unavailable]).throttle(throttle.clone());
    let config = plan.build().unwrap();
    let failing = always(Code::Unavailable);
    let answer = configured(&failing, &config).await.unwrap();
    assert_eq!(failing.started(), 2, "2 of 4 tokens are too few");
    assert_eq!(
        Ending::of(&answer).unwrap().not_resent(),
        Some(NotResent::Throttled)
    );
    let slow = peer([after(900, ok())]);
    configured(&slow, &config).await.unwrap();
    assert_eq!(slow.started(), 1);
    assert_eq!(throttle.tokens(), 2.5, "a success pays in");
    let slow = peer([after(900, ok()), Step::hang()]);
    configured(&slow, &config).await.unwrap();
    assert_eq!(slow.started(), 2);
}

/// All failed: no retry follows.
#[tokio::test(start_paused = true)]
async fn when_all_attempts_fail_the_last_answer_is_the_callers() {
    let peer = always(Code::Unavailable);
    let answer = planned(&peer).await.unwrap();
    assert_eq!((peer.started(), sends(&peer)), (4, vec![0; 4]));
    let ending = Ending::of(&answer).unwrap();
    assert_eq!(ending.not_resent(), Some(NotResent::AttemptsExhausted));
}

/// "Calls are not assumed to be idempotent": none is hedged unless its method says so. Nor is one that is retried.
#[tokio::test(start_paused = true)]
async fn a_method_without_a_hedging_policy_is_sent_once() {
    let none = ServiceConfig::builder().build().unwrap();
    let retried = retried(3, &[Code::Unavailable]).build().unwrap();
    let once = ServiceConfig::builder().all(MethodConfig::new().sent_once());
    for config in [none, retried, once.build().unwrap()] {
        let slow = peer([after(900, ok())]);
        configured(&slow, &config).await.unwrap();
        let failing = always(Code::Unavailable);
        configured(&failing, &config).await.unwrap();
        assert_eq!((slow.started(), failing.started()), (1, 1));
    }
}

/// TR-02 among hedges: the same attempt, at once, beside the others, and free of charge.
#[tokio::test(start_paused = true)]
async fn an_attempt_that_was_never_processed_is_sent_once_more() {
    let peer = peer([
        never_processed().after(100 * MS),
        Step::hang(),
        after(10, ok()),
    ]);
    let config = hedged(2, 500 * MS, &[]).build().unwrap();
    let answer = configured(&peer, &config).await.unwrap();
    let expected = [
        (1, Cause::Original),
        (1, Cause::Transparent),
        (2, Cause::Hedge),
    ];
    assert_eq!(
        (causes(&peer), sends(&peer)),
        (expected.to_vec(), vec![0, 100, 500])
    );
    assert_eq!(Ending::of(&answer).unwrap().attempts(), 2);
    let told = previous_attempts(&peer);
    assert_eq!(told, [None, None, Some("1".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn a_second_refusal_is_a_failure_like_others() {
    let peer = peer([never_processed(), never_processed(), never_processed()]);
    let config = hedged(2, 500 * MS, &[]).build().unwrap();
    let error = configured(&peer, &config).await.unwrap_err();
    assert_eq!(peer.started(), 3);
    let ending = RetryError::of(&*error).unwrap().ending();
    assert_eq!(ending.attempts(), 2);
}

/// Beside others under way, its body is read whole by each.
#[tokio::test(start_paused = true)]
async fn one_that_goes_once_more_beside_another_sends_the_whole_body() {
    use http_body_util::BodyExt;
    let turn = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
    let peer = tower::service_fn(move |request: Wire| {
        let turn = turn.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        async move {
            let whole = request.into_body().collect().await?.to_bytes();
            assert_eq!(whole, "question");
            match turn {
                0 => {
                    tokio::time::sleep(600 * MS).await;
                    let refused = mamparo_core::TransportError::new(
                        mamparo_core::Kind::Unavailable,
                        mamparo_core::Resend::Always,
                        "refused",
                    );
                    Err(BoxError::from(refused))
                }
                1 => std::future::pending().await,
                _ => Ok(ok()),
            }
        }
    });
    let config = hedged(2, 500 * MS, &[]).build().unwrap();
    let service = layer().service_config(&config).layer(peer);
    let start = clock::now();
    service.oneshot(request()).await.unwrap();
    assert_eq!(clock::now() - start, 600 * MS);
}
