//! An RPC, with all of its attempts.

use std::time::Duration;

use http::{Request, Response};
use mamparo_core::grpc::Code;
use mamparo_core::{BoxError, CallContext, Cause, LayerKind, Reason, Rejection, Scope};
use mamparo_testkit::body::{Frames, ScriptedBody};
use mamparo_testkit::service::Step;
use opentelemetry::Value;
use opentelemetry::trace::{SpanKind, Status};
use opentelemetry_sdk::trace::SpanData;
use tower::{Layer, Service, ServiceExt, service_fn};

use super::super::*;
use crate::AttemptLayer;
use crate::testing::{Counted, Kept, Look, read, rpc, spoken, streamed, trailers_only, transport};

const PATH: &str = "/shop.Catalog/Find";
const MS: Duration = Duration::from_millis(1);

type Answer = Step<Response<ScriptedBody>>;

struct Recorded {
    kept: Kept,
    counted: Counted,
}

/// An RPC that is sent as often as there are steps, as a retry would.
async fn call(path: &str, steps: Vec<(Cause, Answer)>) -> Recorded {
    let (kept, counted) = (Kept::all(), Counted::new());
    let attempt = AttemptLayer::grpc("catalog").tracer_provider(&kept.provider);
    let (causes, steps): (Vec<_>, Vec<_>) = steps.into_iter().unzip();
    let script = transport(steps);
    let inside = service_fn(move |request: Request<()>| {
        let (attempt, script, causes) = (attempt.clone(), script.clone(), causes.clone());
        async move {
            let mut last = Err(BoxError::from("no step"));
            let mut scope = Scope::join(LayerKind::Retry, "catalog".into());
            for (cause, number) in causes.into_iter().zip(1..) {
                scope.set_attempt(number, 9, cause);
                let pause = u32::from(number > 1) * 80 * MS;
                scope.enter(|| CallContext::note_resend(pause));
                let mut sent = Box::pin(attempt.layer(script.clone()).oneshot(request.clone()));
                last = std::future::poll_fn(|cx| scope.enter(|| sent.as_mut().poll(cx))).await;
            }
            last
        }
    });
    let layer = OperationLayer::grpc("catalog")
        .tracer_provider(&kept.provider)
        .meter_provider(&counted.provider);
    read(layer.retry_metrics().layer(inside).oneshot(rpc(path)).await).await;
    Recorded { kept, counted }
}

async fn once(step: Answer) -> Recorded {
    call(PATH, vec![(Cause::Original, step)]).await
}

impl Recorded {
    /// The span of the call.
    fn span(&self) -> SpanData {
        let mut spans = self.kept.spans();
        spans.pop().unwrap()
    }

    /// The one point of the call's duration.
    fn point(&self) -> String {
        let points = self.counted.points("rpc.client.call.duration");
        assert_eq!(points.values().sum::<u64>(), 1, "{points:?}");
        points.into_keys().next().unwrap()
    }
}

/// RP-01, RP-03, RP-04, RP-06, ES-12.
#[tokio::test]
async fn an_rpc_is_one_client_span_and_one_measurement() {
    let recorded = once(Step::answer(streamed(Code::Ok))).await;
    let span = recorded.span();
    assert_eq!(span.name, "shop.Catalog/Find");
    assert_eq!(span.span_kind, SpanKind::Client);
    assert_eq!(span.status, Status::Unset);
    let text = |key: &str| span.text(key);
    assert_eq!(text("rpc.system.name").unwrap(), "grpc");
    assert_eq!(text("rpc.method").unwrap(), "shop.Catalog/Find");
    assert_eq!(text("rpc.status_code").unwrap(), "OK");
    assert_eq!(text("server.address").unwrap(), "catalog");
    assert_eq!(span.value("server.port"), Some(Value::I64(50051)));
    assert_eq!(text("mamparo.operation.outcome").unwrap(), "success");
    for absent in ["error.type", "rpc.method_original"] {
        assert_eq!(span.value(absent), None, "{absent}");
    }
    assert_eq!(
        recorded.point(),
        "rpc.method=shop.Catalog/Find rpc.status_code=OK rpc.system.name=grpc \
         server.address=catalog server.port=50051"
    );
    assert_eq!(recorded.counted.points("mamparo.operations").len(), 1);
}

/// RP-V2, ES-11: errors that were retried are not errors of the call.
#[tokio::test]
async fn a_call_that_recovers_is_no_error_and_its_attempts_lie_below_it() {
    let failed = || Step::answer(trailers_only(Code::Unavailable));
    let recorded = call(
        PATH,
        vec![
            (Cause::Original, failed()),
            (Cause::Retry, Step::answer(streamed(Code::Ok))),
        ],
    )
    .await;
    let spans = recorded.kept.spans();
    let [first, second, span] = &spans[..] else {
        panic!("{spans:?}");
    };
    assert_eq!(span.status, Status::Unset);
    assert_eq!(span.text("rpc.status_code").unwrap(), "OK");
    let own = span.span_context.span_id();
    assert_eq!([first.parent_span_id, second.parent_span_id], [own; 2]);
    let kinds = [first, second].map(|attempt| attempt.span_kind.clone());
    assert_eq!(kinds, [SpanKind::Internal, SpanKind::Internal]);
    assert!(recorded.point().contains("rpc.status_code=OK"));
    assert_eq!(
        recorded
            .counted
            .points("mamparo.recovered_operations")
            .len(),
        1
    );
}

