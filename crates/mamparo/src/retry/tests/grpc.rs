//! gRPC's retries, as gRFC A6 has them: scripted answers, paused time.

use http::HeaderValue;
use mamparo_core::grpc::{Code, GRPC_PREVIOUS_RPC_ATTEMPTS, Grpc};
use mamparo_core::{BoxError, Cause, Kind, NotResent, Resend, TransportError, clock};
use mamparo_testkit::body::{Frames, ScriptedBody};
use mamparo_testkit::service::Step;
use tower::{Layer, ServiceExt};

use super::cast::within;
use crate::grpc::tests::cast::*;
use crate::grpc::{MethodConfig, ServiceConfig};
use crate::retry::{Ending, RetryError, RetryLayer, RetryPolicy};

fn layer() -> RetryLayer<Grpc> {
    RetryLayer::grpc(RetryPolicy::default()).dependency("catalog")
}

async fn send(peer: &Peer) -> Result<Answer, BoxError> {
    layer().layer(peer.clone()).oneshot(request()).await
}

/// Sends under a retry plan.
async fn planned(peer: &Peer, attempts: u32, codes: &[Code]) -> Result<Answer, BoxError> {
    let config = retried(attempts, codes).build().unwrap();
    configured(peer, &config).await
}

async fn configured(peer: &Peer, config: &ServiceConfig) -> Result<Answer, BoxError> {
    let layer = layer().service_config(config);
    layer.layer(peer.clone()).oneshot(request()).await
}

fn not_resent(answer: &Answer) -> Option<NotResent> {
    Ending::of(answer).unwrap().not_resent()
}

/// A6-01, A6-02: our default is the one status that says that nothing was done.
#[tokio::test(start_paused = true)]
async fn without_a_plan_unavailable_is_sent_again_and_nothing_else() {
    for code in Code::ALL {
        let peer = always(code);
        let answer = send(&peer).await.unwrap();
        let expected = if code == Code::Unavailable { 3 } else { 1 };
        assert_eq!(
            (peer.started(), answer.headers().len()),
            (expected, 2),
            "{code}"
        );
    }
    let broken = peer([reset()]);
    let error = send(&broken).await.unwrap_err();
    assert!(RetryError::of(&*error).unwrap().ending().is_indeterminate());
}

/// A6-03, A6-10: four attempts on a listed status, then its last answer; more than five are five.
#[tokio::test(start_paused = true)]
async fn a_plan_says_how_often_and_on_what() {
    for (attempts, sends) in [(2, 2), (4, 4), (10, 5)] {
        let peer = always(Code::AlreadyExists);
        let answer = planned(&peer, attempts, &[Code::AlreadyExists])
            .await
            .unwrap();
        assert_eq!(peer.started(), sends);
        assert_eq!(not_resent(&answer), Some(NotResent::AttemptsExhausted));
        assert_eq!(answer.headers()["grpc-status"], "6");
    }
    let internal = always(Code::Internal);
    let answer = planned(&internal, 4, &[Code::Unavailable]).await.unwrap();
    assert_eq!(internal.started(), 1);
    assert_eq!(not_resent(&answer), Some(NotResent::NotRetryable));
}

/// A6-04.
#[tokio::test(start_paused = true)]
async fn waits_grow_around_the_plans_backoff() {
    let peer = always(Code::Unavailable);
    planned(&peer, 5, &[Code::Unavailable]).await.unwrap();
    let sends = sends(&peer);
    let waits: Vec<_> = sends.windows(2).map(|pair| pair[1] - pair[0]).collect();
    for (wait, centre) in waits.iter().zip([100, 200, 400, 800]) {
        // Timers are exact to a millisecond.
        assert!(
            (centre * 4 / 5..=centre * 6 / 5 + 1).contains(wait),
            "{waits:?}"
        );
    }
}

/// A6-08: absent, 1, 2, …
#[tokio::test(start_paused = true)]
async fn each_attempt_tells_how_many_were_before_it() {
    let peer = always(Code::Unavailable);
    planned(&peer, 4, &[Code::Unavailable]).await.unwrap();
    let told = previous_attempts(&peer);
    let told: Vec<_> = told.iter().map(Option::as_deref).collect();
    assert_eq!(told, [None, Some("1"), Some("2"), Some("3")]);
    let proxied = always(Code::Ok);
    let mut request = request();
    let number = HeaderValue::from_static("7");
    request
        .headers_mut()
        .insert(GRPC_PREVIOUS_RPC_ATTEMPTS, number);
    layer()
        .layer(proxied.clone())
        .oneshot(request)
        .await
        .unwrap();
    assert_eq!(
        previous_attempts(&proxied),
        [None],
        "its caller's count is not its own"
    );
}

