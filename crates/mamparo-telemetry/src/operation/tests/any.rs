use std::time::Duration;

use http::Response;
use http_body_util::BodyExt;
use mamparo_core::{
    BoxError, CallContext, Deadline, Dependency, LayerKind, Plain, Reason, Rejection, clock,
};
use mamparo_testkit::body::{Frames, ScriptedBody};
use mamparo_testkit::service::{Script, Step, Strict, ready};
use opentelemetry::trace::{SpanId, SpanKind, Status, TraceContextExt, Tracer, TracerProvider};
use opentelemetry::{Context, KeyValue, Value};
use opentelemetry_sdk::trace::Sampler;
use tower::{Layer, Service, ServiceExt, service_fn};

use super::super::*;
use crate::AttemptLayer;
use crate::testing::{Counted, Kept, Look, Transport, answer, get, status, transport};

const URL: &str = "http://catalog:8080/items";
const MS: Duration = Duration::from_millis(1);

/// An operation whose inside sends until the script's answer is good or `times` are spent, as a retry would.
fn resending(
    kept: &Kept,
    counted: &Counted,
    script: Transport,
    times: u32,
) -> impl Service<(), Response = Response<impl http_body::Body>, Error = BoxError, Future: Send> + Clone
{
    let attempt = AttemptLayer::http("catalog")
        .tracer_provider(&kept.provider)
        .meter_provider(&counted.provider)
        .layer(script);
    let inside = service_fn(move |()| {
        let attempt = attempt.clone();
        async move {
            let mut sent = 1;
            loop {
                let answer = attempt.clone().oneshot(get(URL)).await;
                let good = answer.as_ref().is_ok_and(|a| a.status().is_success());
                if good || sent == times {
                    return answer;
                }
                sent += 1;
            }
        }
    });
    OperationLayer::http("catalog")
        .tracer_provider(&kept.provider)
        .meter_provider(&counted.provider)
        .layer(inside)
}

async fn run(steps: Vec<Step<Response<ScriptedBody>>>) -> (Kept, Counted) {
    let (kept, counted) = (Kept::all(), Counted::new());
    let times = u32::try_from(steps.len()).unwrap();
    let script = transport(steps);
    let service = resending(&kept, &counted, script, times);
    if let Ok(response) = service.oneshot(()).await {
        let _ended = response.into_body().collect().await.map(|_| ());
    }
    (kept, counted)
}

/// RC-07, RC-12, OT-04, ES-11, P-D8, I9: the attempts are siblings below one span that is no HTTP span.
#[tokio::test]
async fn attempts_lie_side_by_side_below_one_internal_span() {
    let (kept, _) = run(vec![status(503), status(503), status(200)]).await;
    let spans = kept.spans();
    let (operation, attempts) = spans.split_last().unwrap();
    assert_eq!(operation.name, "mamparo.operation catalog");
    assert_eq!(operation.span_kind, SpanKind::Internal);
    assert_eq!(attempts.len(), 3);
    let own = operation.span_context.span_id();
    assert!(attempts.iter().all(|span| span.parent_span_id == own));
    let http = |a: &KeyValue| a.key.as_str().starts_with("http.");
    assert!(!operation.attributes.iter().any(http));
    assert_eq!(
        operation.status,
        Status::Unset,
        "retried errors are not its errors"
    );
    assert_eq!(operation.value("error.type"), None);
    assert!(operation.events.is_empty());
    assert_eq!(
        operation.value("mamparo.operation.attempts"),
        Some(Value::I64(3))
    );
    assert_eq!(
        operation.text("mamparo.operation.outcome").unwrap(),
        "success"
    );
    assert_eq!(operation.text("mamparo.dependency").unwrap(), "catalog");
    let id = operation.text("mamparo.operation.id").unwrap();
    assert!(id.len() == 16 && id.chars().all(|c| c.is_ascii_hexdigit()));
}

