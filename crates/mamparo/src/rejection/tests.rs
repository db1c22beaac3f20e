//! What clients of a server see of its errors.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, Method, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use mamparo_core::http::QuotaPolicy;
use mamparo_core::{
    BoxError, Dependency, Ending, Event, Kind, NotResent, Observer, Reason, Rejection, Resend,
    RetryError, TransportError, What,
};
use mamparo_testkit::body::{BodyWatch, Frames, ScriptedBody};
use mamparo_testkit::service::{Door, Script, Step};
use tower::{Layer, Service, ServiceExt};

use super::answer::{Form, write};
use super::grpc;
use super::*;
use crate::problem::{Problem, ProblemType, tell};

type Question = Request<ScriptedBody>;
type Answer = Response<ScriptedBody>;
type Answered = Response<RejectionBody<ScriptedBody>>;

fn rejection(reason: Reason) -> BoxError {
    Rejection::cut(reason, "the-psp".into()).into()
}

/// The server's own.
fn own(reason: Reason) -> Rejection {
    Rejection::refused(reason, Dependency::UNNAMED)
}

fn failed(not_resent: NotResent) -> BoxError {
    let ending = Ending::new(3, Some(not_resent), false);
    RetryError::new(Dependency::named("psp"), ending, None, "reset".into()).into()
}

fn unreachable() -> BoxError {
    let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
    TransportError::new(Kind::Connect, Resend::Always, refused).into()
}

fn request() -> Question {
    Request::new(ScriptedBody::empty())
}

fn typed(content_type: &str) -> Question {
    let mut request = request();
    let value = content_type.parse().unwrap();
    request.headers_mut().insert("content-type", value);
    request
}

async fn answered(error: impl Into<BoxError>, request: Question) -> Answered {
    let inner: Script<Question, Answer, ()> = Script::noting(|_| (), [Step::error(error)]);
    let service = RejectionLayer::new(exact()).layer(inner);
    service.oneshot(request).await.unwrap()
}

/// Tells a wait as it is.
fn exact() -> RejectionPolicy {
    let policy = RejectionPolicy::builder().retry_after_jitter(0.0);
    policy.build().unwrap()
}

fn told_of(error: &BoxError) -> Problem {
    tell(&**error, StatusCode::GATEWAY_TIMEOUT)
}

async fn text(answer: Answered) -> String {
    let whole = answer.into_body().collect().await.unwrap();
    String::from_utf8(whole.to_bytes().into()).unwrap()
}

fn header<'a, B>(answer: &'a Response<B>, name: &str) -> Option<&'a str> {
    answer.headers().get(name)?.to_str().ok()
}