/// A6-06 and A6-10: no retry after a head, whatever the trailers say.
#[tokio::test(start_paused = true)]
async fn a_head_without_a_status_commits_the_call() {
    let late = Frames::new()
        .trailer("grpc-status", "14")
        .trailer("grpc-retry-pushback-ms", "0");
    let peer = peer([Step::answer(streamed(late))]);
    let answer = planned(&peer, 4, &[Code::Unavailable]).await.unwrap();
    assert_eq!(peer.started(), 1);
    assert!(Ending::of(&answer).is_none() && answer.headers().get("grpc-status").is_none());
}

/// A6-06, P-B4: the request outgrew what is kept of it.
#[tokio::test(start_paused = true)]
async fn a_request_that_outgrows_its_buffer_commits_the_call() {
    let policy = RetryPolicy::builder().max_body(4).build().unwrap();
    let peer = always(Code::Unavailable);
    let layer = RetryLayer::grpc(policy);
    let whole = with_body(ScriptedBody::new(Frames::new().data("12345")));
    let answer = layer.layer(peer.clone()).oneshot(whole).await.unwrap();
    assert_eq!(
        (peer.started(), not_resent(&answer)),
        (1, Some(NotResent::BodyTooLarge))
    );
}

/// A6-05: of ten tokens, five failures leave too few.
#[tokio::test(start_paused = true)]
async fn too_many_failures_stop_the_retries_of_all() {
    let throttle = mamparo_core::budget::Throttle::new(10, 0.1).unwrap();
    let config = retried(2, &[Code::Unavailable]).throttle(throttle.clone());
    let config = config.build().unwrap();
    let peer = always(Code::Unavailable);
    // Two failures each: 8, then 6 tokens are left.
    for tokens in [8.0, 6.0] {
        configured(&peer, &config).await.unwrap();
        assert_eq!(throttle.tokens(), tokens);
    }
    let answer = configured(&peer, &config).await.unwrap();
    assert_eq!(
        (peer.started(), not_resent(&answer)),
        (5, Some(NotResent::Throttled))
    );
    assert_eq!(throttle.tokens(), 5.0);
    // What succeeds pays in, what no retry could better does not count.
    configured(&always(Code::NotFound), &config).await.unwrap();
    configured(
        &crate::grpc::tests::cast::peer([Step::answer(ok())]),
        &config,
    )
    .await
    .unwrap();
    assert_eq!(throttle.tokens(), 5.1);
    configured(&peer, &config).await.unwrap();
    assert_eq!((peer.started(), throttle.tokens()), (6, 4.1));
}

/// A6-05, PB-04: a server's no counts, whatever its status, and what was never processed does not.
#[tokio::test(start_paused = true)]
async fn the_throttle_counts_a_servers_no_and_no_transparent_resend() {
    let throttle = mamparo_core::budget::Throttle::new(10, 0.1).unwrap();
    let config = retried(2, &[Code::Unavailable]).throttle(throttle.clone());
    let config = config.build().unwrap();
    let no = peer([Step::answer(pushed_back(Code::NotFound, &["-1"]))]);
    configured(&no, &config).await.unwrap();
    assert_eq!(throttle.tokens(), 9.0);
    let refused = peer([never_processed(), Step::answer(status(Code::NotFound))]);
    configured(&refused, &config).await.unwrap();
    assert_eq!((refused.started(), throttle.tokens()), (2, 9.0));
}

