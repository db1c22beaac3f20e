use std::collections::HashSet;
use std::time::Duration;

use http::{Method, Request, Response, Version};
use http_body_util::BodyExt;
use mamparo_core::{
    BoxError, CallContext, Cause, Deadline, Dependency, Kind, LayerKind, Reason, Rejection, Resend,
    TransportError, clock,
};
use mamparo_testkit::body::{Frames, ScriptedBody};
use mamparo_testkit::service::{Step, Strict, ready};
use opentelemetry::trace::{
    SpanContext, SpanId, SpanKind, Status, TraceContextExt, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{Context, Value};
use opentelemetry_sdk::propagation::{BaggagePropagator, TraceContextPropagator};
use opentelemetry_sdk::trace::Sampler;
use tower::{Layer, Service, ServiceExt};

use super::super::*;
use crate::testing::{Counted, Kept, Look, Transport, answer, get, status, transport};

const URL: &str = "http://catalog:8080/items?page=2";
const MS: Duration = Duration::from_millis(1);

fn layer(kept: &Kept) -> AttemptLayer {
    AttemptLayer::http("catalog").tracer_provider(&kept.provider)
}

/// Sends once and reads the answer's body to its end.
async fn send(
    service: &mut (
             impl Service<Request<()>, Response = Response<impl http_body::Body>, Error = BoxError>
             + Send
         ),
    request: Request<()>,
) -> Result<u16, BoxError> {
    let response = ready(service).await?.call(request).await?;
    let status = response.status().as_u16();
    let _ended = response.into_body().collect().await.map(|_| ());
    Ok(status)
}

/// Calls `f` once per send, all of one operation, as a retry would.
async fn operation<F: Future<Output = ()>>(sends: impl Fn(u32) -> F, times: u32) {
    let mut context = CallContext::join(LayerKind::Retry, Dependency::named("catalog"));
    for attempt in 1..=times {
        context = context.with_attempt(attempt, times, Cause::Retry);
        let mut sent = Box::pin(sends(attempt));
        std::future::poll_fn(|cx| context.enter(|| sent.as_mut().poll(cx))).await;
    }
}

async fn statuses(codes: impl IntoIterator<Item = u16>) -> Kept {
    let kept = Kept::all();
    let steps: Vec<_> = codes.into_iter().map(status).collect();
    let sends = u32::try_from(steps.len()).unwrap();
    let service = layer(&kept).layer(transport(steps));
    let each = |_| {
        let mut service = service.clone();
        async move {
            send(&mut service, get(URL)).await.unwrap();
        }
    };
    operation(each, sends).await;
    kept
}

fn resend_counts(kept: &Kept) -> Vec<Option<Value>> {
    let spans = kept.spans();
    let counts = spans
        .iter()
        .map(|span| span.value("http.request.resend_count"));
    counts.collect()
}

/// RC-01, OT-03, OT-05, ES-01, ES-12.
#[tokio::test]
async fn one_send_is_one_client_span_without_a_resend_count() {
    let kept = statuses([200]).await;
    let span = kept.only();
    assert_eq!(span.name, "GET");
    assert_eq!(span.span_kind, SpanKind::Client);
    assert_eq!(span.status, Status::Unset);
    let says = |key: &str| span.text(key);
    assert_eq!(says("http.request.method").as_deref(), Some("GET"));
    assert_eq!(says("server.address").as_deref(), Some("catalog"));
    assert_eq!(span.value("server.port"), Some(Value::I64(8080)));
    assert_eq!(says("url.full").as_deref(), Some(URL));
    assert_eq!(
        span.value("http.response.status_code"),
        Some(Value::I64(200))
    );
    assert_eq!(says("network.protocol.version").as_deref(), Some("1.1"));
    for absent in [
        "http.request.resend_count",
        "error.type",
        "http.request.method_original",
    ] {
        assert_eq!(span.value(absent), None, "{absent}");
    }
}

/// RC-02, RC-11, I9: a span per attempt, with its number as an integer.
#[tokio::test]
async fn a_resend_counts_up_and_is_an_integer() {
    let kept = statuses([500, 500, 200]).await;
    let counts = [None, Some(Value::I64(1)), Some(Value::I64(2))];
    assert_eq!(resend_counts(&kept), counts);
}

/// RC-03, RC-04: whatever caused it.
#[tokio::test]
async fn a_resend_after_an_auth_challenge_or_a_redirect_counts_too() {
    for first in [401, 302] {
        let kept = statuses([first, 200]).await;
        assert_eq!(resend_counts(&kept), [None, Some(Value::I64(1))], "{first}");
    }
}

/// RC-06, ES-06.
#[tokio::test]
async fn a_connect_failure_is_an_error_without_a_status_and_what_follows_is_a_resend() {
    let kept = Kept::all();
    let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
    let script = transport([Step::error(refused), status(200)]);
    let service = layer(&kept).layer(script);
    let each = |_| {
        let mut service = service.clone();
        async move { send(&mut service, get(URL)).await.map_or((), |_| ()) }
    };
    operation(each, 2).await;
    let spans = kept.spans();
    assert_eq!(spans[0].text("error.type").unwrap(), "connect_error");
    assert_eq!(spans[0].value("http.response.status_code"), None);
    assert_eq!(spans[0].status, Status::error(""));
    assert_eq!(resend_counts(&kept), [None, Some(Value::I64(1))]);
}

/// RC-07: without a parent each attempt is a trace of its own.
#[tokio::test]
async fn attempts_without_a_parent_are_traces_of_their_own() {
    let kept = statuses([503, 200]).await;
    let spans = kept.spans();
    assert_ne!(
        spans[0].span_context.trace_id(),
        spans[1].span_context.trace_id()
    );
    assert!(
        spans
            .iter()
            .all(|span| span.parent_span_id == SpanId::INVALID)
    );
}

/// A send for another dependency inside an operation is no resend of it.
#[tokio::test]
async fn a_nested_call_to_another_dependency_is_no_resend() {
    let kept = Kept::all();
    let mut auth = AttemptLayer::http("auth")
        .tracer_provider(&kept.provider)
        .layer(transport([status(200)]));
    let mut catalog = layer(&kept).layer(transport([status(200)]));
    let mut context = CallContext::join(LayerKind::Retry, Dependency::named("catalog"));
    let both = async {
        send(&mut auth, get("http://auth/token")).await.unwrap();
        send(&mut catalog, get(URL)).await.unwrap();
    };
    let mut both = Box::pin(both);
    std::future::poll_fn(|cx| context.enter(|| both.as_mut().poll(cx))).await;
    assert_eq!(resend_counts(&kept), [None, None]);
    assert_eq!(context.sends(), 1);
}

/// ES-02, ES-04, ES-10.
#[tokio::test]
async fn a_failed_status_is_an_error_named_after_it_without_a_description() {
    for code in [404, 429, 500, 503] {
        let span = statuses([code]).await.only();
        assert_eq!(span.status, Status::error(""));
        assert_eq!(span.text("error.type").unwrap(), code.to_string());
    }
}

/// ES-01.
#[tokio::test]
async fn success_and_redirects_leave_the_status_unset() {
    for code in [204, 301, 304] {
        let span = statuses([code]).await.only();
        assert_eq!(
            (span.status.clone(), span.value("error.type")),
            (Status::Unset, None)
        );
    }
}

#[tokio::test]
async fn what_the_classifier_calls_a_success_is_none_of_an_error() {
    use mamparo_core::{Classify, Verdict, http::Http};
    let kept = Kept::all();
    let missing_is_fine = Classify::<Response<ScriptedBody>>::refine(
        Http::default(),
        |answer: Result<&Response<ScriptedBody>, &BoxError>, verdict: Verdict| match answer {
            Ok(response) if response.status() == 404 => Verdict::SUCCESS,
            _ => verdict,
        },
    );
    let service = AttemptLayer::new("catalog", missing_is_fine)
        .tracer_provider(&kept.provider)
        .layer(transport([status(404)]));
    service.oneshot(get(URL)).await.unwrap();
    assert_eq!(kept.only().status, Status::Unset);
}

async fn dropped_after(limits: CallContext, wait: Duration) -> Kept {
    let kept = Kept::all();
    let service = layer(&kept).layer(transport([Step::hang()]));
    let mut context = limits;
    let mut call = Box::pin(service.oneshot(get(URL)));
    let polled = std::future::poll_fn(|cx| {
        std::task::Poll::Ready(context.enter(|| call.as_mut().poll(cx)).is_pending())
    });
    assert!(polled.await);
    tokio::time::advance(wait).await;
    drop(call);
    kept
}

/// ES-07: the limit of one attempt.
#[tokio::test(start_paused = true)]
async fn an_attempt_cut_by_its_own_limit_is_a_timeout() {
    let limits = CallContext::EMPTY.with_attempt_timeout(clock::now(), 50 * MS);
    let span = dropped_after(limits, 50 * MS).await.only();
    assert_eq!(span.status, Status::error(""));
    assert_eq!(span.text("error.type").unwrap(), "timeout");
}

/// P-D8, I9: cut at the deadline.
#[tokio::test(start_paused = true)]
async fn an_attempt_cut_at_the_deadline_is_a_timeout() {
    let limits = CallContext::EMPTY.with_deadline(Deadline::after(clock::now(), 50 * MS));
    let span = dropped_after(limits, 51 * MS).await.only();
    assert_eq!(span.text("error.type").unwrap(), "timeout");
}

/// ES-08, P-D8: the caller went away.
#[tokio::test(start_paused = true)]
async fn an_attempt_that_the_caller_cancels_is_no_error() {
    let now = clock::now();
    let limits = CallContext::EMPTY
        .with_deadline(Deadline::after(now, 500 * MS))
        .with_attempt_timeout(now, 100 * MS);
    let span = dropped_after(limits, 99 * MS).await.only();
    assert_eq!(
        (span.status.clone(), span.value("error.type")),
        (Status::Unset, None)
    );
    assert_eq!(span.value("http.response.status_code"), None);
}

/// ES-06, ES-07: our own cut, met as an error.
#[tokio::test]
async fn an_error_says_what_kind_it_is_in_few_words() {
    let connect_timed_out = Rejection::refused(Reason::ConnectTimedOut, "catalog".into());
    let cut = Rejection::cut(Reason::AttemptTimedOut, "catalog".into());
    let refused = Rejection::refused(Reason::DeadlineExceeded, "catalog".into());
    let reset = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
    let never_processed = TransportError::new(Kind::Unavailable, Resend::Always, "GOAWAY");
    let cases: [(BoxError, &str); 6] = [
        (connect_timed_out.into(), "connect_error"),
        (cut.into(), "timeout"),
        (refused.into(), "deadline_exceeded"),
        (reset.into(), "connection_reset"),
        (never_processed.into(), "unavailable"),
        ("who knows".into(), "_OTHER"),
    ];
    for (error, says) in cases {
        let kept = Kept::all();
        let service = layer(&kept).layer(transport([Step::error(error)]));
        service.oneshot(get(URL)).await.unwrap_err();
        let span = kept.only();
        assert_eq!(span.text("error.type").unwrap(), says);
        assert_eq!(span.status, Status::error(""));
    }
}

/// ES-09: the body broke after a good head.
#[tokio::test]
async fn a_body_that_breaks_makes_an_error_of_a_good_head() {
    let kept = Kept::all();
    let body = Frames::new().data("half").error("reset");
    let mut service = layer(&kept).layer(transport([Step::answer(answer(200, body))]));
    send(&mut service, get(URL)).await.unwrap();
    let span = kept.only();
    assert_eq!(
        span.value("http.response.status_code"),
        Some(Value::I64(200))
    );
    assert_eq!(span.text("error.type").unwrap(), "connection_reset");
}

/// P-D8: the span ends with the body, and lasts as long.
#[tokio::test(start_paused = true)]
async fn the_span_ends_with_the_body() {
    let kept = Kept::all();
    let body = Frames::new().data("a").wait(70 * MS).data("b");
    let slow = Step::answer(answer(200, body)).after(30 * MS);
    let response = layer(&kept)
        .layer(transport([slow]))
        .oneshot(get(URL))
        .await
        .unwrap();
    assert!(
        kept.spans().is_empty(),
        "the head is there, the body is not"
    );
    response.into_body().collect().await.unwrap();
    let span = kept.only();
    let lasted = span.end_time.duration_since(span.start_time).unwrap();
    assert_eq!(lasted, 100 * MS);
}

#[tokio::test]
async fn dropping_a_good_body_early_is_a_success() {
    let kept = Kept::all();
    let endless = Step::answer(answer(200, Frames::new().data("a").hang()));
    let service = layer(&kept).layer(transport([endless]));
    drop(service.oneshot(get(URL)).await.unwrap());
    assert_eq!(kept.only().status, Status::Unset);
}

#[tokio::test(start_paused = true)]
async fn a_body_dropped_at_the_deadline_is_a_timeout() {
    let kept = Kept::all();
    let endless = Step::answer(answer(200, Frames::new().data("a").hang()));
    let service = layer(&kept).layer(transport([endless]));
    let mut context = CallContext::EMPTY.with_deadline(Deadline::after(clock::now(), 10 * MS));
    let mut call = Box::pin(service.oneshot(get(URL)));
    let response = std::future::poll_fn(|cx| context.enter(|| call.as_mut().poll(cx))).await;
    tokio::time::advance(10 * MS).await;
    drop(response);
    assert_eq!(kept.only().text("error.type").unwrap(), "timeout");
}

/// OT-01, OT-02, OT-06, OT-09.
#[tokio::test]
async fn an_unknown_method_is_other_and_a_path_is_never_a_name() {
    for (method, name, original) in [
        ("QUERY", "QUERY", None),
        ("PATCH", "PATCH", None),
        ("get", "HTTP", Some("get")),
        ("PURGE", "HTTP", Some("PURGE")),
    ] {
        let kept = Kept::all();
        let mut request = get(URL);
        *request.method_mut() = Method::from_bytes(method.as_bytes()).unwrap();
        let service = layer(&kept).layer(transport([status(200)]));
        service.oneshot(request).await.unwrap();
        let span = kept.only();
        assert_eq!(span.name, name);
        let says = span.text("http.request.method").unwrap();
        assert_eq!(says, if original.is_some() { "_OTHER" } else { method });
        assert_eq!(
            span.text("http.request.method_original").as_deref(),
            original
        );
    }
}

/// OT-07: the version as the conventions write it, and none that they don't know.
#[tokio::test]
async fn the_protocols_version_is_the_answers() {
    for (version, says) in [
        (Version::HTTP_10, Some("1.0")),
        (Version::HTTP_2, Some("2")),
        (Version::HTTP_3, Some("3")),
        (Version::HTTP_09, None),
    ] {
        let kept = Kept::all();
        let mut response = answer(200, Frames::new());
        *response.version_mut() = version;
        let service = layer(&kept).layer(transport([Step::answer(response)]));
        service.oneshot(get(URL)).await.unwrap();
        assert_eq!(
            kept.only().text("network.protocol.version").as_deref(),
            says
        );
    }
}

/// OT-11: what a sampler decides by is there when the span begins.
#[tokio::test]
async fn a_sampler_sees_what_is_called() {
    use opentelemetry::KeyValue;
    use opentelemetry::trace::Link;
    use opentelemetry_sdk::trace::{SamplingDecision, SamplingResult};
    #[derive(Clone, Debug)]
    struct OnlyCatalog;
    impl opentelemetry_sdk::trace::ShouldSample for OnlyCatalog {
        fn should_sample(
            &self,
            _: Option<&Context>,
            _: TraceId,
            name: &str,
            kind: &SpanKind,
            attributes: &[KeyValue],
            _: &[Link],
        ) -> SamplingResult {
            let keys: Vec<&str> = attributes.iter().map(|a| a.key.as_str()).collect();
            for key in [
                "http.request.method",
                "server.address",
                "server.port",
                "url.full",
            ] {
                assert!(keys.contains(&key), "{key}");
            }
            assert_eq!((name, kind), ("GET", &SpanKind::Client));
            SamplingResult {
                decision: SamplingDecision::RecordAndSample,
                attributes: Vec::new(),
                trace_state: TraceState::default(),
            }
        }
    }
    let kept = Kept::sampled(OnlyCatalog);
    let service = layer(&kept).layer(transport([status(200)]));
    service.oneshot(get(URL)).await.unwrap();
    kept.only();
}

/// A span of another process.
fn parent(flags: u8, state: &str) -> Context {
    above(flags, true, state)
}

/// What a span of this process leaves that the sampler has refused.
fn refused() -> Context {
    above(0, false, "")
}

fn above(flags: u8, remote: bool, state: &str) -> Context {
    Context::new().with_remote_span_context(SpanContext::new(
        TraceId::from(0xabc),
        SpanId::from(0xdef),
        TraceFlags::new(flags),
        remote,
        state.parse().unwrap(),
    ))
}

async fn sent_headers(
    layer: AttemptLayer,
    within: Context,
    request: Request<()>,
) -> http::HeaderMap {
    use opentelemetry::trace::FutureExt;
    let script: Transport = transport([status(200)]);
    let call = layer.layer(script.clone()).oneshot(request);
    // The call itself begins the attempt, so it is made inside the context as well.
    call.with_context(within).await.unwrap();
    script.requests().remove(0)
}

fn with_callers_own(mut request: Request<()>) -> Request<()> {
    let headers = request.headers_mut();
    headers.append("traceparent", "00-1-2-00".parse().unwrap());
    headers.append("traceparent", "00-3-4-00".parse().unwrap());
    headers.append("tracestate", "caller=1".parse().unwrap());
    request
}

/// TC-01, TC-02, P-D8.
#[tokio::test]
async fn each_attempt_carries_its_own_traceparent_in_one_trace() {
    use opentelemetry::trace::FutureExt;
    let kept = Kept::all();
    let script = transport([status(503), status(200)]);
    let service = layer(&kept).layer(script.clone());
    let each = |_| {
        let mut service = service.clone();
        async move {
            let request = with_callers_own(get(URL));
            send(&mut service, request).await.unwrap();
        }
    };
    operation(each, 2).with_context(parent(1, "")).await;
    let spans = kept.spans();
    for (headers, span) in script.requests().iter().zip(&spans) {
        let own = format!(
            "00-{}-{}-01",
            TraceId::from(0xabc),
            span.span_context.span_id()
        );
        let sent: Vec<_> = headers.get_all("traceparent").iter().collect();
        assert_eq!(sent, [own.as_str()], "replaced, not appended to");
    }
    assert_ne!(
        spans[0].span_context.span_id(),
        spans[1].span_context.span_id()
    );
    assert!(
        spans
            .iter()
            .all(|span| span.parent_span_id == SpanId::from(0xdef))
    );
}

/// OT-R10.
#[tokio::test]
async fn an_empty_tracestate_is_not_sent_and_a_stale_one_is_taken_out() {
    let kept = Kept::all();
    let request = with_callers_own(get(URL));
    let headers = sent_headers(layer(&kept), parent(1, ""), request).await;
    assert!(!headers.contains_key("tracestate"));
    let kept = Kept::all();
    let propagator = TraceContextPropagator::new();
    let request = with_callers_own(get(URL));
    let headers = sent_headers(layer(&kept).propagator(propagator), parent(1, ""), request).await;
    assert!(headers.contains_key("traceparent") && !headers.contains_key("tracestate"));
    let headers = sent_headers(layer(&kept), parent(1, "vendor=7"), get(URL)).await;
    assert_eq!(headers["tracestate"], "vendor=7");
}

#[tokio::test]
async fn the_random_flag_of_the_trace_is_kept() {
    for (came, goes) in [(0x03, "-03"), (0x01, "-01"), (0x02, "-02"), (0xfd, "-01")] {
        let kept = Kept::all();
        let headers = sent_headers(layer(&kept), parent(came, ""), get(URL)).await;
        let sent = headers["traceparent"].to_str().unwrap();
        assert!(sent.ends_with(goes), "{came:#x} went out as {sent}");
    }
}

#[tokio::test]
async fn a_span_that_is_not_sampled_still_has_an_identity_to_send() {
    for above in [parent(0, ""), refused()] {
        let kept = Kept::all();
        let mut ids = HashSet::from([SpanId::from(0xdef).to_string()]);
        for _ in 0..3 {
            let headers = sent_headers(layer(&kept), above.clone(), get(URL)).await;
            let sent = headers["traceparent"].to_str().unwrap();
            let own = sent.strip_prefix(&format!("00-{}-", TraceId::from(0xabc)));
            let own = own.and_then(|own| own.strip_suffix("-00")).unwrap();
            assert!(ids.insert(own.to_owned()), "a fresh one for each send");
        }
        assert!(kept.spans().is_empty());
    }
}

#[tokio::test]
async fn what_is_passed_on_of_a_refused_span_is_its_state_and_that_its_id_is_random() {
    let kept = Kept::all();
    let headers = sent_headers(layer(&kept), above(0x02, false, "vendor=7"), get(URL)).await;
    assert!(headers["traceparent"].to_str().unwrap().ends_with("-02"));
    assert_eq!(headers["tracestate"], "vendor=7");
}

#[tokio::test]
async fn a_sampler_that_ignores_an_unsampled_parent_gets_a_complete_span() {
    let kept = Kept::sampled(Sampler::AlwaysOn);
    sent_headers(layer(&kept), parent(0, ""), get(URL)).await;
    assert_eq!(kept.only().text("url.full").as_deref(), Some(URL));
}

#[tokio::test]
async fn below_a_refused_span_nothing_is_recorded_unless_all_is_offered() {
    let kept = Kept::sampled(Sampler::AlwaysOn);
    sent_headers(layer(&kept), refused(), get(URL)).await;
    assert!(kept.spans().is_empty());
    sent_headers(layer(&kept).offer_all(), refused(), get(URL)).await;
    assert_eq!(kept.only().text("url.full").as_deref(), Some(URL));
}

#[tokio::test]
async fn a_propagator_that_is_passed_in_writes_its_own_fields() {
    use opentelemetry::baggage::BaggageExt;
    let kept = Kept::all();
    let within = parent(1, "").with_baggage([opentelemetry::KeyValue::new("who", "me")]);
    let layer = layer(&kept).propagator(BaggagePropagator::new());
    let headers = sent_headers(layer, within, get(URL)).await;
    assert_eq!(headers["baggage"], "who=me");
    assert!(!headers.contains_key("traceparent"));
}

/// OT-R13: an exporter's own traffic makes no telemetry.
#[tokio::test]
async fn where_telemetry_is_suppressed_nothing_is_recorded_or_sent() {
    let (kept, counted) = (Kept::all(), Counted::new());
    let layer = layer(&kept).meter_provider(&counted.provider);
    let within = parent(1, "").with_telemetry_suppressed();
    let headers = sent_headers(layer, within, with_callers_own(get(URL))).await;
    assert_eq!(
        headers.get_all("traceparent").iter().count(),
        2,
        "untouched"
    );
    assert!(kept.spans().is_empty());
    assert!(counted.points("mamparo.attempts").is_empty());
}

/// MT-01, MT-02, MT-03, ES-12.
#[tokio::test]
async fn each_attempt_is_measured_once_with_the_standard_attributes() {
    let (kept, counted) = (Kept::all(), Counted::new());
    let service = layer(&kept)
        .meter_provider(&counted.provider)
        .layer(transport([status(503), status(200)]));
    let each = |_| {
        let mut service = service.clone();
        async move {
            send(&mut service, get(URL)).await.unwrap();
        }
    };
    operation(each, 2).await;
    let common = "http.request.method=GET";
    let place = "network.protocol.version=1.1 server.address=catalog server.port=8080";
    let points = counted.points("http.client.request.duration");
    let expected = [
        (
            format!("error.type=503 {common} http.response.status_code=503 {place}"),
            1,
        ),
        (format!("{common} http.response.status_code=200 {place}"), 1),
    ];
    assert_eq!(points.into_iter().collect::<Vec<_>>(), expected);
    let points = counted.points("mamparo.attempts");
    let expected = [
        (
            "mamparo.attempt.verdict=success mamparo.dependency=catalog".to_owned(),
            1,
        ),
        (
            "mamparo.attempt.verdict=unavailable mamparo.dependency=catalog".to_owned(),
            1,
        ),
    ];
    assert_eq!(points.into_iter().collect::<Vec<_>>(), expected);
}

/// MT-01: the measurement is the span's duration, in the standard's buckets and unit.
#[tokio::test(start_paused = true)]
async fn the_measurement_is_as_long_as_the_span() {
    use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData};
    let (kept, counted) = (Kept::all(), Counted::new());
    let service = layer(&kept)
        .meter_provider(&counted.provider)
        .layer(transport([status(200).after(250 * MS)]));
    service.oneshot(get(URL)).await.unwrap();
    let span = kept.only();
    let lasted = span.end_time.duration_since(span.start_time).unwrap();
    let collected = counted.collect();
    let mut metrics = collected[0]
        .scope_metrics()
        .flat_map(|scope| scope.metrics());
    let metric = metrics
        .find(|metric| metric.name() == "http.client.request.duration")
        .unwrap();
    assert_eq!(metric.unit(), "s");
    let AggregatedMetrics::F64(MetricData::Histogram(histogram)) = metric.data() else {
        panic!("a duration is a histogram");
    };
    let point = histogram.data_points().next().unwrap();
    assert_eq!(point.sum(), lasted.as_secs_f64());
    let bounds: Vec<f64> = point.bounds().collect();
    assert_eq!(bounds, crate::semconv::DURATION_BOUNDARIES);
}