#[tokio::test]
async fn an_operation_whose_last_attempt_failed_is_an_error() {
    let (kept, _) = run(vec![status(503), status(429)]).await;
    let operation = kept.spans().pop().unwrap();
    assert_eq!(operation.status, Status::error(""));
    assert_eq!(operation.text("error.type").unwrap(), "throttled");
    assert_eq!(
        operation.text("mamparo.operation.outcome").unwrap(),
        "throttled"
    );
}

/// I3: counted once each, whatever the number of attempts.
#[tokio::test]
async fn operations_and_attempts_are_counted_apart() {
    let (kept, counted) = (Kept::all(), Counted::new());
    let script = transport([
        status(503),
        status(200),
        status(200),
        status(503),
        status(503),
    ]);
    let service = resending(&kept, &counted, script, 2);
    for _ in 0..3 {
        service.clone().oneshot(()).await.unwrap();
    }
    let points = |name: &str| counted.points(name).into_iter().collect::<Vec<_>>();
    let by_outcome = [
        (
            "mamparo.dependency=catalog mamparo.operation.outcome=success".to_owned(),
            2,
        ),
        (
            "mamparo.dependency=catalog mamparo.operation.outcome=unavailable".to_owned(),
            1,
        ),
    ];
    assert_eq!(points("mamparo.operations"), by_outcome);
    assert_eq!(points("mamparo.operation.duration"), by_outcome);
    let attempts: u64 = counted.points("mamparo.attempts").values().sum();
    assert_eq!(attempts, 5);
    let dependency = "mamparo.dependency=catalog".to_owned();
    assert_eq!(
        points("mamparo.resent_operations"),
        [(dependency.clone(), 2)]
    );
    assert_eq!(points("mamparo.recovered_operations"), [(dependency, 1)]);
}

/// I3: one layer value, wired to several services.
#[tokio::test]
async fn a_layer_wired_to_several_services_counts_each_call_once() {
    let counted = Counted::new();
    let layer =
        OperationLayer::new("catalog", Plain::idempotent()).meter_provider(&counted.provider);
    for _ in 0..3 {
        let inner = Script::<(), u32>::new([Step::answer(1)]);
        layer.layer(inner).oneshot(()).await.unwrap();
    }
    let operations: u64 = counted.points("mamparo.operations").values().sum();
    assert_eq!(operations, 3);
}

/// Without an HTTP transport nobody counts sends; the retry's own word is enough.
#[tokio::test]
async fn a_resend_over_any_protocol_is_seen_when_the_retry_reports_it() {
    let counted = Counted::new();
    let inside = service_fn(|()| async {
        CallContext::report_resend();
        Ok::<_, BoxError>(1)
    });
    let layer = OperationLayer::new("db", Plain::idempotent()).meter_provider(&counted.provider);
    layer.layer(inside).oneshot(()).await.unwrap();
    assert_eq!(counted.points("mamparo.recovered_operations").len(), 1);
}

fn plain(kept: &Kept, step: Step<u32>) -> impl Service<(), Response = u32, Error = BoxError> {
    OperationLayer::new("catalog", Plain::idempotent())
        .tracer_provider(&kept.provider)
        .layer(Script::<(), u32>::new([step]))
}

#[tokio::test]
async fn a_call_that_one_of_our_layers_refused_is_an_error_and_says_which() {
    let kept = Kept::all();
    let refused = Rejection::refused(Reason::DeadlineExceeded, "catalog".into());
    plain(&kept, Step::error(refused))
        .oneshot(())
        .await
        .unwrap_err();
    let span = kept.only();
    assert_eq!(span.text("mamparo.operation.outcome").unwrap(), "rejected");
    assert_eq!(span.text("error.type").unwrap(), "deadline_exceeded");
    assert_eq!(span.status, Status::error(""));
}

#[tokio::test]
async fn an_operation_cut_at_its_deadline_is_a_timeout() {
    let kept = Kept::all();
    let cut = Rejection::cut(Reason::DeadlineExceeded, "catalog".into());
    plain(&kept, Step::error(cut))
        .oneshot(())
        .await
        .unwrap_err();
    assert_eq!(kept.only().text("error.type").unwrap(), "timeout");
}