/// PB-02, PB-03, P-B13: exactly so long, and the next wait is the first again.
#[tokio::test(start_paused = true)]
async fn a_pushback_is_obeyed_to_the_millisecond_and_the_backoff_begins_anew() {
    for (pushback, exact) in [("0", 0), ("1000", 1_000), ("250", 250), ("007", 7)] {
        let peer = peer([
            Step::answer(status(Code::Unavailable)),
            Step::answer(status(Code::Unavailable)),
            Step::answer(pushed_back(Code::Unavailable, &[pushback])),
            Step::answer(status(Code::Unavailable)),
            Step::answer(ok()),
        ]);
        planned(&peer, 5, &[Code::Unavailable]).await.unwrap();
        let sends = sends(&peer);
        assert_eq!(sends[3] - sends[2], exact);
        assert!((80..=121).contains(&(sends[4] - sends[3])), "{sends:?}");
    }
}

/// PB-01, PB-04, PB-05, PB-07, A6-10, P-B13: a server's no.
#[tokio::test(start_paused = true)]
async fn a_pushback_that_is_negative_or_unreadable_ends_the_retries() {
    let two = ["100", "200"];
    for no in [
        &["-1"][..],
        &[""],
        &["abc"],
        &["xxx"],
        &["1.5"],
        &["5s"],
        &["+100"],
        &["2147483648"],
        &two,
    ] {
        let peer = peer([Step::answer(pushed_back(Code::Unavailable, no))]);
        let answer = planned(&peer, 4, &[Code::Unavailable]).await.unwrap();
        assert_eq!(peer.started(), 1, "{no:?}");
        assert_eq!(not_resent(&answer), Some(NotResent::Forbidden));
        assert!(answer.headers().contains_key("grpc-retry-pushback-ms"));
    }
}

/// PB-09, PB-10: it lengthens a wait, and makes no resend out of what is none.
#[tokio::test(start_paused = true)]
async fn a_pushback_allows_neither_another_attempt_nor_another_status() {
    let peers = |code| peer([]).otherwise(move || Step::answer(pushed_back(code, &["100"])));
    let exhausted = peers(Code::Unavailable);
    let answer = planned(&exhausted, 2, &[Code::Unavailable]).await.unwrap();
    assert_eq!(
        (exhausted.started(), not_resent(&answer)),
        (2, Some(NotResent::AttemptsExhausted))
    );
    let fatal = peers(Code::InvalidArgument);
    let answer = planned(&fatal, 2, &[Code::Unavailable]).await.unwrap();
    assert_eq!(
        (fatal.started(), not_resent(&answer)),
        (1, Some(NotResent::NotRetryable))
    );
}

/// Law 7, P-B11.
#[tokio::test(start_paused = true)]
async fn a_pushback_past_the_deadline_ends_the_call_at_once() {
    let peer = peer([Step::answer(pushed_back(Code::Unavailable, &["2000"]))]);
    let start = clock::now();
    let call = planned(&peer, 4, &[Code::Unavailable]);
    let answer = within(1_000 * MS, call).await.unwrap();
    assert_eq!(not_resent(&answer), Some(NotResent::DeadlineTooClose));
    assert_eq!(clock::now(), start);
}

/// TR-02: once, at once, as the same attempt; then by the policy.
#[tokio::test(start_paused = true)]
async fn what_was_never_processed_is_sent_once_more_as_the_same_attempt() {
    let peer = peer([
        never_processed(),
        Step::answer(status(Code::Unavailable)),
        Step::answer(ok()),
    ]);
    let answer = send(&peer).await.unwrap();
    assert_eq!(Ending::of(&answer).unwrap().attempts(), 2);
    let expected = [
        (1, Cause::Original),
        (1, Cause::Transparent),
        (2, Cause::Retry),
    ];
    assert_eq!(causes(&peer), expected);
    assert_eq!(sends(&peer)[1], 0, "without a wait");
    assert_eq!(previous_attempts(&peer), [None, None, Some("1".to_owned())]);
}