/// The scope says which conventions the names follow.
#[tokio::test]
async fn the_scope_names_the_conventions() {
    let span = statuses([200]).await.only();
    let scope = &span.instrumentation_scope;
    assert_eq!(scope.name(), "mamparo");
    assert_eq!(
        scope.schema_url(),
        Some("https://opentelemetry.io/schemas/1.45.0")
    );
}

#[tokio::test]
async fn the_attempts_span_is_current_inside_and_not_outside() {
    let kept = Kept::all();
    let inner = tower::service_fn(|_: Request<()>| async {
        tokio::task::yield_now().await;
        let inside = Context::map_current(|cx| cx.span().span_context().span_id());
        let mut response = answer(200, Frames::new());
        response.extensions_mut().insert(inside);
        Ok::<_, BoxError>(response)
    });
    let response = layer(&kept).layer(inner).oneshot(get(URL)).await.unwrap();
    let inside = response.extensions().get::<SpanId>().copied();
    assert_eq!(inside, Some(kept.only().span_context.span_id()));
    assert!(!Context::map_current(|cx| cx.has_active_span()));
}

/// T1: the instance that was ready is the one that is called.
#[tokio::test]
async fn only_an_instance_that_is_ready_is_called() {
    let kept = Kept::all();
    let strict = Strict::new(transport([status(200), status(200)]));
    let mut service = layer(&kept).layer(strict);
    for _ in 0..2 {
        send(&mut service, get(URL)).await.unwrap();
    }
    assert_eq!(kept.spans().len(), 2);
}
