//! A retry as its caller sees it: scripted services, paused time.

use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;

use http::{HeaderMap, Method, Request, Response, StatusCode};
use mamparo_core::budget::Budget;
use mamparo_core::http::Http;
use mamparo_core::{
    Backoff, BoxError, CallContext, Classify, Deadline, Event, InvalidSetting, Jitter, Kind,
    NotResent, Observer, Plain, Reason, Rejection, Resend, TransportError, Verdict, What, clock,
};
use mamparo_testkit::body::ScriptedBody;
use mamparo_testkit::service::{Script, Step, Strict, Tracked};
use tower::{Layer, Service, ServiceExt};

use super::config::MAX_ATTEMPTS;
use super::*;
use crate::replay::{ATTEMPT_HEADER, ReplayBody};

type Wire = Request<ReplayBody<ScriptedBody>>;
type Answer = Response<ScriptedBody>;
type Peer = Script<Wire, Answer, HeaderMap>;

fn policy() -> RetryBuilder {
    let backoff = Backoff::builder().jitter(Jitter::None).build().unwrap();
    RetryPolicy::builder().backoff(backoff)
}

fn retry() -> RetryLayer<Http> {
    RetryLayer::http(policy().build().unwrap()).dependency("catalog")
}

fn peer(steps: impl IntoIterator<Item = Step<Answer>>) -> Peer {
    Script::noting(|request: &Wire| request.headers().clone(), steps)
}

fn answer(status: u16) -> Answer {
    let body = ScriptedBody::new(format!("body of {status}"));
    Response::builder().status(status).body(body).unwrap()
}

fn with(status: u16, name: &'static str, value: &str) -> Answer {
    let mut answer = answer(status);
    answer.headers_mut().insert(name, value.parse().unwrap());
    answer
}

fn statuses(statuses: &[u16]) -> Peer {
    peer(statuses.iter().map(|status| Step::answer(answer(*status))))
}

fn request(method: Method) -> Request<ScriptedBody> {
    let body = ScriptedBody::empty();
    Request::builder()
        .method(method)
        .uri("http://catalog/")
        .body(body)
        .unwrap()
}

fn keyed(method: Method) -> Request<ScriptedBody> {
    let mut request = request(method);
    request
        .headers_mut()
        .insert("idempotency-key", "\"k\"".parse().unwrap());
    request
}

async fn send(peer: &Peer, request: Request<ScriptedBody>) -> Result<Answer, BoxError> {
    retry().layer(peer.clone()).oneshot(request).await
}

#[derive(Clone, Debug, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl Observer for Heard {
    fn on(&self, event: &Event<'_>) {
        let text = match event.what {
            What::ResendScheduled {
                next,
                reason,
                wait,
                hinted,
                ..
            } => {
                format!(
                    "resend {next} after {wait:?} for {} hinted {hinted}",
                    reason.as_str()
                )
            }
            What::NotResent { reason, .. } => format!("not resent: {}", reason.as_str()),
            What::OperationEnded {
                attempts, verdict, ..
            } => {
                format!("ended {} after {attempts}", verdict.as_str())
            }
            What::Nested {
                upstream_attempt, ..
            } => format!("nested {upstream_attempt}"),
            _ => return,
        };
        self.0.lock().unwrap().push(text);
    }
}