/// ES-08: the caller went away.
#[tokio::test(start_paused = true)]
async fn a_cancelled_operation_is_no_error() {
    let kept = Kept::all();
    let call = plain(&kept, Step::hang()).oneshot(());
    tokio::time::timeout(MS, call).await.unwrap_err();
    let span = kept.only();
    assert_eq!(
        (span.status.clone(), span.value("error.type")),
        (Status::Unset, None)
    );
    assert_eq!(span.text("mamparo.operation.outcome").unwrap(), "cancelled");
}

/// An outer deadline cuts by dropping.
#[tokio::test(start_paused = true)]
async fn an_operation_dropped_at_an_outer_deadline_is_a_timeout() {
    let kept = Kept::all();
    let mut context = CallContext::EMPTY.with_deadline(Deadline::after(clock::now(), 5 * MS));
    let mut call = Box::pin(plain(&kept, Step::hang()).oneshot(()));
    let polled = std::future::poll_fn(|cx| {
        std::task::Poll::Ready(context.enter(|| call.as_mut().poll(cx)).is_pending())
    });
    assert!(polled.await);
    tokio::time::advance(5 * MS).await;
    drop(call);
    assert_eq!(kept.only().text("error.type").unwrap(), "timeout");
}

#[tokio::test(start_paused = true)]
async fn only_what_an_inherited_deadline_leaves_is_measured() {
    const REMAINING: &str = "mamparo.deadline.remaining.duration";
    let counted = Counted::new();
    let layer = OperationLayer::http("catalog").meter_provider(&counted.provider);
    let call = || Box::pin(layer.layer(transport([status(200)])).oneshot(get(URL)));
    drop(call().await);
    assert!(counted.points(REMAINING).is_empty());
    let mut context = CallContext::EMPTY.with_deadline(Deadline::after(clock::now(), 5 * MS));
    let mut call = call();
    let polled = std::future::poll_fn(|cx| context.enter(|| call.as_mut().poll(cx)));
    drop(polled.await);
    let catalog = ("mamparo.dependency=catalog".to_owned(), 1);
    assert_eq!(
        counted.points(REMAINING).into_iter().collect::<Vec<_>>(),
        [catalog]
    );
}

#[tokio::test(start_paused = true)]
async fn the_operation_ends_when_its_body_is_over() {
    let kept = Kept::all();
    let body = Frames::new().data("a").wait(40 * MS).data("b");
    let script = transport([Step::answer(answer(200, body)).after(60 * MS)]);
    let layer = OperationLayer::http("catalog").tracer_provider(&kept.provider);
    let response = layer.layer(script).oneshot(get(URL)).await.unwrap();
    assert!(kept.spans().is_empty());
    response.into_body().collect().await.unwrap();
    let span = kept.only();
    let lasted = span.end_time.duration_since(span.start_time).unwrap();
    assert_eq!(lasted, 100 * MS);
}

#[tokio::test]
async fn the_attempt_ends_before_its_operation_when_the_body_is_dropped() {
    let (kept, counted) = (Kept::all(), Counted::new());
    let endless = Step::answer(answer(200, Frames::new().data("a").hang()));
    let service = resending(&kept, &counted, transport([endless]), 1);
    drop(service.oneshot(()).await.unwrap());
    let names: Vec<_> = kept.spans().into_iter().map(|span| span.name).collect();
    assert_eq!(names, ["GET", "mamparo.operation catalog"]);
}

/// What a body sees when it is polled.
struct Looking(bool);

impl http_body::Body for Looking {
    type Data = bytes::Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<bytes::Bytes>, BoxError>>> {
        if std::mem::replace(&mut self.0, true) {
            return std::task::Poll::Ready(None);
        }
        let span = Context::map_current(|cx| cx.span().span_context().span_id());
        let operation = CallContext::current().operation();
        let text = format!("{span} {}", operation.unwrap());
        std::task::Poll::Ready(Some(Ok(http_body::Frame::data(text.into()))))
    }
}

