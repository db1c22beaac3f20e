//! An attempt of an RPC.

use std::collections::HashSet;
use std::future::poll_fn;
use std::time::Duration;

use http::{HeaderValue, Response};
use mamparo_core::grpc::Code;
use mamparo_core::{
    BoxError, CallContext, Cause, Deadline, Dependency, Kind, LayerKind, Reason, Rejection, Resend,
    TransportError, clock,
};
use mamparo_testkit::body::{Frames, ScriptedBody};
use mamparo_testkit::service::Step;
use opentelemetry::Value;
use opentelemetry::trace::{SpanKind, Status};
use opentelemetry_sdk::trace::SpanData;
use tower::{Layer, ServiceExt};

use super::super::*;
use crate::testing::{Counted, Kept, Look, read, rpc, spoken, streamed, trailers_only, transport};

const PATH: &str = "/shop.Catalog/Find";
const MS: Duration = Duration::from_millis(1);

type Answer = Step<Response<ScriptedBody>>;

/// Attempts of one operation, each with what led to it.
async fn attempts(steps: impl IntoIterator<Item = (u32, Cause, Answer)>) -> (Kept, Counted) {
    let (kept, counted) = (Kept::all(), Counted::new());
    let layer = AttemptLayer::grpc("catalog")
        .tracer_provider(&kept.provider)
        .meter_provider(&counted.provider);
    let mut context = CallContext::join(LayerKind::Retry, Dependency::named("catalog"));
    for (attempt, cause, step) in steps {
        context = context.with_attempt(attempt, 5, cause);
        let service = layer.layer(transport([step]));
        let mut sent = Box::pin(async { read(service.oneshot(rpc(PATH)).await).await });
        poll_fn(|cx| context.enter(|| sent.as_mut().poll(cx))).await;
    }
    (kept, counted)
}

async fn one(step: Answer) -> SpanData {
    attempts([(1, Cause::Original, step)]).await.0.only()
}

fn says(span: &SpanData) -> (String, Option<String>, bool) {
    let is_error = span.status == Status::error("");
    let code = span.text("rpc.status_code").unwrap();
    (code, span.text("error.type"), is_error)
}

/// RP-02, RP-09.
#[tokio::test]
async fn an_attempt_is_a_span_with_the_attributes_of_grpcs_own_libraries() {
    let span = one(Step::answer(streamed(Code::Ok))).await;
    assert_eq!(span.name, "Attempt.shop.Catalog.Find");
    assert_eq!(span.span_kind, SpanKind::Internal);
    assert_eq!(says(&span), ("OK".to_owned(), None, false));
    assert_eq!(span.value("previous-rpc-attempts"), Some(Value::I64(0)));
    assert_eq!(span.value("transparent-retry"), Some(Value::Bool(false)));
    assert_eq!(span.text("rpc.system.name").unwrap(), "grpc");
    assert_eq!(span.text("rpc.method").unwrap(), "shop.Catalog/Find");
    assert_eq!(span.text("server.address").unwrap(), "catalog");
    assert_eq!(span.value("server.port"), Some(Value::I64(50051)));
    assert_eq!(span.text("mamparo.dependency").unwrap(), "catalog");
}

/// RP-07, and no attribute of HTTP's.
#[tokio::test]
async fn no_attribute_of_earlier_conventions_or_of_http_is_written() {
    let span = one(Step::answer(trailers_only(Code::NotFound))).await;
    for attribute in &span.attributes {
        let key = attribute.key.as_str();
        let gone = ["rpc.system", "rpc.service", "rpc.grpc.status_code"];
        assert!(!gone.contains(&key), "{key}");
        let foreign = ["http.", "network.", "client.", "url.", "rpc.response."];
        assert!(!foreign.iter().any(|start| key.starts_with(start)), "{key}");
    }
}

/// RP-V2: transparent retries are told apart, and do not count.
#[tokio::test]
async fn an_attempt_says_how_many_came_before_it() {
    let unavailable = || Step::answer(trailers_only(Code::Unavailable));
    let (kept, counted) = attempts([
        (1, Cause::Original, unavailable()),
        (1, Cause::Transparent, unavailable()),
        (2, Cause::Retry, unavailable()),
        (3, Cause::Hedge, Step::answer(streamed(Code::Ok))),
    ])
    .await;
    let spans = kept.spans();
    let previous = spans.iter().map(|span| span.value("previous-rpc-attempts"));
    let expected = [0, 0, 1, 2].map(|count| Some(Value::I64(count)));
    assert_eq!(previous.collect::<Vec<_>>(), expected);
    let transparent = spans.iter().map(|span| span.value("transparent-retry"));
    let expected = [false, true, false, false].map(|is| Some(Value::Bool(is)));
    assert_eq!(transparent.collect::<Vec<_>>(), expected);
    let unavailable = (
        "UNAVAILABLE".to_owned(),
        Some("UNAVAILABLE".to_owned()),
        true,
    );
    assert_eq!(says(&spans[2]), unavailable);
    assert_eq!(says(&spans[3]), ("OK".to_owned(), None, false));
    let points = counted.points("mamparo.attempts");
    let line = |verdict| format!("mamparo.attempt.verdict={verdict} mamparo.dependency=catalog");
    assert_eq!(points.get(&line("unavailable")), Some(&3), "{points:?}");
    assert_eq!(points.get(&line("success")), Some(&1), "{points:?}");
    for none in ["http.client.request.duration", "rpc.client.call.duration"] {
        assert!(
            counted.points(none).is_empty(),
            "{none} is not the attempt's"
        );
    }
}

