//! A server's deadline as its callers and handlers see it: scripted handlers, paused time.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use http::{HeaderMap, Request, Response};
use http_body_util::BodyExt;
use mamparo_core::clock::WallClock;
use mamparo_core::{
    BoxError, CallContext, Event, LayerKind, Observer, Reason, Rejection, What, carry, clock,
    detach,
};
use mamparo_testkit::body::{Frames, ScriptedBody};
use mamparo_testkit::service::{Door, Script, Step};
use tower::{Layer, Service, ServiceBuilder, ServiceExt};

use super::state::{Grant, grant};
use super::*;
use crate::attempt_timeout::{AttemptPolicy, AttemptTimeoutLayer};
use crate::deadline::{DeadlineLayer, DeadlinePolicy};
use crate::replay::{ATTEMPT_HEADER, ReplayBody};
use crate::retry::{RetryLayer, RetryPolicy};
use crate::wire::HttpWire;
use crate::wire::codec::{Admission, DeadlineHeader, Remaining, Skew};

const TIMEOUT: &str = "x-request-timeout-ms";

type Question = Request<ScriptedBody>;
type Answer = Response<ScriptedBody>;
type Handler = Script<Question, Answer, HeaderMap>;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn server() -> ServerDeadlineLayer {
    ServerDeadlineLayer::http(ServerDeadlinePolicy::default())
}