impl Heard {
    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

#[tokio::test(start_paused = true)]
async fn an_idempotent_request_is_sent_again_until_it_succeeds() {
    let peer = statuses(&[503, 503, 200]);
    let start = clock::now();
    let answer = send(&peer, request(Method::GET)).await.unwrap();
    assert_eq!((answer.status(), peer.started()), (StatusCode::OK, 3));
    assert_eq!(
        clock::now() - start,
        Duration::from_millis(300),
        "100 ms, then 200 ms"
    );
    let ending = Ending::of(&answer).unwrap();
    assert_eq!((ending.attempts(), ending.not_resent()), (3, None));
}

#[tokio::test(start_paused = true)]
async fn a_first_success_is_returned_as_it_is() {
    let peer = statuses(&[200]);
    let answer = send(&peer, request(Method::GET)).await.unwrap();
    assert!(Ending::of(&answer).is_none() && answer.extensions().is_empty());
}

/// Row C1, RM-03, RM-07: the write may have been applied.
#[tokio::test(start_paused = true)]
async fn an_unsafe_request_is_sent_once_and_marked_indeterminate() {
    let peer = statuses(&[503]);
    let answer = send(&peer, request(Method::POST)).await.unwrap();
    assert_eq!(
        (answer.status(), peer.started()),
        (StatusCode::SERVICE_UNAVAILABLE, 1)
    );
    let ending = Ending::of(&answer).unwrap();
    assert_eq!(ending.not_resent(), Some(NotResent::NotIdempotent));
    assert!(ending.is_indeterminate());
}

/// RM-08: a throttled request was not processed, so its outcome is known; it is still not sent again unasked.
#[tokio::test(start_paused = true)]
async fn an_unsafe_request_that_was_throttled_is_sent_once_and_not_indeterminate() {
    let peer = statuses(&[429]);
    let answer = send(&peer, request(Method::POST)).await.unwrap();
    assert_eq!(peer.started(), 1);
    assert!(!Ending::of(&answer).unwrap().is_indeterminate());
}

/// RM-04, P-B9.
#[tokio::test(start_paused = true)]
async fn a_keyed_request_is_sent_again_with_the_same_key() {
    let peer = statuses(&[503, 409, 200]);
    send(&peer, keyed(Method::POST)).await.unwrap();
    let keys: Vec<_> = peer
        .requests()
        .iter()
        .map(|h| h["idempotency-key"].clone())
        .collect();
    assert_eq!(keys, ["\"k\"", "\"k\"", "\"k\""]);
}

/// RM-11: without a key, a conflict is the request's own fault.
#[tokio::test(start_paused = true)]
async fn a_conflict_without_a_key_is_not_sent_again() {
    let peer = statuses(&[409]);
    let answer = send(&peer, request(Method::PUT)).await.unwrap();
    assert_eq!(
        Ending::of(&answer).unwrap().not_resent(),
        Some(NotResent::NotRetryable)
    );
}

/// RM-05, RM-06, P-B8: proof that nothing was processed.
#[tokio::test(start_paused = true)]
async fn an_unsafe_request_that_was_never_processed_is_sent_again() {
    let refused = TransportError::new(Kind::Connect, Resend::Always, "refused");
    let peer = peer([Step::error(refused), Step::answer(answer(200))]);
    let answer = send(&peer, request(Method::POST)).await.unwrap();
    assert_eq!((answer.status(), peer.started()), (StatusCode::OK, 2));
}

/// RM-01, RM-03, P-B8.
#[tokio::test(start_paused = true)]
async fn a_reset_is_sent_again_only_if_the_request_is_idempotent() {
    let reset = || {
        Step::error(TransportError::new(
            Kind::Reset,
            Resend::IfIdempotent,
            "reset",
        ))
    };
    let safe = peer([reset(), Step::answer(answer(200))]);
    assert!(send(&safe, request(Method::GET)).await.is_ok());
    let unsafe_peer = peer([reset()]);
    let error = send(&unsafe_peer, request(Method::POST)).await.unwrap_err();
    assert!(RetryError::of(&*error).unwrap().ending().is_indeterminate());
    assert_eq!(
        error.to_string(),
        "catalog: failed after 1 attempt, and may have taken effect: look before you send it again"
    );
}

/// Row C11, P-B12, law 8.
#[tokio::test(start_paused = true)]
async fn exhaustion_returns_the_last_real_response_marked() {
    let peer = peer(
        [503, 503]
            .map(|s| Step::answer(answer(s)))
            .into_iter()
            .chain([Step::answer(with(502, "x-why", "db"))]),
    );
    let answer = send(&peer, request(Method::GET)).await.unwrap();
    assert_eq!(
        (answer.status(), peer.started()),
        (StatusCode::BAD_GATEWAY, 3)
    );
    assert_eq!(answer.headers()["x-why"], "db");
    let ending = *Ending::of(&answer).unwrap();
    assert_eq!(ending.not_resent(), Some(NotResent::AttemptsExhausted));
    let body = http_body_util::BodyExt::collect(answer.into_body())
        .await
        .unwrap();
    assert_eq!(body.to_bytes(), "body of 502");
}

#[tokio::test(start_paused = true)]
async fn an_error_says_how_many_attempts_it_took() {
    let refused = || {
        Step::error(TransportError::new(
            Kind::Connect,
            Resend::Always,
            "refused",
        ))
    };
    let peer = peer([refused(), refused(), refused()]);
    let error = send(&peer, request(Method::GET)).await.unwrap_err();
    assert_eq!(error.to_string(), "catalog: failed after 3 attempts");
    assert_eq!(error.source().unwrap().to_string(), "could not connect");
}

/// RM-10 of the table: a second internal error is no accident.
#[tokio::test(start_paused = true)]
async fn an_internal_error_and_too_early_are_sent_again_once() {
    for (status, reason) in [(500, NotResent::OnceOnly), (425, NotResent::OnceOnly)] {
        let peer = statuses(&[status, status, 200]);
        let answer = send(&peer, request(Method::GET)).await.unwrap();
        assert_eq!((peer.started(), answer.status().as_u16()), (2, status));
        assert_eq!(Ending::of(&answer).unwrap().not_resent(), Some(reason));
    }
}

/// TE-V2: an intermediary forwards 425 to whoever sent the early data.
#[tokio::test(start_paused = true)]
async fn early_data_of_somebody_else_is_not_sent_again_on_425() {
    let peer = statuses(&[425]);
    let mut early = request(Method::GET);
    early
        .headers_mut()
        .insert("early-data", "1".parse().unwrap());
    assert_eq!(
        send(&peer, early).await.unwrap().status(),
        StatusCode::TOO_EARLY
    );
}

/// P-B10, RA-25, row C6: never earlier than told, and jitter only adds.
#[tokio::test(start_paused = true)]
async fn a_server_that_asks_for_a_wait_gets_at_least_that() {
    let peer = peer([
        Step::answer(with(503, "retry-after", "2")),
        Step::answer(answer(200)),
    ]);
    let start = clock::now();
    send(&peer, request(Method::GET)).await.unwrap();
    let waited = clock::now() - start;
    assert!(
        waited >= Duration::from_secs(2) && waited <= Duration::from_millis(2201),
        "{waited:?}"
    );
}

/// Row C5, RA-02: a wait of nothing is no reason to hammer.
#[tokio::test(start_paused = true)]
async fn a_hint_shorter_than_the_backoff_does_not_shorten_it() {
    for hint in ["0", "Sun, 06 Nov 1994 08:49:37 GMT", "-1", ""] {
        let peer = peer([
            Step::answer(with(503, "retry-after", hint)),
            Step::answer(answer(200)),
        ]);
        let start = clock::now();
        send(&peer, request(Method::GET)).await.unwrap();
        assert_eq!(clock::now() - start, Duration::from_millis(100), "{hint:?}");
    }
}

/// Row C3, RA-06: beyond what is accepted, the caller gets the response now.
#[tokio::test(start_paused = true)]
async fn a_wait_longer_than_accepted_ends_the_operation_at_once() {
    let peer = peer([Step::answer(with(503, "retry-after", "9999999999"))]);
    let start = clock::now();
    let answer = send(&peer, request(Method::GET)).await.unwrap();
    assert_eq!(clock::now(), start);
    assert_eq!(
        Ending::of(&answer).unwrap().not_resent(),
        Some(NotResent::HintTooLong)
    );
}

async fn within<T>(limit: Duration, call: impl Future<Output = T>) -> T {
    let deadline = Deadline::after(clock::now(), limit);
    let mut context = CallContext::current().with_deadline(deadline);
    let mut call = std::pin::pin!(call);
    std::future::poll_fn(|cx| context.enter(|| call.as_mut().poll(cx))).await
}

/// Rows C4 and P-B11, RA-22, law 7, DL-05.
#[tokio::test(start_paused = true)]
async fn a_wait_past_the_deadline_returns_the_response_at_once() {
    let peer = peer([Step::answer(with(429, "retry-after", "20"))]);
    let start = clock::now();
    let call = send(&peer, request(Method::GET));
    let answer = within(Duration::from_secs(5), call).await.unwrap();
    assert_eq!(
        (clock::now(), answer.status()),
        (start, StatusCode::TOO_MANY_REQUESTS)
    );
    assert_eq!(
        Ending::of(&answer).unwrap().not_resent(),
        Some(NotResent::DeadlineTooClose)
    );
}

/// Row C13: an attempt that can't finish is not begun.
#[tokio::test(start_paused = true)]
async fn no_attempt_begins_unless_its_wait_and_a_little_more_fit() {
    let peer = peer([Step::answer(answer(503)).after(Duration::from_millis(895))]);
    let call = send(&peer, request(Method::GET));
    let answer = within(Duration::from_secs(1), call).await.unwrap();
    assert_eq!((answer.status().as_u16(), peer.started()), (503, 1));
}

/// Row C15: a connection is not held through a wait.
#[tokio::test(start_paused = true)]
async fn a_response_that_gives_way_is_dropped_before_the_wait() {
    let failed = answer(503);
    let watch = failed.body().watch();
    let peer = peer([Step::answer(failed), Step::answer(answer(200))]);
    let start = clock::now();
    send(&peer, request(Method::GET)).await.unwrap();
    assert_eq!(watch.dropped_at(), Some(start));
}

/// Row C19.
#[tokio::test(start_paused = true)]
async fn a_caller_that_cancels_during_the_wait_is_let_go_and_gets_its_token_back() {
    let budget = Budget::default();
    let policy = policy().budget(budget.clone()).build().unwrap();
    let peer = statuses(&[503]);
    let call = RetryLayer::http(policy)
        .layer(peer.clone())
        .oneshot(request(Method::GET));
    let cut = tokio::time::timeout(Duration::from_millis(50), call).await;
    assert!(cut.is_err());
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!((peer.started(), budget.consumed()), (1, 0));
}

/// Rows T1, T3 and P-B15: readiness before every attempt, and none held through a wait.
#[tokio::test(start_paused = true)]
async fn every_attempt_is_ready_first_and_no_slot_is_held_through_a_wait() {
    let strict = Strict::with_slots(statuses(&[503, 200, 200]), 1);
    let first = retry().layer(strict.clone()).oneshot(request(Method::GET));
    let first = tokio::spawn(first);
    tokio::time::sleep(Duration::from_millis(50)).await;
    let second = retry().layer(strict.clone()).oneshot(request(Method::GET));
    let second = tokio::time::timeout(Duration::from_millis(10), second).await;
    assert!(
        second.unwrap().is_ok(),
        "another caller makes progress meanwhile"
    );
    assert!(first.await.unwrap().is_ok());
    assert_eq!(strict.ready_slots(), 0);
}

/// P-B18: what we refused ourselves is not the peer's failure.
#[tokio::test(start_paused = true)]
async fn a_local_rejection_is_not_sent_again() {
    let rejection = Rejection::refused(Reason::DeadlineExceeded, "catalog".into());
    let peer = peer([Step::error(rejection)]);
    let error = send(&peer, request(Method::GET)).await.unwrap_err();
    assert_eq!(peer.started(), 1);
    assert!(RetryError::of(&*error).is_none() && Rejection::of(&*error).is_some());
}

/// Law 8: the rejection of a resend still tells what the peer said last.
#[tokio::test(start_paused = true)]
async fn a_resend_that_is_refused_locally_carries_the_last_responses_head() {
    let rejection = Rejection::refused(Reason::DeadlineExceeded, "catalog".into());
    let peer = peer([
        Step::answer(with(503, "x-why", "busy")),
        Step::error(rejection),
    ]);
    let error = send(&peer, request(Method::GET)).await.unwrap_err();
    let head = Rejection::of(&*error).unwrap().last_response().unwrap();
    assert_eq!(
        (head.status.as_u16(), &head.headers["x-why"]),
        (503, &"busy".parse().unwrap())
    );
}

/// Row D9: the attempt's own timeout is worth another attempt.
#[tokio::test(start_paused = true)]
async fn an_attempt_timeout_is_sent_again_and_a_deadline_is_not() {
    let cut = |reason| Step::error(Rejection::cut(reason, "catalog".into()));
    let attempt = peer([cut(Reason::AttemptTimedOut), Step::answer(answer(200))]);
    assert!(send(&attempt, request(Method::GET)).await.is_ok());
    let deadline = peer([cut(Reason::DeadlineExceeded)]);
    assert!(send(&deadline, request(Method::GET)).await.is_err());
    assert_eq!(deadline.started(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_says_its_attempts_are_exhausted_is_obeyed() {
    let peer = peer([Step::answer(with(503, "x-mamparo-retry", "exhausted"))]);
    let answer = send(&peer, request(Method::GET)).await.unwrap();
    assert_eq!(
        Ending::of(&answer).unwrap().not_resent(),
        Some(NotResent::Forbidden)
    );
}

#[tokio::test(start_paused = true)]
async fn a_resend_carries_its_number_and_the_original_none() {
    let peer = statuses(&[503, 503, 200]);
    send(&peer, request(Method::GET)).await.unwrap();
    let numbers: Vec<_> = peer
        .requests()
        .iter()
        .map(|h| h.get(ATTEMPT_HEADER).cloned())
        .collect();
    assert_eq!(
        numbers,
        [None, Some("2".parse().unwrap()), Some("3".parse().unwrap())]
    );
}

#[tokio::test(start_paused = true)]
async fn an_empty_budget_returns_the_failure_and_says_so() {
    let budget = Budget::builder()
        .ratio(0.0)
        .min_per_second(1)
        .build()
        .unwrap();
    let heard = Heard::default();
    let policy = policy().budget(budget.clone()).build().unwrap();
    let layer = RetryLayer::http(policy).observer(Arc::new(heard.clone()));
    let peer = statuses(&[503, 503]);
    let answer = layer
        .layer(peer)
        .oneshot(request(Method::GET))
        .await
        .unwrap();
    assert_eq!(
        Ending::of(&answer).unwrap().not_resent(),
        Some(NotResent::BudgetExhausted)
    );
    assert_eq!(budget.consumed(), 1);
    assert_eq!(
        heard.all(),
        [
            "resend 2 after 100ms for unavailable hinted false",
            "not resent: budget_exhausted",
            "ended unavailable after 2",
        ]
    );
}

fn counting(nested: Nested) -> impl Fn(&'static str) -> RetryLayer<Plain> {
    let policy = policy().max_attempts(4).nested(nested).build().unwrap();
    move |name| RetryLayer::new(policy.clone(), Plain::idempotent()).dependency(name)
}

async fn sends_of_three(nested: Nested) -> usize {
    let peer = Script::<u32, u32>::new([]).otherwise(|| Step::error("no"));
    let layer = counting(nested);
    let stack = (layer("a"), layer("b"), layer("c")).layer(peer.clone());
    assert!(stack.oneshot(1).await.is_err());
    peer.started()
}

/// The articles' 64 requests out of three times four attempts.
#[tokio::test(start_paused = true)]
async fn three_retries_around_each_other_send_four_times_and_not_sixty_four() {
    assert_eq!(sends_of_three(Nested::Inherit).await, 4);
    assert_eq!(sends_of_three(Nested::Single).await, 4);
    assert_eq!(sends_of_three(Nested::Multiply).await, 64);
}

/// Row J9: a retry around another is told, not guessed.
#[tokio::test(start_paused = true)]
async fn a_nested_retry_says_so() {
    let heard = Heard::default();
    let inner = counting(Nested::Inherit)("b").observer(Arc::new(heard.clone()));
    let peer = Script::<u32, u32>::new([Step::answer(1)]);
    (counting(Nested::Inherit)("a"), inner)
        .layer(peer)
        .oneshot(1)
        .await
        .unwrap();
    assert_eq!(heard.all(), ["nested 0", "ended success after 1"]);
}

/// The peers' row "clone of the request on the last attempt and with `max_attempts` 1".
#[tokio::test(start_paused = true)]
async fn a_request_is_not_copied_when_no_resend_can_follow() {
    struct Counted(Arc<Mutex<u32>>);
    impl Clone for Counted {
        fn clone(&self) -> Self {
            *self.0.lock().unwrap() += 1;
            Self(Arc::clone(&self.0))
        }
    }
    for (attempts, copies) in [(1, 0), (3, 2)] {
        let policy = policy().max_attempts(attempts).build().unwrap();
        let count = Arc::default();
        let peer = Script::<Counted, u32, ()>::noting(|_| (), []).otherwise(|| Step::error("no"));
        let call = RetryLayer::new(policy, Plain::idempotent()).layer(peer);
        assert!(call.oneshot(Counted(Arc::clone(&count))).await.is_err());
        assert_eq!(*count.lock().unwrap(), copies, "{attempts} attempts");
    }
}

#[tokio::test(start_paused = true)]
async fn a_plain_request_that_is_not_idempotent_is_sent_again_only_with_proof() {
    let send = |peer: Script<u32, u32>| {
        let layer = RetryLayer::new(policy().build().unwrap(), Plain::not_idempotent());
        layer.layer(peer).oneshot(1)
    };
    assert!(send(Script::new([Step::error("no")])).await.is_err());
    let refused = TransportError::new(Kind::Connect, Resend::Always, "refused");
    assert_eq!(
        send(Script::new([Step::error(refused), Step::answer(7)]))
            .await
            .unwrap(),
        7
    );
}

#[tokio::test(start_paused = true)]
async fn a_readiness_error_ends_the_call() {
    let mut service = retry().layer(mamparo_testkit::service::FailsReadiness::<Answer>::new(
        "gone",
    ));
    let error =
        std::future::poll_fn(|cx| Service::<Request<ScriptedBody>>::poll_ready(&mut service, cx));
    assert!(error.await.is_err());
}

/// Row C14: what was consumed is replayed exactly, or not at all.
#[tokio::test(start_paused = true)]
async fn a_body_too_large_to_keep_is_sent_once_and_its_response_returned() {
    let policy = policy().max_body(3).build().unwrap();
    let peer = statuses(&[503]);
    let request = Request::put("http://catalog/")
        .body(ScriptedBody::new("four"))
        .unwrap();
    let answer = RetryLayer::http(policy)
        .layer(peer)
        .oneshot(request)
        .await
        .unwrap();
    assert_eq!(
        Ending::of(&answer).unwrap().not_resent(),
        Some(NotResent::BodyTooLarge)
    );
}

/// Rows C20 and J11: the error names the setting and the value.
#[test]
fn no_attempts_at_all_are_refused_when_the_policy_is_built() {
    let refused =
        |attempts| -> InvalidSetting { policy().max_attempts(attempts).build().unwrap_err() };
    assert_eq!(
        refused(0).to_string(),
        "max_attempts = 0 is refused: must be from 1 to 100: the original counts, so 1 means no resend"
    );
    assert_eq!(refused(MAX_ATTEMPTS + 1).setting(), "max_attempts");
}

#[tokio::test(start_paused = true)]
async fn the_request_is_dropped_with_its_last_attempt() {
    let (value, watch) = Tracked::new(());
    let value = Arc::new(value);
    let peer = Script::<Arc<Tracked<()>>, u32, ()>::noting(|_| (), [Step::answer(1)]);
    let call = RetryLayer::new(policy().build().unwrap(), Plain::idempotent()).layer(peer);
    call.oneshot(value).await.unwrap();
    assert!(watch.is_dropped());
}

/// Law 8: also an error that is no rejection of ours still tells what the peer said last, and that nothing more was sent.
#[tokio::test(start_paused = true)]
async fn a_service_that_breaks_before_the_resend_ends_the_operation_and_keeps_the_last_responses_head()
 {
    let heard = Heard::default();
    let door = mamparo_testkit::service::Door::opened();
    let budget = Budget::default();
    let policy = policy().budget(budget.clone()).build().unwrap();
    let layer = RetryLayer::http(policy).observer(Arc::new(heard.clone()));
    let peer = peer([Step::answer(with(503, "x-why", "busy"))]);
    let call = tokio::spawn(layer.layer(door.before(peer)).oneshot(request(Method::GET)));
    tokio::time::sleep(Duration::from_millis(50)).await;
    door.fail("gone");
    let error = call.await.unwrap().unwrap_err();
    let retry = RetryError::of(&*error).unwrap();
    assert_eq!(retry.ending().attempts(), 1);
    assert_eq!(retry.last_response().unwrap().headers["x-why"], "busy");
    assert_eq!(heard.all().last().unwrap(), "ended unavailable after 1");
    assert_eq!(budget.consumed(), 0);
}

/// Law 8: what failed in between was no response.
#[tokio::test(start_paused = true)]
async fn the_last_real_response_is_remembered_over_an_error_that_follows_it() {
    let reset = TransportError::new(Kind::Reset, Resend::IfIdempotent, "reset");
    let rejection = Rejection::refused(Reason::DeadlineExceeded, "catalog".into());
    let peer = peer([
        Step::answer(with(503, "x-why", "busy")),
        Step::error(reset),
        Step::error(rejection),
    ]);
    let error = send(&peer, request(Method::GET)).await.unwrap_err();
    let head = Rejection::of(&*error).unwrap().last_response().unwrap();
    assert_eq!(head.headers["x-why"], "busy");
}

/// RFC 8470 §5.2: a server answers 425 because it did not process the request.
#[tokio::test(start_paused = true)]
async fn an_unsafe_request_that_was_too_early_has_not_taken_effect() {
    let peer = statuses(&[425, 425]);
    let answer = send(&peer, request(Method::POST)).await.unwrap();
    assert_eq!(peer.started(), 2);
    assert!(!Ending::of(&answer).unwrap().is_indeterminate());
}

/// The table allows each of them one resend.
#[tokio::test(start_paused = true)]
async fn a_resend_after_too_early_does_not_use_up_that_of_an_internal_error() {
    let peer = statuses(&[425, 500, 200]);
    let answer = send(&peer, request(Method::GET)).await.unwrap();
    assert_eq!((peer.started(), answer.status().as_u16()), (3, 200));
}

#[tokio::test(start_paused = true)]
async fn the_longest_hint_does_not_overflow() {
    let endless = Classify::<u32>::refine(Plain::idempotent(), |_: Result<&u32, &BoxError>, _| {
        Verdict::failure(Kind::Throttled, Resend::Always).after(Duration::MAX)
    });
    let policy = policy().max_hint(Duration::MAX).build().unwrap();
    let layer = RetryLayer::new(policy, endless);
    let call = layer
        .layer(Script::<u32, u32>::new([Step::answer(1)]))
        .oneshot(1);
    let waits = tokio::time::timeout(Duration::from_secs(86_400), call).await;
    assert!(waits.is_err());
}

/// DH-09: the number that our own caller sent is not that of our request.
#[tokio::test(start_paused = true)]
async fn a_number_that_came_with_the_request_is_not_sent_on() {
    let peer = statuses(&[200]);
    let mut forwarded = request(Method::GET);
    forwarded
        .headers_mut()
        .insert(ATTEMPT_HEADER, "7".parse().unwrap());
    send(&peer, forwarded).await.unwrap();
    assert!(!peer.requests()[0].contains_key(ATTEMPT_HEADER));
}

#[tokio::test(start_paused = true)]
async fn a_request_with_as_many_headers_as_there_can_be_is_sent_again_without_a_number() {
    let peer = statuses(&[503, 200]);
    let mut full = request(Method::GET);
    for n in 0.. {
        let name = http::HeaderName::try_from(format!("x-{n}")).unwrap();
        if full
            .headers_mut()
            .try_insert(name, "1".parse().unwrap())
            .is_err()
        {
            break;
        }
    }
    assert_eq!(send(&peer, full).await.unwrap().status(), StatusCode::OK);
}

/// Row D8, P-A3: woken too late, as on a busy machine.
#[tokio::test(start_paused = true)]
async fn a_resend_whose_deadline_passed_meanwhile_is_not_sent_and_its_token_goes_back() {
    let budget = Budget::default();
    let policy = policy().budget(budget.clone()).build().unwrap();
    let peer = peer([Step::answer(with(503, "x-why", "busy"))]);
    let call = RetryLayer::http(policy)
        .layer(peer.clone())
        .oneshot(request(Method::GET));
    let mut call = std::pin::pin!(within(Duration::from_secs(1), call));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(call.as_mut().poll(&mut cx).is_pending());
    tokio::time::advance(Duration::from_secs(2)).await;
    let error = call.await.unwrap_err();
    let rejection = Rejection::of(&*error).unwrap();
    assert!(rejection.is_deadline_exceeded() && !rejection.sent());
    assert_eq!(rejection.last_response().unwrap().headers["x-why"], "busy");
    assert_eq!((peer.started(), budget.consumed()), (1, 0));
}

/// What was refused inside, such as by a limit of its own, was not sent.
#[tokio::test(start_paused = true)]
async fn a_resend_that_is_refused_locally_gives_its_token_back() {
    let budget = Budget::builder()
        .ratio(0.0)
        .min_per_second(1)
        .build()
        .unwrap();
    let policy = policy().budget(budget.clone()).build().unwrap();
    let rejection = Rejection::refused(Reason::AttemptTimedOut, "catalog".into());
    let peer = peer([Step::answer(answer(503)), Step::error(rejection)]);
    let call = RetryLayer::http(policy)
        .layer(peer)
        .oneshot(request(Method::GET));
    assert!(call.await.is_err());
    assert_eq!(budget.consumed(), 0);
    assert!(budget.withdraw(clock::now(), None, 0).is_ok());
}

#[tokio::test(start_paused = true)]
async fn an_error_says_why_it_was_not_sent_again() {
    let budget = Budget::builder()
        .ratio(0.0)
        .min_per_second(0)
        .build()
        .unwrap();
    let policy = policy().budget(budget).build().unwrap();
    let refused = TransportError::new(Kind::Connect, Resend::Always, "refused");
    let layer = RetryLayer::http(policy).dependency("catalog");
    let call = layer
        .layer(peer([Step::error(refused)]))
        .oneshot(request(Method::GET));
    assert_eq!(
        call.await.unwrap_err().to_string(),
        "catalog: failed after 1 attempt, and was not sent again: the budget for resends is spent"
    );
}

#[test]
fn an_attempt_that_needs_no_time_is_refused_when_the_policy_is_built() {
    let error = policy().min_attempt_time(Duration::ZERO).build();
    assert_eq!(error.unwrap_err().setting(), "min_attempt_time");
}

/// A middleware between the retry and the dependency may call another one, before or after: that no connection was made
/// there proves nothing here.
#[tokio::test(start_paused = true)]
async fn proof_of_another_dependency_is_no_reason_to_send_an_unsafe_request_again() {
    let refused = || {
        Step::error(TransportError::new(
            Kind::Connect,
            Resend::Always,
            "refused",
        ))
    };
    let ledger = retry()
        .dependency("ledger")
        .layer(peer([]).otherwise(refused));
    let psp = statuses(&[200, 200, 200]);
    let booked = tower::service_fn(|request: Wire| {
        let (psp, ledger) = (psp.clone(), ledger.clone());
        async move {
            let answer = psp.oneshot(request).await?;
            ledger.oneshot(self::request(Method::POST)).await?;
            Ok::<_, BoxError>(answer)
        }
    });
    let layer = retry().dependency("psp");
    let error = layer.layer(booked).oneshot(request(Method::POST)).await;
    let ending = RetryError::of(&*error.unwrap_err()).unwrap().ending();
    assert_eq!((psp.started(), ending.is_indeterminate()), (1, true));
}

/// A redirect that is followed between the retry and the transport: that its second hop was refused says nothing of its
/// first, which may have been answered 303 because the request took effect.
#[tokio::test(start_paused = true)]
async fn proof_about_the_last_of_several_sends_is_none_about_the_first() {
    let peer = peer([Step::answer(answer(200)), Step::answer(answer(200))]);
    let followed = tower::service_fn(|request: Wire| {
        let peer = peer.clone();
        async move {
            CallContext::count_send("catalog".into());
            peer.oneshot(request).await?;
            CallContext::count_send("catalog".into());
            let refused = TransportError::new(Kind::Connect, Resend::Always, "refused");
            Err::<Answer, BoxError>(refused.into())
        }
    });
    let error = retry().layer(followed).oneshot(request(Method::POST)).await;
    let ending = RetryError::of(&*error.unwrap_err()).unwrap().ending();
    assert_eq!((peer.started(), ending.is_indeterminate()), (1, true));
}