/// RP-05: every status but OK is a client's error, wherever it comes.
#[tokio::test]
async fn every_status_but_ok_is_an_error_of_an_attempt() {
    for code in Code::ALL {
        for answer in [trailers_only(code), streamed(code)] {
            let span = one(Step::answer(answer)).await;
            let failed = (code != Code::Ok).then(|| code.as_str().to_owned());
            let is_error = failed.is_some();
            assert_eq!(says(&span), (code.as_str().to_owned(), failed, is_error));
        }
    }
}

/// GS-05, GS-06: where there is no status, the one that stands for what came.
#[tokio::test]
async fn what_has_no_status_gets_the_one_that_it_stands_for() {
    let page = crate::testing::answer(503, "busy");
    let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
    let reset = TransportError::new(Kind::Reset, Resend::IfIdempotent, "reset");
    let cut = Rejection::cut(Reason::AttemptTimedOut, "catalog".into());
    let broken = spoken(Frames::new().data("mess").error("connection lost"));
    for (step, code) in [
        (Step::answer(page), "UNAVAILABLE"),
        (Step::error(refused), "UNAVAILABLE"),
        (Step::error(reset), "UNAVAILABLE"),
        (Step::error(cut), "DEADLINE_EXCEEDED"),
        (Step::error("nobody knows it"), "UNKNOWN"),
        (Step::answer(spoken("no trailers")), "UNKNOWN"),
        (Step::answer(broken), "UNKNOWN"),
    ] {
        let span = one(step).await;
        assert_eq!(says(&span), (code.to_owned(), Some(code.to_owned()), true));
    }
}

/// Law 9, P-C7: a good head is open until the trailers, and its span with it.
#[tokio::test(start_paused = true)]
async fn an_attempts_span_ends_with_its_stream() {
    let frames = Frames::new().data("m").wait(40 * MS);
    let slow = spoken(frames.trailer("grpc-status", "15"));
    let span = one(Step::answer(slow).after(10 * MS)).await;
    let lasted = span.end_time.duration_since(span.start_time).unwrap();
    assert_eq!(lasted, 50 * MS);
    assert_eq!(says(&span).0, "DATA_LOSS");
}

/// ES-08: what the caller gives up is no error; what we cut is.
#[tokio::test(start_paused = true)]
async fn a_cancelled_attempt_is_no_error_and_one_that_was_cut_is() {
    let kept = Kept::all();
    let layer = AttemptLayer::grpc("catalog").tracer_provider(&kept.provider);
    let stream = || Step::answer(spoken(Frames::new().data("m").hang()));
    let call = |step| layer.layer(transport([step])).oneshot(rpc(PATH));
    drop(call(stream()).await.unwrap());
    let waiting = tokio::time::timeout(MS, call(Step::answer(streamed(Code::Ok)).after(9 * MS)));
    waiting.await.unwrap_err();
    for span in kept.spans() {
        assert_eq!(says(&span), ("CANCELLED".to_owned(), None, false));
    }
    let deadline = Deadline::after(clock::now(), 5 * MS);
    let mut context = CallContext::current().with_deadline(deadline);
    let mut cut = Box::pin(call(stream()));
    let answer = poll_fn(|cx| context.enter(|| cut.as_mut().poll(cx))).await;
    tokio::time::advance(5 * MS).await;
    drop(answer);
    let spans = kept.spans();
    let late = "DEADLINE_EXCEEDED".to_owned();
    assert_eq!(says(&spans[2]), (late.clone(), Some(late), true));
}

/// RP-09, OT-R9: what is on the wire is the attempt's; what an interceptor has written stays.
#[tokio::test]
async fn each_attempt_writes_its_own_identity_and_keeps_the_metadata() {
    let kept = Kept::all();
    let layer = AttemptLayer::grpc("catalog").tracer_provider(&kept.provider);
    let script = transport([
        Step::answer(trailers_only(Code::Unavailable)),
        Step::answer(streamed(Code::Ok)),
    ]);
    let mut request = rpc(PATH);
    let headers = request.headers_mut();
    headers.insert("authorization", HeaderValue::from_static("Bearer token"));
    headers.insert("traceparent", HeaderValue::from_static("stale"));
    for _ in 0..2 {
        read(layer.layer(script.clone()).oneshot(request.clone()).await).await;
    }
    let spans = kept.spans();
    let mut ids = HashSet::new();
    for (headers, span) in script.requests().iter().zip(&spans) {
        assert_eq!(headers["authorization"], "Bearer token");
        let own = span.span_context.span_id().to_string();
        let parent = headers["traceparent"].to_str().unwrap();
        assert_eq!(parent.split('-').nth(2), Some(&*own));
        ids.insert(own);
    }
    assert_eq!(ids.len(), 2);
}

/// RP-04: a channel names its server further in than any layer.
#[tokio::test]
async fn a_server_that_the_request_does_not_name_is_the_one_that_was_told() {
    let kept = Kept::all();
    let layer = AttemptLayer::grpc("catalog")
        .server("catalog.internal", 443)
        .tracer_provider(&kept.provider);
    let mut request = rpc(PATH);
    *request.uri_mut() = PATH.parse().unwrap();
    let script = transport([Step::answer(streamed(Code::Ok))]);
    read(layer.layer(script).oneshot(request).await).await;
    let span = kept.only();
    assert_eq!(span.text("server.address").unwrap(), "catalog.internal");
    assert_eq!(span.value("server.port"), Some(Value::I64(443)));
}

#[tokio::test]
async fn without_a_provider_the_request_is_not_touched() {
    let script = transport([Step::answer(streamed(Code::Ok))]);
    let service = AttemptLayer::grpc("catalog").layer(script.clone());
    let answer: Result<_, BoxError> = service.oneshot(rpc(PATH)).await;
    read(answer).await;
    assert!(!script.requests()[0].contains_key("traceparent"));
}