/// TR-02: it belongs to no policy.
#[tokio::test(start_paused = true)]
async fn a_transparent_resend_is_neither_an_attempt_nor_paid_for() {
    let budget = mamparo_core::Budget::builder().ratio(0.0).min_per_second(0);
    let policy = RetryPolicy::builder().budget(budget.build().unwrap());
    let layer = RetryLayer::grpc(policy.max_attempts(1).build().unwrap());
    let refused = peer([never_processed(), Step::answer(ok())]);
    let answer = layer
        .layer(refused.clone())
        .oneshot(request())
        .await
        .unwrap();
    assert!(Ending::of(&answer).is_none(), "there was one attempt");
    assert_eq!(refused.started(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_second_refusal_is_a_failure_like_others() {
    let peer = peer([
        never_processed(),
        never_processed(),
        never_processed(),
        Step::answer(ok()),
    ]);
    send(&peer).await.unwrap();
    let attempts: Vec<_> = causes(&peer)
        .into_iter()
        .map(|(attempt, _)| attempt)
        .collect();
    assert_eq!(attempts, [1, 1, 2, 3]);
    let sends = sends(&peer);
    assert!(sends[1] == 0 && sends[3] > sends[1], "{sends:?}");
}

/// TR-02 on a later attempt: its number and its token stay its own.
#[tokio::test(start_paused = true)]
async fn a_later_attempt_that_was_never_processed_keeps_its_number() {
    let peer = peer([
        Step::answer(status(Code::Unavailable)),
        never_processed(),
        Step::answer(ok()),
    ]);
    planned(&peer, 2, &[Code::Unavailable]).await.unwrap();
    let expected = [
        (1, Cause::Original),
        (2, Cause::Retry),
        (2, Cause::Transparent),
    ];
    assert_eq!(causes(&peer), expected);
    let one = || Some("1".to_owned());
    assert_eq!(previous_attempts(&peer), [None, one(), one()]);
}

/// TR-01, TR-03, TR-04: what can't be connected to, was cut, or was refused on our side is for the policy.
#[tokio::test(start_paused = true)]
async fn what_proves_nothing_or_would_fail_again_is_not_sent_again_transparently() {
    let connect = TransportError::new(Kind::Connect, Resend::Always, "refused");
    let unreachable = peer([Step::error(connect), Step::answer(ok())]);
    send(&unreachable).await.unwrap();
    assert_eq!(causes(&unreachable)[1], (2, Cause::Retry));
    let broken = peer([reset()]);
    send(&broken).await.unwrap_err();
    assert_eq!(broken.started(), 1);
    let reason = mamparo_core::Reason::BreakerOpen;
    let open = mamparo_core::Rejection::refused(reason, "catalog".into());
    let refused = peer([Step::error(open)]);
    send(&refused).await.unwrap_err();
    assert_eq!(refused.started(), 1);
}

/// TR-04: a written plan that lists UNAVAILABLE is for a broken connection too.
#[tokio::test(start_paused = true)]
async fn a_broken_connection_is_sent_again_where_a_plan_lists_unavailable() {
    let listed = peer([reset(), Step::answer(ok())]);
    planned(&listed, 2, &[Code::Unavailable]).await.unwrap();
    assert_eq!(listed.started(), 2);
    let unlisted = peer([reset()]);
    planned(&unlisted, 2, &[Code::Aborted]).await.unwrap_err();
    assert_eq!(unlisted.started(), 1);
}

/// A6-10, GS-06: a reset stream has a status like any other, and a plan is asked for that.
#[tokio::test(start_paused = true)]
async fn a_reset_is_sent_again_where_a_plan_lists_its_status_and_nowhere_else() {
    let reset_by = |code| {
        let error = TransportError::new(Kind::Reset, Resend::IfIdempotent, "reset");
        peer([Step::error(error.with_code(code)), Step::answer(ok())])
    };
    for code in [Code::Internal, Code::Cancelled, Code::ResourceExhausted] {
        let listed = reset_by(code);
        planned(&listed, 2, &[code]).await.unwrap();
        assert_eq!(listed.started(), 2, "{code}");
        for others in [&[Code::Unavailable], &[Code::Aborted]] {
            let unlisted = reset_by(code);
            planned(&unlisted, 2, others).await.unwrap_err();
            assert_eq!(unlisted.started(), 1, "{code} and {others:?}");
        }
        let without_a_plan = reset_by(code);
        send(&without_a_plan).await.unwrap_err();
        assert_eq!(without_a_plan.started(), 1, "{code}");
    }
}

/// TR-05, P-B2: a stream that has been read from is sent again from its first frame on.
#[tokio::test(start_paused = true)]
async fn a_streaming_request_is_sent_again_whole() {
    use http_body_util::BodyExt;
    let bodies = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = std::sync::Arc::clone(&bodies);
    let peer = tower::service_fn(move |request: Wire| {
        let seen = std::sync::Arc::clone(&seen);
        async move {
            let mut body = request.into_body();
            if seen.lock().unwrap().is_empty() {
                let first = body.frame().await.unwrap().unwrap();
                let first = first.into_data().unwrap();
                seen.lock().unwrap().push(first);
                return Err(TransportError::new(
                    Kind::Unavailable,
                    Resend::Always,
                    "refused",
                ));
            }
            let whole = body.collect().await.unwrap().to_bytes();
            seen.lock().unwrap().push(whole);
            Ok(ok())
        }
    });
    let frames = Frames::new()
        .data("one")
        .wait(10 * MS)
        .data("two")
        .wait(10 * MS)
        .data("three");
    let service = layer().layer(peer);
    service
        .oneshot(with_body(ScriptedBody::new(frames)))
        .await
        .unwrap();
    assert_eq!(*bodies.lock().unwrap(), ["one", "onetwothree"]);
}

/// Retried or hedged, never both; and what is to be sent once is.
#[tokio::test(start_paused = true)]
async fn a_method_that_is_hedged_or_sent_once_is_not_retried() {
    let hedged = hedged(3, MS, &[Code::Unavailable]).build().unwrap();
    let once = ServiceConfig::builder().all(MethodConfig::new().sent_once());
    for config in [hedged, once.build().unwrap()] {
        let peer = always(Code::Unavailable);
        configured(&peer, &config).await.unwrap();
        assert_eq!(peer.started(), 1);
    }
}

/// A6: "the operation will fail after that time regardless of how many attempts" (DL-02).
#[tokio::test(start_paused = true)]
async fn a_methods_timeout_bounds_its_attempts_and_waits() {
    let method = MethodConfig::new().within(200 * MS);
    let config = ServiceConfig::builder().all(method).build().unwrap();
    let peer = peer([]).otherwise(|| Step::answer(pushed_back(Code::Unavailable, &["150"])));
    let answer = configured(&peer, &config).await.unwrap();
    assert_eq!(
        (peer.started(), not_resent(&answer)),
        (2, Some(NotResent::DeadlineTooClose))
    );
}

/// A streaming request as a client of tonic's sends it: these messages, one every 10 ms.
fn streaming(messages: &'static [&'static str]) -> http::Request<tonic::body::Body> {
    let mut frames = Frames::new();
    for message in messages {
        frames = frames.wait(10 * MS).data(*message);
    }
    let body = tonic::body::Body::new(ScriptedBody::new(frames).without_hints());
    http::Request::post(format!("http://catalog{PATH}"))
        .body(body)
        .unwrap()
}

type Streamed = crate::replay::ReplayBody<tonic::body::Body>;

/// The first attempt reads so many frames, and is told to come again; the second reads all.
async fn reading(request: http::Request<Streamed>, frames: usize) -> Result<Answer, BoxError> {
    use http_body_util::BodyExt;
    let mut body = request.into_body();
    if mamparo_core::CallContext::current().attempt() == 1 {
        for _ in 0..frames {
            body.frame().await.unwrap()?;
        }
        return Ok(status(Code::Unavailable));
    }
    let mut seen = Vec::new();
    while let Some(frame) = body.frame().await {
        seen.extend(frame?.into_data().ok());
    }
    assert_eq!(seen, MESSAGES, "each frame as it was");
    Ok(ok())
}

const MESSAGES: &[&str] = &["one", "two", "three"];

/// P-B1, P-B2, P-B4 with tonic's bodies: as many frames as the first attempt reads, and what the second one gets.
#[tokio::test(start_paused = true)]
async fn a_stream_of_tonics_is_replayed_within_its_bound_and_sent_once_beyond_it() {
    for (kept, read, attempts) in [(11, 0, 2), (11, 1, 2), (11, 3, 2), (10, 1, 2), (10, 3, 1)] {
        let peer = tower::service_fn(move |request| reading(request, read));
        let policy = RetryPolicy::builder().max_body(kept).build().unwrap();
        let service = RetryLayer::grpc(policy).layer(peer);
        let answer = service.oneshot(streaming(MESSAGES)).await.unwrap();
        let ending = Ending::of(&answer).unwrap();
        assert_eq!(ending.attempts(), attempts, "{kept} kept, {read} read");
        let too_large = (attempts == 1).then_some(NotResent::BodyTooLarge);
        assert_eq!(ending.not_resent(), too_large);
    }
}