#[tokio::test]
async fn the_operation_is_current_in_the_call_in_each_poll_and_in_the_body() {
    let kept = Kept::all();
    let seen = || {
        let span = Context::map_current(|cx| cx.span().span_context().span_id());
        (span, CallContext::current().operation())
    };
    let inside = service_fn(move |()| {
        let called = seen();
        async move {
            tokio::task::yield_now().await;
            assert_eq!(seen(), called);
            Ok::<_, BoxError>(Response::new(Looking(false)))
        }
    });
    let layer = OperationLayer::http("catalog").tracer_provider(&kept.provider);
    let response = layer.layer(inside).oneshot(()).await.unwrap();
    let text = response.into_body().collect().await.unwrap().to_bytes();
    let span = kept.only();
    let id = span.text("mamparo.operation.id").unwrap();
    let own = span.span_context.span_id();
    assert_eq!(text, format!("{own} {id}"));
    assert_eq!((seen().0, seen().1), (SpanId::INVALID, None));
}

#[tokio::test]
async fn a_layer_inside_joins_the_operation_and_knows_when_it_began() {
    let inside = service_fn(|()| async {
        let outer = CallContext::current();
        let joined = CallContext::join(LayerKind::Deadline, Dependency::named("catalog"));
        assert_eq!(joined.operation(), outer.operation());
        assert!(joined.operation().is_some() && joined.started().is_some());
        Ok::<_, BoxError>(1)
    });
    let layer = OperationLayer::new("catalog", Plain::idempotent());
    layer.layer(inside).oneshot(()).await.unwrap();
}

#[tokio::test]
async fn the_span_lies_below_the_callers() {
    use opentelemetry::trace::FutureExt;
    let kept = Kept::all();
    let callers = Context::new().with_span(kept.provider.tracer("test").start("caller"));
    let own = callers.span().span_context().span_id();
    let call = plain(&kept, Step::answer(1)).oneshot(());
    call.with_context(callers).await.unwrap();
    assert_eq!(kept.spans()[0].parent_span_id, own);
}

/// What is not sampled at the root is not sampled below it.
#[tokio::test]
async fn attempts_of_an_operation_that_is_not_sampled_are_not_either() {
    let (on, off, counted) = (
        Kept::all(),
        Kept::sampled(Sampler::AlwaysOff),
        Counted::new(),
    );
    let script = transport([status(200)]);
    let attempt = AttemptLayer::http("catalog").tracer_provider(&on.provider);
    let service = OperationLayer::http("catalog")
        .tracer_provider(&off.provider)
        .meter_provider(&counted.provider)
        .layer(attempt.layer(script.clone()));
    service.oneshot(get(URL)).await.unwrap();
    assert!(on.spans().is_empty());
    let sent = script.requests();
    assert!(sent[0]["traceparent"].to_str().unwrap().ends_with("-00"));
    assert_eq!(
        counted.points("mamparo.operations").len(),
        1,
        "counted all the same"
    );
}

#[tokio::test]
async fn below_a_refused_span_nothing_is_recorded_unless_all_is_offered() {
    use opentelemetry::trace::FutureExt;
    let refused = Kept::sampled(Sampler::AlwaysOff);
    let caller = refused.provider.tracer("test").start("caller");
    let callers = Context::new().with_span(caller);
    let kept = Kept::sampled(Sampler::AlwaysOn);
    let layer = OperationLayer::new("catalog", Plain::idempotent()).tracer_provider(&kept.provider);
    for (layer, spans) in [(layer.clone(), 0), (layer.offer_all(), 1)] {
        let script = Script::<(), u32>::new([Step::answer(1)]);
        let call = layer.layer(script).oneshot(());
        call.with_context(callers.clone()).await.unwrap();
        assert_eq!(kept.spans().len(), spans);
    }
}

/// T1: the instance that was ready is the one that is called.
#[tokio::test]
async fn only_an_instance_that_is_ready_is_called() {
    let inner = Strict::new(Script::<(), u32>::new([Step::answer(1), Step::answer(2)]));
    let mut service = OperationLayer::new("catalog", Plain::idempotent()).layer(inner);
    for expected in 1..=2 {
        let answer = ready(&mut service).await.unwrap().call(()).await;
        assert_eq!(answer.unwrap(), expected);
    }
}