/// RP-V1, RP-05: the status by its name, on the span and on the measurement.
#[tokio::test]
async fn every_status_but_ok_is_an_error_of_the_caller() {
    for code in &Code::ALL[1..] {
        let name = code.as_str();
        for answer in [trailers_only(*code), streamed(*code)] {
            let recorded = once(Step::answer(answer)).await;
            let span = recorded.span();
            assert_eq!(span.status, Status::error(""), "{name}");
            assert_eq!(span.text("rpc.status_code").unwrap(), name);
            assert_eq!(span.text("error.type").unwrap(), name);
            assert!(recorded.point().starts_with(&format!("error.type={name} ")));
        }
    }
}

#[tokio::test]
async fn what_a_layer_refused_says_which_and_has_the_status_that_it_stands_for() {
    let refused = Rejection::refused(Reason::BreakerOpen, "catalog".into());
    let recorded = once(Step::error(refused)).await;
    let span = recorded.span();
    assert_eq!(span.text("error.type").unwrap(), "breaker_open");
    assert_eq!(span.text("rpc.status_code").unwrap(), "UNAVAILABLE");
    assert_eq!(span.text("mamparo.operation.outcome").unwrap(), "rejected");
}

/// ES-08, law 9: the stream decides; one that its reader gives up is no error.
#[tokio::test(start_paused = true)]
async fn a_call_lasts_as_long_as_its_stream_and_a_reader_that_goes_away_is_no_error() {
    let frames = Frames::new().data("m").wait(30 * MS);
    let slow = spoken(frames.trailer("grpc-status", "13"));
    let span = once(Step::answer(slow)).await.span();
    let lasted = span.end_time.duration_since(span.start_time).unwrap();
    assert_eq!(lasted, 30 * MS);
    assert_eq!(span.text("error.type").unwrap(), "INTERNAL");

    let kept = Kept::all();
    let layer = OperationLayer::grpc("catalog").tracer_provider(&kept.provider);
    let script = transport([Step::answer(spoken(Frames::new().data("m").hang()))]);
    drop(layer.layer(script).oneshot(rpc(PATH)).await.unwrap());
    let span = kept.only();
    assert_eq!(span.status, Status::Unset);
    assert_eq!(span.value("error.type"), None);
    assert_eq!(span.text("rpc.status_code").unwrap(), "CANCELLED");
    assert_eq!(span.text("mamparo.operation.outcome").unwrap(), "cancelled");
}

/// RP-03, RP-04.
#[tokio::test]
async fn a_path_that_is_no_method_is_other_and_kept_on_the_span_alone() {
    let recorded = call(
        "/a/b/c",
        vec![(Cause::Original, Step::answer(streamed(Code::Ok)))],
    )
    .await;
    let span = recorded.span();
    assert_eq!(span.name, "grpc");
    assert_eq!(span.text("rpc.method").unwrap(), "_OTHER");
    assert_eq!(span.text("rpc.method_original").unwrap(), "a/b/c");
    let point = recorded.point();
    assert!(point.contains("rpc.method=_OTHER "), "{point}");
    assert!(!point.contains("a/b/c"), "{point}");
}

/// RP-08, P-D9: one record a call, none of a 0, and the pauses are seconds.
#[tokio::test]
async fn grpcs_own_metrics_of_retries_are_written_once_a_call() {
    let failed = || Step::answer(trailers_only(Code::Unavailable));
    let recorded = call(
        PATH,
        vec![
            (Cause::Original, failed()),
            (Cause::Transparent, failed()),
            (Cause::Retry, failed()),
            (Cause::Retry, failed()),
            (Cause::Hedge, Step::answer(streamed(Code::Ok))),
        ],
    )
    .await;
    let line = "grpc.method=shop.Catalog/Find grpc.target=catalog:50051";
    let sum = |name: &str| {
        let points = recorded.counted.points(&format!("grpc.client.call.{name}"));
        assert!(points.keys().all(|point| point == line), "{points:?}");
        points.into_values().sum::<u64>()
    };
    assert_eq!(sum("retries"), 2);
    assert_eq!(sum("transparent_retries"), 1);
    assert_eq!(sum("hedges"), 1);
    assert_eq!(sum("retry_delay"), 1, "one record for all pauses");

    let recorded = once(Step::answer(streamed(Code::Ok))).await;
    for name in ["retries", "transparent_retries", "hedges", "retry_delay"] {
        let points = recorded.counted.points(&format!("grpc.client.call.{name}"));
        assert!(points.is_empty(), "{name}: 0 is not written");
    }
}

/// RP-08: experimental, so nobody gets them unasked.
#[tokio::test]
async fn grpcs_own_metrics_of_retries_are_off_by_default() {
    let counted = Counted::new();
    let resent = service_fn(|_: Request<()>| async {
        let mut scope = Scope::join(LayerKind::Retry, "catalog".into());
        scope.set_attempt(2, 3, Cause::Retry);
        scope.enter(|| CallContext::note_resend(MS));
        Ok::<_, BoxError>(trailers_only(Code::Ok))
    });
    let layer = OperationLayer::grpc("catalog").meter_provider(&counted.provider);
    let mut service = layer.layer(resent);
    read(service.ready().await.unwrap().call(rpc(PATH)).await).await;
    assert!(counted.points("grpc.client.call.retries").is_empty());
    assert_eq!(counted.points("rpc.client.call.duration").len(), 1);
}