fn request(headers: &[(&'static str, &str)]) -> Question {
    let mut request = Request::new(ScriptedBody::empty());
    for (name, value) in headers {
        request.headers_mut().append(*name, value.parse().unwrap());
    }
    request
}

fn ok() -> Answer {
    Response::new(ScriptedBody::new("ok"))
}

fn handler(steps: impl IntoIterator<Item = Step<Answer>>) -> Handler {
    Script::noting(|request: &Question| request.headers().clone(), steps)
        .otherwise(|| Step::answer(ok()))
}

fn slow() -> Handler {
    handler([]).otherwise(|| Step::answer(ok()).after(Duration::from_secs(600)))
}

/// Asks the context that a handler runs in.
async fn context_of(layer: &ServerDeadlineLayer, request: Question) -> CallContext {
    let seen = Arc::new(Mutex::new(CallContext::EMPTY));
    let sees = Arc::clone(&seen);
    let handler = tower::service_fn(move |_: Question| {
        *sees.lock().unwrap() = CallContext::current();
        async { Ok::<_, BoxError>(ok()) }
    });
    drop(layer.layer(handler).oneshot(request).await.unwrap());
    *seen.lock().unwrap()
}

fn remaining(context: CallContext) -> Duration {
    context.deadline().unwrap().remaining(clock::now())
}

fn reason(error: &BoxError) -> Option<(Reason, bool)> {
    Rejection::of(&**error).map(|rejection| (rejection.reason(), rejection.sent()))
}

#[derive(Clone, Debug, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl Observer for Heard {
    fn on(&self, event: &Event<'_>) {
        let text = match event.what {
            What::DeadlineClamped { asked, granted } => format!("clamped {asked:?} to {granted:?}"),
            What::MalformedDeadline { header } => format!("malformed {header}"),
            What::LateWork { late } => format!("late by {late:?}"),
            What::Rejected(rejection) => format!("rejected {}", rejection.reason().as_str()),
            What::SkewSuspected => "skew".to_owned(),
            _ => return,
        };
        self.0.lock().unwrap().push(text);
    }
}

impl Heard {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

#[test]
fn the_smallest_of_what_is_asked_and_allowed_is_granted() {
    let policy = ServerDeadlinePolicy::builder()
        .maximum(ms(500))
        .default_limit(ms(300));
    let policy = policy.build().unwrap();
    let granted = |limit, clamped_from| Grant {
        limit,
        clamped_from,
    };
    let within = |asked| grant(policy, Admission::Within(asked));
    assert_eq!(within(Some(ms(400))), granted(ms(400), None));
    assert_eq!(within(Some(ms(500))), granted(ms(500), None));
    assert_eq!(within(Some(ms(501))), granted(ms(500), Some(ms(501))));
    assert_eq!(within(None), granted(ms(300), None));
    let doubted = |asked| grant(policy, Admission::Doubted(asked));
    assert_eq!(doubted(None), granted(ms(300), None));
    assert_eq!(doubted(Some(ms(1))), granted(ms(1), None));
    let expired = grant(policy, Admission::Expired);
    assert_eq!(expired, granted(Duration::ZERO, None));
}

#[test]
fn limits_without_sense_are_refused_by_name() {
    let refused = |builder: ServerDeadlineBuilder| {
        let error = builder.build().unwrap_err();
        (error.setting(), error.value().to_owned())
    };
    let builder = ServerDeadlinePolicy::builder;
    let zero = Duration::ZERO;
    assert_eq!(
        refused(builder().maximum(zero)),
        ("maximum", "0s".to_owned())
    );
    assert_eq!(
        refused(builder().default_limit(zero)),
        ("default_limit", "0s".to_owned())
    );
    let beyond = builder().maximum(ms(10)).default_limit(ms(11));
    assert_eq!(refused(beyond), ("default_limit", "11ms".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn the_handler_works_in_what_the_caller_leaves() {
    let context = context_of(&server(), request(&[(TIMEOUT, "1500")])).await;
    assert_eq!(remaining(context), ms(1500));
    let both = request(&[("grpc-timeout", "200m"), (TIMEOUT, "1500")]);
    assert_eq!(remaining(context_of(&server(), both).await), ms(200));
    let none = context_of(&server(), request(&[])).await;
    assert_eq!(remaining(none), Duration::from_secs(60));
}

/// Row D8, for the server: what is asked for is clamped.
#[tokio::test(start_paused = true)]
async fn a_caller_that_asks_for_too_much_gets_the_maximum_and_is_reported() {
    let heard = Heard::default();
    let layer = server().observer(Arc::new(heard.clone()));
    let context = context_of(&layer, request(&[("grpc-timeout", "99999999H")])).await;
    assert_eq!(remaining(context), Duration::from_secs(60));
    assert_eq!(heard.take(), ["clamped 359999996400s to 60s"]);
    let context = context_of(&layer, request(&[(TIMEOUT, "60000")])).await;
    assert_eq!(remaining(context), Duration::from_secs(60));
    assert_eq!(heard.take(), Vec::<String>::new());
}

/// Row P-A3.
#[tokio::test(start_paused = true)]
async fn what_is_already_expired_does_not_reach_the_handler() {
    let heard = Heard::default();
    let handler = handler([]);
    let service = server()
        .observer(Arc::new(heard.clone()))
        .layer(handler.clone());
    for header in [(TIMEOUT, "0"), ("grpc-timeout", "0n")] {
        let error = service
            .clone()
            .oneshot(request(&[header]))
            .await
            .unwrap_err();
        assert_eq!(reason(&error), Some((Reason::DeadlineExceeded, false)));
        assert_eq!(error.to_string(), "deadline exceeded: not sent");
    }
    assert_eq!(handler.started(), 0);
    assert_eq!(heard.take(), ["rejected deadline_exceeded"; 2]);
}

/// Rows D1 and P-A6.
#[tokio::test(start_paused = true)]
async fn a_slow_handler_is_dropped_when_its_time_is_up() {
    let handler = handler([]).otherwise(|| Step::answer(ok()).after(ms(400)));
    let service = server().layer(handler.clone());
    for call in 1..=5 {
        let start = clock::now();
        let error = service.clone().oneshot(request(&[(TIMEOUT, "50")])).await;
        let error = error.unwrap_err();
        assert_eq!(reason(&error), Some((Reason::DeadlineExceeded, true)));
        assert_eq!(
            error.to_string(),
            "deadline exceeded: no answer within 50ms"
        );
        assert!(start.elapsed() < ms(52), "{:?}", start.elapsed());
        assert_eq!((handler.dropped(), handler.running()), (call, 0));
    }
    assert_eq!(handler.max_running(), 1);
}

#[tokio::test(start_paused = true)]
async fn dropping_the_request_drops_the_handler() {
    let handler = slow();
    let call = server().layer(handler.clone()).oneshot(request(&[]));
    assert!(tokio::time::timeout(ms(20), call).await.is_err());
    assert_eq!((handler.dropped(), handler.running()), (1, 0));
}

/// Row P-A7, over HTTP.
#[tokio::test(start_paused = true)]
async fn a_body_that_streams_past_the_deadline_ends_with_its_rejection() {
    let frames = (0..9).fold(Frames::new(), |frames, _| frames.data("x").wait(ms(100)));
    let body = ScriptedBody::new(frames);
    let watch = body.watch();
    let heard = Heard::default();
    let layer = server().observer(Arc::new(heard.clone()));
    let service = layer.layer(handler([Step::answer(Response::new(body))]));
    let start = clock::now();
    let answer = service.oneshot(request(&[(TIMEOUT, "250")])).await.unwrap();
    let mut body = answer.into_body();
    let mut frames = 0;
    let error = loop {
        match body.frame().await.unwrap() {
            Ok(_) => frames += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(frames, 3);
    assert_eq!(reason(&error), Some((Reason::DeadlineExceeded, true)));
    assert!(start.elapsed() >= ms(250) && start.elapsed() < ms(255));
    assert!(watch.is_dropped() && body.frame().await.is_none());
    assert_eq!(heard.take(), ["rejected deadline_exceeded"]);
}

#[tokio::test(start_paused = true)]
async fn a_body_is_polled_in_the_handlers_context() {
    let seen = Arc::new(Mutex::new(None));
    let sees = Arc::clone(&seen);
    let handler = tower::service_fn(move |_: Question| {
        let sees = Arc::clone(&sees);
        let stream = ScriptedBody::new("data").map_frame(move |frame| {
            *sees.lock().unwrap() = CallContext::current().deadline();
            frame
        });
        async { Ok::<_, BoxError>(Response::new(stream)) }
    });
    let start = clock::now();
    let answer = server()
        .layer(handler)
        .oneshot(request(&[(TIMEOUT, "100")]));
    assert!(answer.await.unwrap().collect().await.is_ok());
    let deadline = seen.lock().unwrap().unwrap();
    assert_eq!(deadline.remaining(start), ms(100));
    assert_eq!(CallContext::current().deadline(), None);
}

/// Row P-A10.
#[tokio::test(start_paused = true)]
async fn time_waited_for_the_handler_counts_against_the_deadline() {
    let (door, handler) = (Door::closed(), handler([]));
    let mut service = server().layer(door.before(handler.clone()));
    let service = service.ready().await.unwrap();
    let error = service.call(request(&[(TIMEOUT, "100")])).await;
    assert_eq!(
        reason(&error.unwrap_err()),
        Some((Reason::DeadlineExceeded, false))
    );

    let waits = service.call(request(&[(TIMEOUT, "100")]));
    let opens = async {
        tokio::time::sleep(ms(40)).await;
        door.open();
    };
    assert!(tokio::join!(waits, opens).0.is_ok());
    assert_eq!(handler.started(), 1);
}

/// Row D6.
#[test]
fn handlers_that_answer_at_once_register_no_timer() {
    // No timer can be made on a runtime that has none: it would panic.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let service = server().layer(handler([]));
    runtime.block_on(async {
        for _ in 0..100 {
            let request = request(&[(TIMEOUT, "30000")]);
            let answer = service.clone().oneshot(request).await.unwrap();
            assert!(answer.collect().await.is_ok());
        }
    });
}

/// `DH-09`: no stale value is handed on.
#[tokio::test(start_paused = true)]
async fn consumed_headers_are_taken_off_unless_they_are_kept() {
    let headers = [
        (TIMEOUT, "900"),
        (TIMEOUT, "800"),
        ("grpc-timeout", "1S"),
        ("x-other", "1"),
    ];
    let taken = handler([]);
    drop(
        server()
            .layer(taken.clone())
            .oneshot(request(&headers))
            .await,
    );
    assert_eq!(taken.requests()[0].len(), 1);
    assert_eq!(taken.requests()[0]["x-other"], "1");

    let kept = handler([]);
    let policy = ServerDeadlinePolicy::builder().keep_headers().build();
    let layer = ServerDeadlineLayer::http(policy.unwrap());
    drop(layer.layer(kept.clone()).oneshot(request(&headers)).await);
    assert_eq!(kept.requests()[0].len(), 4);
}

/// `DH-04`.
#[tokio::test(start_paused = true)]
async fn a_malformed_header_is_ignored_and_reported() {
    let heard = Heard::default();
    let layer = server().observer(Arc::new(heard.clone()));
    for value in ["-1", "1.5", "99999999999999999999", "1e3", "", "ten"] {
        let context = context_of(&layer, request(&[(TIMEOUT, value)])).await;
        assert_eq!(remaining(context), Duration::from_secs(60), "{value}");
        assert_eq!(heard.take(), ["malformed x-request-timeout-ms"], "{value}");
    }
    let beside = request(&[(TIMEOUT, "soon"), ("grpc-timeout", "2S")]);
    let context = context_of(&layer, beside).await;
    assert_eq!(remaining(context), Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn a_malformed_header_is_refused_where_the_policy_is_strict() {
    let handler = handler([]);
    let policy = ServerDeadlinePolicy::builder().refuse_malformed().build();
    let layer = ServerDeadlineLayer::http(policy.unwrap());
    let request = request(&[(TIMEOUT, "soon"), ("grpc-timeout", "2S")]);
    let error = layer.layer(handler.clone()).oneshot(request).await;
    assert_eq!(
        reason(&error.unwrap_err()),
        Some((Reason::MalformedDeadline, false))
    );
    assert_eq!(handler.started(), 0);
}

#[derive(Debug)]
struct Noon;

impl WallClock for Noon {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(43_200)
    }
}

#[tokio::test(start_paused = true)]
async fn an_absolute_deadline_that_has_passed_is_believed_for_a_share_of_requests_only() {
    let header = DeadlineHeader::epoch_millis("x-request-deadline").unwrap();
    let wire = HttpWire::default().accepts(header).wall_clock(Noon);
    let heard = Heard::default();
    let layer = ServerDeadlineLayer::with_wire(ServerDeadlinePolicy::default(), wire)
        .skew(Skew::new(ms(500), 25).unwrap())
        .observer(Arc::new(heard.clone()));
    let handler = handler([]);
    // The rule is the layer's: services made anew share its count.
    for _ in 0..8 {
        let late = request(&[("x-request-deadline", "43000000")]);
        drop(layer.layer(handler.clone()).oneshot(late).await);
    }
    assert_eq!(handler.started(), 6, "25 % of 8 are believed to be late");
    let heard = heard.take();
    assert_eq!(heard.iter().filter(|what| *what == "skew").count(), 6);

    let ahead = request(&[("x-request-deadline", "43200700")]);
    let mut service = layer.layer(slow());
    let start = clock::now();
    let call = service.ready().await.unwrap().call(ahead);
    assert!(call.await.is_err() && start.elapsed() < ms(705));
}

#[tokio::test(start_paused = true)]
async fn the_callers_attempt_number_is_read_in_digits_only() {
    let attempt = async |value: &str| {
        let mut request = request(&[]);
        let value = value.parse().unwrap();
        request.headers_mut().insert(ATTEMPT_HEADER, value);
        context_of(&server(), request).await.upstream_attempt()
    };
    assert_eq!(attempt("3").await, 3);
    assert_eq!(attempt("4294967295").await, u32::MAX);
    for value in ["+3", "-1", "4294967296", " ", "x", "٣"] {
        assert_eq!(attempt(value).await, 0, "{value}");
    }
    let none = context_of(&server(), request(&[])).await;
    assert_eq!(none.upstream_attempt(), 0);
}

/// A6-08: gRPC's callers tell how many were before.
#[tokio::test(start_paused = true)]
async fn the_callers_attempts_before_are_read_too() {
    for (before, attempt) in [
        ("1", 2),
        ("4", 5),
        ("0", 0),
        ("-1", 0),
        ("4294967295", u32::MAX),
    ] {
        let request = request(&[("grpc-previous-rpc-attempts", before)]);
        let context = context_of(&server(), request).await;
        assert_eq!(context.upstream_attempt(), attempt, "{before}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_operation_is_open_in_the_handler() {
    let mut operation = CallContext::join(LayerKind::Retry, "catalog".into());
    let layer = server();
    let inside = operation.enter(|| carry(context_of(&layer, request(&[]))));
    let context = inside.await;
    assert!(context.operation().is_none() && !context.is_inside_retry());
}

#[tokio::test(start_paused = true)]
async fn an_inner_server_layer_can_only_shorten_the_deadline() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let inner = |maximum| {
        let policy = ServerDeadlinePolicy::builder().maximum(maximum).build();
        ServerDeadlineLayer::http(policy.unwrap())
    };
    for maximum in [ms(50), Duration::from_secs(600)] {
        let sees = Arc::clone(&seen);
        let handler = ServiceBuilder::new()
            .layer(server())
            .layer(inner(maximum))
            .service_fn(move |_: Question| {
                sees.lock().unwrap().push(remaining(CallContext::current()));
                async { Ok::<_, BoxError>(ok()) }
            });
        drop(handler.oneshot(request(&[(TIMEOUT, "200")])).await.unwrap());
    }
    assert_eq!(*seen.lock().unwrap(), [ms(50), ms(200)]);
}

#[tokio::test]
async fn a_handler_that_blocks_past_the_deadline_is_reported_and_its_answer_delivered() {
    let heard = Heard::default();
    let handler = tower::service_fn(|_: Question| async {
        std::thread::sleep(ms(40));
        Ok::<_, BoxError>(ok())
    });
    let service = server().observer(Arc::new(heard.clone())).layer(handler);
    let answer = service.oneshot(request(&[(TIMEOUT, "10")])).await;
    assert!(answer.is_ok());
    let heard = heard.take();
    let late = heard[0].strip_prefix("late by ").unwrap();
    let late = humantime_millis(late);
    assert!((25.0..500.0).contains(&late), "{late} ms");
    assert_eq!(heard.len(), 1);
}

fn humantime_millis(text: &str) -> f64 {
    text.trim_end_matches("ms").parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn carried_work_keeps_the_handlers_deadline_and_detached_work_none() {
    let handler = tower::service_fn(|_: Question| async {
        let read = || async { CallContext::current().deadline() };
        let carried = tokio::spawn(carry(read())).await.unwrap();
        let detached = tokio::spawn(detach(read())).await.unwrap();
        assert_eq!(carried, CallContext::current().deadline());
        assert!(carried.is_some() && detached.is_none());
        Ok::<_, BoxError>(ok())
    });
    let answer = server().layer(handler).oneshot(request(&[]));
    assert!(answer.await.is_ok());
}

/// A client's whole stack, of which only the transport is scripted; it speaks gRPC's header.
macro_rules! client {
    ($peer:expr) => {{
        let wire = HttpWire::default().sends(DeadlineHeader::grpc_timeout());
        let attempt = AttemptPolicy::builder().no_timeout().build().unwrap();
        ServiceBuilder::new()
            .layer(DeadlineLayer::with_wire(
                DeadlinePolicy::default(),
                wire.clone(),
            ))
            .layer(RetryLayer::http(RetryPolicy::default()))
            .layer(AttemptTimeoutLayer::with_wire(attempt, wire))
            .service($peer)
    }};
}

type Peer = Script<Request<ReplayBody<ScriptedBody>>, Answer, (clock::Instant, HeaderMap)>;

fn peer(steps: impl IntoIterator<Item = Step<Answer>>) -> Peer {
    Script::noting(
        |request: &Request<ReplayBody<ScriptedBody>>| (clock::now(), request.headers().clone()),
        steps,
    )
}

/// What a request to the peer said to remain.
fn told((_, headers): &(clock::Instant, HeaderMap)) -> Duration {
    let values: Vec<_> = headers.get_all("grpc-timeout").iter().collect();
    assert_eq!(values.len(), 1, "exactly one value: {values:?}");
    match DeadlineHeader::grpc_timeout().read(values[0], SystemTime::UNIX_EPOCH) {
        Ok(Remaining::For(told)) => told,
        other => panic!("no time is left: {other:?}"),
    }
}

/// Row P-A1.
#[tokio::test(start_paused = true)]
async fn a_call_made_in_the_handler_tells_its_peer_what_remains() {
    let peer = peer([Step::answer(ok())]);
    let client = client!(peer.clone());
    let handler = tower::service_fn(move |_: Question| {
        let client = client.clone();
        async move {
            tokio::time::sleep(ms(200)).await;
            // A larger value, set by hand, is not sent on.
            client.oneshot(request(&[("grpc-timeout", "9S")])).await
        }
    });
    let answer = server()
        .layer(handler)
        .oneshot(request(&[("grpc-timeout", "500m")]));
    assert!(answer.await.is_ok());
    let told = told(&peer.requests()[0]);
    assert!(
        told <= ms(300) && told >= ms(280),
        "less the reserve: {told:?}"
    );
}

/// Row D8.
#[tokio::test(start_paused = true)]
async fn nothing_that_a_handler_sends_outlasts_its_caller() {
    let busy = || {
        let mut answer = ok();
        *answer.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
        Step::answer(answer).after(ms(60))
    };
    let peer = peer([]).otherwise(busy);
    let client = client!(peer.clone());
    let handler = tower::service_fn(move |_: Question| client.clone().oneshot(request(&[])));
    let start = clock::now();
    let answer = server()
        .layer(handler)
        .oneshot(request(&[(TIMEOUT, "200")]));
    drop(answer.await);
    assert!(start.elapsed() <= ms(205), "{:?}", start.elapsed());
    assert!(peer.started() >= 1 && peer.running() == 0);
    for sent in peer.requests() {
        let remains = ms(200) - sent.0.duration_since(start);
        assert!(told(&sent) <= remains, "{:?} of {remains:?}", told(&sent));
    }
}