/// Row P-A6, for HTTP.
#[tokio::test]
async fn each_error_becomes_the_status_that_says_whose_fault_it_is() {
    let of_reason = [
        (Reason::DeadlineExceeded, 503),
        (Reason::AttemptTimedOut, 503),
        (Reason::ConnectTimedOut, 503),
        (Reason::BodyIdle, 503),
        (Reason::BreakerOpen, 503),
        (Reason::MalformedDeadline, 400),
    ];
    for (reason, status) in of_reason {
        let answer = answered(rejection(reason), request()).await;
        assert_eq!(answer.status(), status, "{reason:?}");
        let again = (status == 503).then_some("1");
        assert_eq!(header(&answer, "retry-after"), again, "{reason:?}");
        let problem = text(answer).await;
        let named = problem.contains(r#""dependency":"the-psp""#);
        assert!(named, "{problem}");
    }
    let transport = |kind| -> BoxError { TransportError::new(kind, Resend::Never, "?").into() };
    let others: [(BoxError, u16); 9] = [
        (failed(NotResent::NotIdempotent), 502),
        (unreachable(), 503),
        (transport(Kind::Timeout), 503),
        (transport(Kind::Throttled), 503),
        (transport(Kind::Reset), 502),
        (transport(Kind::Server), 502),
        (own(Reason::DeadlineExceeded).into(), 504),
        (io::Error::other(own(Reason::DeadlineExceeded)).into(), 504),
        ("a bug".into(), 500),
    ];
    for (error, status) in others {
        let shown = error.to_string();
        let answer = answered(error, request()).await;
        assert_eq!(answer.status(), status, "{shown}");
    }
}

/// Row P-A6, for gRPC; `GS-07`, `ST-05`.
#[tokio::test]
async fn grpc_gets_its_own_status_in_a_trailers_only_response() {
    let errors: [(BoxError, &str); 6] = [
        (rejection(Reason::DeadlineExceeded), "4"),
        (rejection(Reason::AttemptTimedOut), "4"),
        (rejection(Reason::ConnectTimedOut), "14"),
        (failed(NotResent::AttemptsExhausted), "14"),
        (rejection(Reason::MalformedDeadline), "13"),
        ("a bug".into(), "13"),
    ];
    for (error, status) in errors {
        let answer = answered(error, typed("application/grpc+proto")).await;
        assert_eq!(answer.status(), 200);
        assert_eq!(header(&answer, "grpc-status"), Some(status));
        assert_eq!(header(&answer, "content-type"), Some("application/grpc"));
        assert!(header(&answer, "grpc-message").is_some());
        assert!(answer.body().is_end_stream());
        assert_eq!(text(answer).await, "");
    }
}

/// `GS-07`.
#[test]
fn grpc_is_told_by_its_content_type_and_grpc_web_is_not_grpc() {
    for grpc in [
        "application/grpc",
        "application/grpc+json",
        "Application/gRPC;x=1",
    ] {
        assert_eq!(Form::of(&typed(grpc)), Form::Grpc, "{grpc}");
    }
    for other in [
        "application/grpc-web",
        "application/grpc-web+proto",
        "application/grpcx",
        "application/json",
        "application",
    ] {
        assert_eq!(Form::of(&typed(other)), Form::Problem, "{other}");
    }
    assert_eq!(Form::of(&request()), Form::Problem);
}

/// `PD-V5`.
#[tokio::test]
async fn a_problem_says_its_own_status_and_nothing_of_the_inside() {
    let answer = answered(failed(NotResent::NotRetryable), request()).await;
    let length = answer.body().size_hint().exact();
    assert_eq!(
        header(&answer, "content-type"),
        Some("application/problem+json")
    );
    let problem = text(answer).await;
    assert_eq!(
        problem,
        concat!(
            r#"{"type":"urn:mamparo:problem:dependency-failed","#,
            r#""title":"Dependency Failed","status":502,"detail":"a service behind this one failed","dependency":"psp"}"#,
        )
    );
    assert_eq!(length, Some(problem.len() as u64));
}

/// `PD-V8`, `GS-04`: the words are ours, and need neither JSON's escapes nor percent-encoding.
#[test]
fn what_is_told_needs_no_escape_and_tells_no_error_text() {
    let policy = RejectionPolicy::default();
    let hostile: BoxError = "\"}\r\n%secret\u{1f4a5}".into();
    let mut errors = vec![hostile, failed(NotResent::NotIdempotent), unreachable()];
    let reasons = [
        Reason::DeadlineExceeded,
        Reason::AttemptTimedOut,
        Reason::ConnectTimedOut,
        Reason::BodyIdle,
        Reason::MalformedDeadline,
        Reason::BreakerOpen,
        Reason::BulkheadFull,
        Reason::RateLimited,
        Reason::AboveBurst,
        Reason::Overloaded,
    ];
    errors.extend(reasons.map(rejection));
    for error in errors {
        let told = told_of(&error);
        let plain = |c: char| c == ' ' || c.is_ascii_alphabetic() || c == ',';
        assert!(told.detail().chars().all(plain), "{}", told.detail());
        let problem = write(&policy, &told).into_body();
        assert!(!problem.contains("secret"), "{problem}");
        let trailers = grpc::trailers(&policy, &told, &*error);
        assert_eq!(trailers["grpc-message"], told.detail());
    }
}

/// `PD-V1`, `PD-V2`, `PD-V4`: what is refused for want of capacity says when to come back, to HTTP and to gRPC (`ST-05`).
#[tokio::test]
async fn a_refusal_says_of_what_kind_it_is_and_when_to_come_back() {
    let named = |reason| Rejection::refused(reason, "the-psp".into());
    let reduced = "#temporary-reduced-capacity";
    let unavailable = ":dependency-unavailable";
    let wait = |rejection: Rejection| rejection.with_retry_after(Duration::from_millis(2_500));
    let told = [
        (
            named(Reason::BreakerOpen),
            503,
            "14",
            unavailable,
            Some("1"),
        ),
        (
            wait(named(Reason::BreakerOpen)),
            503,
            "14",
            unavailable,
            Some("3"),
        ),
        (
            named(Reason::BulkheadFull),
            503,
            "8",
            unavailable,
            Some("1"),
        ),
        (named(Reason::RateLimited), 503, "8", unavailable, Some("1")),
        (own(Reason::BulkheadFull), 503, "8", reduced, Some("1")),
        (own(Reason::Overloaded), 503, "14", reduced, Some("1")),
        (
            own(Reason::RateLimited),
            429,
            "8",
            "#quota-exceeded",
            Some("1"),
        ),
        (
            wait(own(Reason::RateLimited)),
            429,
            "8",
            "#quota-exceeded",
            Some("3"),
        ),
        (named(Reason::AboveBurst), 413, "8", "about:blank", None),
    ];
    for (rejection, status, grpc_status, kind, retry_after) in told {
        let grpc = answered(rejection.clone(), typed("application/grpc")).await;
        assert_eq!(
            header(&grpc, "grpc-status"),
            Some(grpc_status),
            "{rejection}"
        );
        assert_eq!(header(&grpc, "retry-after"), None, "{rejection}");
        let answer = answered(rejection.clone(), request()).await;
        assert_eq!(answer.status(), status, "{rejection}");
        assert_eq!(header(&answer, "retry-after"), retry_after, "{rejection}");
        let problem = text(answer).await;
        assert!(
            problem.contains(&format!(r#"{kind}","title""#)),
            "{problem}"
        );
        assert_eq!(
            problem.contains("violated-policies"),
            kind == reduced || kind == "#quota-exceeded",
            "{problem}"
        );
    }
}

/// `PD-V7`.
#[tokio::test]
async fn head_gets_the_headers_only() {
    let mut head = request();
    *head.method_mut() = Method::HEAD;
    let answer = answered(rejection(Reason::DeadlineExceeded), head).await;
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(
        header(&answer, "content-type"),
        Some("application/problem+json")
    );
    assert_eq!(text(answer).await, "");
}

#[tokio::test]
async fn the_wait_that_a_rejection_knows_is_told_rounded_up() {
    for (wait, told) in [(0, "0"), (1, "1"), (2_000, "2"), (2_001, "3")] {
        let rejection = Rejection::refused(Reason::DeadlineExceeded, Dependency::UNNAMED);
        let rejection = rejection.with_retry_after(Duration::from_millis(wait));
        let answer = answered(rejection, request()).await;
        assert_eq!(header(&answer, "retry-after"), Some(told), "{wait} ms");
    }
    let answer = answered(own(Reason::DeadlineExceeded), request()).await;
    assert_eq!(header(&answer, "retry-after"), None);
    let endless = Rejection::refused(Reason::Overloaded, Dependency::UNNAMED);
    let answer = answered(endless.with_retry_after(Duration::MAX), request()).await;
    let told = u64::MAX.to_string();
    assert_eq!(header(&answer, "retry-after"), Some(&*told));
}

#[tokio::test]
async fn spent_attempts_are_told_so_that_the_caller_does_not_multiply_them() {
    let exhausted = NotResent::AttemptsExhausted;
    let told = async |error, request| {
        let answer = answered(error, request).await;
        header(&answer, "x-mamparo-retry").map(str::to_owned)
    };
    let marked = Some("exhausted".to_owned());
    assert_eq!(told(failed(exhausted), request()).await, marked);
    let once = failed(NotResent::NotIdempotent);
    assert_eq!(told(once, request()).await, None);
    assert_eq!(told("a bug".into(), request()).await, None);
    // Whose retry is off, or leaves resends to others, has not spent any: its caller is the one that may resend.
    let ending = Ending::new(1, Some(exhausted), false);
    let off = RetryError::new(Dependency::named("psp"), ending, None, "reset".into());
    assert_eq!(told(off.into(), request()).await, None);

    let named = HeaderName::from_static("x-spent");
    for (setting, name) in [(Some(named), Some("x-spent")), (None, None)] {
        let policy = RejectionPolicy::builder().exhausted_header(setting);
        let answer = policy.build().unwrap().answer(&*failed(exhausted));
        assert_eq!(answer.headers().len(), 1 + usize::from(name.is_some()));
        assert!(name.is_none_or(|name| header(&answer, name) == Some("exhausted")));
    }
}

#[tokio::test]
async fn a_response_handed_on_from_spent_attempts_is_marked_and_any_other_left_alone() {
    for (reason, marked) in [
        (Some(NotResent::AttemptsExhausted), true),
        (Some(NotResent::NotIdempotent), false),
        (None, false),
    ] {
        let frames = Frames::new().data("of the dependency").trailer("a", "b");
        let mut response = Response::new(ScriptedBody::new(frames));
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        let ending = Ending::new(3, reason, false);
        response.extensions_mut().insert(ending);
        let inner: Script<Question, Answer, ()> = Script::noting(|_| (), [Step::answer(response)]);
        let service = RejectionLayer::default().layer(inner);
        let answer = service.oneshot(request()).await.unwrap();
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(header(&answer, "x-mamparo-retry").is_some(), marked);
        assert_eq!(answer.body().size_hint().exact(), Some(17));
        let whole = answer.into_body().collect().await.unwrap();
        assert_eq!(whole.trailers().unwrap()["a"], "b");
        assert_eq!(whole.to_bytes(), "of the dependency");
    }
}

#[test]
fn the_status_of_a_timeout_is_a_setting_and_must_be_an_errors() {
    let policy = RejectionPolicy::builder().timeout_status(StatusCode::REQUEST_TIMEOUT);
    let answer = policy
        .build()
        .unwrap()
        .answer(&own(Reason::DeadlineExceeded));
    assert_eq!(answer.status(), 408);
    assert!(
        answer
            .body()
            .contains(r#""title":"Request Timeout","status":408"#)
    );

    let unnamed = StatusCode::from_u16(498).unwrap();
    let policy = RejectionPolicy::builder().timeout_status(unnamed);
    let answer = policy
        .build()
        .unwrap()
        .answer(&own(Reason::DeadlineExceeded));
    assert!(answer.body().contains(r#""title":"Error","status":498"#));

    for status in [100, 204, 302, 600] {
        let status = StatusCode::from_u16(status).unwrap();
        let error = RejectionPolicy::builder().timeout_status(status).build();
        assert_eq!(error.unwrap_err().setting(), "timeout_status");
    }
}

#[tokio::test]
async fn a_service_that_is_not_ready_for_good_answers_with_its_error_each_time() {
    let door = Door::closed();
    let inner: Script<Question, Answer, ()> = Script::noting(|_| (), []);
    let mut service = RejectionLayer::default().layer(door.before(inner.clone()));
    door.fail("torn down");
    for _ in 0..2 {
        let answer = service.ready().await.unwrap().call(request()).await;
        assert_eq!(answer.unwrap().status(), 500);
    }
    assert_eq!(inner.started(), 0);
}

/// `PB-01`, `PB-03`, `PB-04`: gRPC has one word for all of it, which all clients obey to the millisecond.
#[tokio::test]
async fn grpc_is_pushed_back_where_it_is_known_until_when_and_told_where_it_is_in_vain() {
    let refused = |reason| Rejection::refused(reason, Dependency::UNNAMED);
    let known = refused(Reason::BreakerOpen).with_retry_after(Duration::from_micros(2_500_001));
    let exhausted = NotResent::AttemptsExhausted;
    let cases: [(BoxError, Option<&str>); 6] = [
        (known.into(), Some("2501")),
        (refused(Reason::Overloaded).into(), None),
        (refused(Reason::DeadlineExceeded).into(), None),
        (refused(Reason::AboveBurst).into(), Some("-1")),
        (failed(exhausted), Some("-1")),
        (failed(NotResent::NotIdempotent), None),
    ];
    for (error, pushback) in cases {
        let shown = error.to_string();
        let answer = answered(error, typed("application/grpc")).await;
        let told = header(&answer, "grpc-retry-pushback-ms");
        assert_eq!(told, pushback, "{shown}");
        assert_eq!(header(&answer, "retry-after"), None, "{shown}");
        assert_eq!(header(&answer, "x-mamparo-retry"), None, "{shown}");
    }
    let policy = RejectionPolicy::builder().exhausted_header(None);
    let (policy, error) = (policy.build().unwrap(), failed(exhausted));
    let trailers = grpc::trailers(&policy, &told_of(&error), &*error);
    assert!(!trailers.contains_key("grpc-retry-pushback-ms"));
}

type Stream = UnsyncBoxBody<Bytes, BoxError>;

/// What a client reads of a body that breaks with this error.
async fn streamed(
    frames: Frames,
    error: impl Into<BoxError>,
    request: Question,
) -> (RejectionBody<Stream>, BodyWatch) {
    let body = ScriptedBody::new(frames);
    let watch = body.watch();
    let mut error = Some(error.into());
    let body = body
        .map_err(move |_| error.take().expect("one error"))
        .boxed_unsync();
    let step = Step::answer(Response::new(body));
    let inner: Script<Question, Response<Stream>, ()> = Script::noting(|_| (), [step]);
    let service = RejectionLayer::new(exact()).layer(inner);
    let answer = service.oneshot(request).await;
    (answer.unwrap().into_body(), watch)
}

fn half() -> Frames {
    Frames::new().data("half").error("torn").data("more")
}

#[tokio::test]
async fn an_error_in_a_body_that_has_begun_passes_as_it_is() {
    let (mut body, _) = streamed(half(), "torn", request()).await;
    assert!(body.frame().await.unwrap().is_ok());
    assert_eq!(body.frame().await.unwrap().unwrap_err().to_string(), "torn");
}

/// Row P-A7, for gRPC: a client that gets no trailers would have to guess.
#[tokio::test]
async fn a_body_of_grpcs_that_breaks_ends_with_trailers_that_say_why() {
    let known = Rejection::refused(Reason::RateLimited, "secret-name".into())
        .with_retry_after(Duration::from_millis(250));
    let errors: [(BoxError, &str, Option<&str>); 4] = [
        (rejection(Reason::DeadlineExceeded), "4", None),
        (known.into(), "8", Some("250")),
        (unreachable(), "14", None),
        ("secret".into(), "13", None),
    ];
    for (error, status, pushback) in errors {
        let (mut body, watch) = streamed(half(), error, typed("application/grpc")).await;
        assert_eq!(
            body.frame().await.unwrap().unwrap().into_data().unwrap(),
            "half"
        );
        let end = body
            .frame()
            .await
            .unwrap()
            .unwrap()
            .into_trailers()
            .unwrap();
        assert_eq!(end["grpc-status"], status);
        assert!(!end["grpc-message"].to_str().unwrap().contains("secret"));
        let told = end
            .get("grpc-retry-pushback-ms")
            .map(|wait| wait.to_str().unwrap());
        assert_eq!(told, pushback);
        assert!(
            watch.dropped_at().is_some(),
            "what it waited for is given up"
        );
        assert!(body.is_end_stream() && body.frame().await.is_none());
    }
}

#[tokio::test]
async fn a_body_of_grpcs_that_ends_by_itself_keeps_its_trailers() {
    let frames = Frames::new().data("whole").trailer("grpc-status", "5");
    let (body, _) = streamed(frames, "unused", typed("application/grpc")).await;
    let whole = body.collect().await.unwrap();
    assert_eq!(whole.trailers().unwrap()["grpc-status"], "5");
}

/// As tonic itself does, that stands further out.
#[cfg(feature = "tonic")]
#[tokio::test]
async fn a_status_that_an_inner_layer_made_is_the_answer() {
    let status = || tonic::Status::permission_denied("not you \u{4f60}");
    let answer = answered(status(), typed("application/grpc")).await;
    assert_eq!(header(&answer, "grpc-status"), Some("7"));
    let message = header(&answer, "grpc-message");
    assert_eq!(message, Some("not%20you%20%E4%BD%A0"));
    // Of another service's status, nothing is told.
    let theirs = TransportError::new(Kind::Client, Resend::Never, status());
    let answer = answered(theirs, typed("application/grpc")).await;
    assert_eq!(header(&answer, "grpc-status"), Some("14"));
    let answer = answered(status(), request()).await;
    assert_eq!(answer.status(), 500, "HTTP has no such word");
}

#[derive(Clone, Debug, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl Observer for Heard {
    fn on(&self, event: &Event<'_>) {
        if let What::ErrorAnswered { error, status } = event.what {
            self.0.lock().unwrap().push(format!("{status}: {error}"));
        }
    }
}

#[tokio::test]
async fn the_error_itself_is_reported() {
    let heard = Heard::default();
    let layer = RejectionLayer::default().observer(Arc::new(heard.clone()));
    let inner: Script<Question, Answer, ()> = Script::noting(|_| (), [Step::error("a bug")]);
    drop(layer.layer(inner).oneshot(request()).await);
    let heard = heard.0.lock().unwrap();
    assert_eq!(*heard, ["500 Internal Server Error: a bug"]);
}

/// As a handler of axum's makes it of its error: nothing is left for us but to mark it, and to say what it was.
#[tokio::test]
async fn what_a_handler_answers_as_a_problem_is_marked_and_its_cause_reported() {
    let heard = Heard::default();
    let layer = RejectionLayer::default().observer(Arc::new(heard.clone()));
    let problem = Problem::from(failed(NotResent::AttemptsExhausted));
    let answer = problem.into_response().map(|json| {
        let frames = Frames::new().data(json);
        ScriptedBody::new(frames)
    });
    let inner: Script<Question, Answer, ()> = Script::noting(|_| (), [Step::answer(answer)]);
    let answer = layer.layer(inner).oneshot(request()).await.unwrap();
    assert_eq!(answer.status(), 502);
    assert_eq!(header(&answer, "x-mamparo-retry"), Some("exhausted"));
    let heard = heard.0.lock().unwrap();
    let cause = "502 Bad Gateway: psp: failed after 3 attempts";
    assert!(heard[0].starts_with(cause), "{heard:?}");
}

#[tokio::test]
async fn a_problem_of_a_layer_further_in_is_the_answer_in_either_protocol() {
    let kind = ProblemType::new("https://x/p#in-use", "In Use", StatusCode::CONFLICT);
    let problem = || {
        Problem::new(kind)
            .with_detail("wait \u{4f60}")
            .with_retry_after(Duration::from_secs(9))
    };
    let answer = answered(problem(), request()).await;
    assert_eq!(
        (answer.status().as_u16(), header(&answer, "retry-after")),
        (409, Some("9"))
    );
    let json = text(answer).await;
    assert!(json.contains(r#""type":"https://x/p#in-use""#), "{json}");
    let answer = answered(io::Error::other(problem()), typed("application/grpc")).await;
    assert_eq!(header(&answer, "grpc-status"), Some("10"));
    assert_eq!(header(&answer, "grpc-message"), Some("wait %E4%BD%A0"));
    assert_eq!(header(&answer, "grpc-retry-pushback-ms"), Some("9000"));
}

/// Those who are refused together are told different waits, and none a shorter one than is known.
#[tokio::test]
async fn waits_are_told_longer_by_a_random_share_and_never_shorter() {
    let policy = RejectionPolicy::builder()
        .retry_after_jitter(0.25)
        .build()
        .unwrap();
    let refused = own(Reason::Overloaded).with_retry_after(Duration::from_secs(20));
    let told = || {
        let answer = policy.answer(&refused);
        header(&answer, "retry-after")
            .unwrap()
            .parse::<u64>()
            .unwrap()
    };
    let waits: std::collections::BTreeSet<_> = (0..500).map(|_| told()).collect();
    assert_eq!(waits, (20..=25).collect());
    let pushback = || {
        let error: BoxError = refused.clone().into();
        let trailers = grpc::trailers(&policy, &told_of(&error), &*error);
        let told = trailers["grpc-retry-pushback-ms"].to_str().unwrap();
        told.parse::<u64>().unwrap()
    };
    let waits: Vec<_> = (0..500).map(|_| pushback()).collect();
    assert!(waits.iter().all(|wait| (20_000..=25_001).contains(wait)));
    assert!(waits.iter().any(|wait| *wait < 21_000) && waits.iter().any(|wait| *wait > 24_000));
    let huge = own(Reason::Overloaded).with_retry_after(Duration::MAX);
    assert_eq!(
        header(&policy.answer(&huge), "retry-after"),
        Some(&*u64::MAX.to_string())
    );
    for share in [-0.1, f64::NAN, 10.1] {
        let refused = RejectionPolicy::builder().retry_after_jitter(share).build();
        assert_eq!(refused.unwrap_err().setting(), "retry_after_jitter");
    }
}

#[test]
fn a_dependencys_name_is_told_unless_that_is_turned_off() {
    let hidden = RejectionPolicy::builder()
        .hide_dependencies()
        .build()
        .unwrap();
    let error = failed(NotResent::NotRetryable);
    assert!(
        RejectionPolicy::default()
            .answer(&*error)
            .body()
            .contains("psp")
    );
    assert!(!hidden.answer(&*error).body().contains("psp"));
}

/// The limit that refused says what is left of it, to HTTP alone.
#[tokio::test]
async fn a_refusal_has_the_fields_of_the_limit_that_refused() {
    let quota = QuotaPolicy::new("per-client", 5, Duration::from_secs(10)).unwrap();
    let refused = || {
        let quota = quota.at(0, Some(Duration::from_secs(2)));
        own(Reason::RateLimited).with_quota(quota)
    };
    let answer = answered(refused(), request()).await;
    assert_eq!(
        header(&answer, "ratelimit"),
        Some(r#""per-client";r=0;t=2"#)
    );
    let policy = header(&answer, "ratelimit-policy");
    assert_eq!(policy, Some(r#""per-client";q=5;w=10"#));
    let json = text(answer).await;
    assert!(
        json.ends_with(r#""violated-policies":["per-client"]}"#),
        "{json}"
    );
    let answer = answered(refused(), typed("application/grpc")).await;
    assert_eq!(header(&answer, "ratelimit"), None);
}
