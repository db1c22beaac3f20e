use std::convert::Infallible;
use std::time::Duration;

use http::{HeaderValue, Request, Response};
use mamparo_core::grpc::{Code, GRPC_MESSAGE};
use mamparo_core::{BoxError, Reason, Rejection};
use mamparo_testkit::body::{Frames, ScriptedBody};
use mamparo_testkit::service::Step;
use opentelemetry::trace::{SpanId, SpanKind, Status, TraceContextExt, TraceId};
use opentelemetry::{Context, Value};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{Sampler, SpanData};
use tower::{Layer, ServiceExt, service_fn};

use super::*;
use crate::AttemptLayer;
use crate::testing::{
    Counted, Kept, Look, answer, get, read, rpc, spoken, streamed, trailers_only, transport,
};

const MS: Duration = Duration::from_millis(1);
const CALLER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// What tonic answers a path that it has no method for.
fn fallback() -> Response<ScriptedBody> {
    let mut response = trailers_only(Code::Unimplemented);
    response.headers_mut().remove(GRPC_MESSAGE);
    response
}

struct Served {
    kept: Kept,
    counted: Counted,
}

impl Served {
    fn new() -> Self {
        Self {
            kept: Kept::all(),
            counted: Counted::new(),
        }
    }

    fn grpc(&self) -> ServerCallLayer<mamparo_core::grpc::Grpc, GrpcServed> {
        ServerCallLayer::grpc()
            .tracer_provider(&self.kept.provider)
            .meter_provider(&self.counted.provider)
    }

    async fn rpc(&self, path: &str, step: Step<Response<ScriptedBody>>) -> SpanData {
        let service = self.grpc().layer(transport([step]));
        read(service.oneshot(rpc(path)).await).await;
        self.kept.spans().pop().unwrap()
    }

    fn points(&self) -> Vec<String> {
        let points = self.counted.points("rpc.server.call.duration");
        points.into_keys().collect()
    }
}

/// RP-03, RP-04, RP-06.
#[tokio::test]
async fn a_served_rpc_is_one_server_span_and_one_measurement() {
    let served = Served::new();
    let span = served
        .rpc("/shop.Served/Ok", Step::answer(streamed(Code::Ok)))
        .await;
    assert_eq!(span.name, "shop.Served/Ok");
    assert_eq!(span.span_kind, SpanKind::Server);
    assert_eq!(span.status, Status::Unset);
    let text = |key: &str| span.text(key);
    assert_eq!(text("rpc.system.name").unwrap(), "grpc");
    assert_eq!(text("rpc.method").unwrap(), "shop.Served/Ok");
    assert_eq!(text("rpc.status_code").unwrap(), "OK");
    assert_eq!(text("server.address").unwrap(), "catalog");
    assert_eq!(span.value("server.port"), Some(Value::I64(50051)));
    let line = "rpc.method=shop.Served/Ok rpc.status_code=OK rpc.system.name=grpc";
    assert_eq!(served.points(), [line]);
}

/// RP-05, RP-V1: the statuses that say that the request was at fault are no errors of the server.
#[tokio::test]
async fn some_statuses_are_no_errors_of_the_server() {
    let errors = [
        Code::Unknown,
        Code::DeadlineExceeded,
        Code::Unimplemented,
        Code::Internal,
        Code::Unavailable,
        Code::DataLoss,
    ];
    for code in Code::ALL {
        for answer in [trailers_only(code), streamed(code)] {
            let served = Served::new();
            let span = served.rpc("/shop.Served/Codes", Step::answer(answer)).await;
            let name = code.as_str();
            let is_error = errors.contains(&code);
            assert_eq!(span.status == Status::error(""), is_error, "{name}");
            let error = is_error.then(|| name.to_owned());
            assert_eq!(span.text("error.type"), error, "{name}");
            assert_eq!(span.text("rpc.status_code").unwrap(), name);
            let points = served.points();
            assert_eq!(points[0].contains("error.type"), is_error, "{points:?}");
        }
    }
}

/// RP-V4: what the server does not know is told apart on its span alone.
#[tokio::test]
async fn a_path_that_the_server_does_not_know_is_other() {
    for path in ["/x/y", "/no", "/a/b/c"] {
        let served = Served::new();
        let span = served.rpc(path, Step::answer(fallback())).await;
        assert_eq!(span.name, "grpc");
        assert_eq!(span.text("rpc.method").unwrap(), "_OTHER");
        assert_eq!(span.text("rpc.method_original").unwrap(), path[1..]);
        assert_eq!(span.text("error.type").unwrap(), "UNIMPLEMENTED");
        let line = "error.type=UNIMPLEMENTED rpc.method=_OTHER rpc.status_code=UNIMPLEMENTED \
                    rpc.system.name=grpc";
        assert_eq!(served.points(), [line]);
    }
}

/// RP-V4: a method that is there may say that it is not implemented.
#[tokio::test]
async fn a_method_that_says_itself_that_it_is_not_implemented_is_known() {
    let served = Served::new();
    let says = Step::answer(trailers_only(Code::Unimplemented));
    let span = served.rpc("/shop.Served/Later", says).await;
    assert_eq!(span.name, "shop.Served/Later");
    assert_eq!(span.text("rpc.method").unwrap(), "shop.Served/Later");
    let span = served
        .rpc("/shop.Served/Later", Step::answer(fallback()))
        .await;
    assert_eq!(
        span.text("rpc.method").unwrap(),
        "shop.Served/Later",
        "now it is"
    );
}

/// RP-V4, by a list.
#[tokio::test]
async fn methods_that_are_listed_are_the_only_ones() {
    let served = Served::new();
    let layer = served
        .grpc()
        .methods(["shop.Listed/Find", "/shop.Listed/List"]);
    let paths = ["/shop.Listed/Find", "/shop.Listed/List", "/shop.Listed/Buy"];
    for path in paths {
        let script = transport([Step::answer(streamed(Code::Ok))]);
        read(layer.layer(script).oneshot(rpc(path)).await).await;
    }
    let spans = served.kept.spans();
    let names: Vec<&str> = spans.iter().map(|span| &*span.name).collect();
    assert_eq!(names, ["shop.Listed/Find", "shop.Listed/List", "grpc"]);
    assert_eq!(
        spans[2].text("rpc.method_original").unwrap(),
        "shop.Listed/Buy"
    );
}

/// An error that nobody turns into an answer: a layer's refusal, say.
#[tokio::test]
async fn what_a_layer_refuses_has_the_status_that_it_stands_for() {
    let served = Served::new();
    let refused = Rejection::refused(Reason::BulkheadFull, "here".into());
    let span = served.rpc("/shop.Served/Full", Step::error(refused)).await;
    assert_eq!(span.text("rpc.status_code").unwrap(), "RESOURCE_EXHAUSTED");
    assert_eq!(span.status, Status::Unset, "by the table");
    let expired = Rejection::cut(Reason::DeadlineExceeded, "here".into());
    let span = served.rpc("/shop.Served/Late", Step::error(expired)).await;
    assert_eq!(span.text("rpc.status_code").unwrap(), "DEADLINE_EXCEEDED");
    assert_eq!(span.status, Status::error(""));
}

/// ES-08, P-D8: a caller that goes away.
#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_is_no_error() {
    let served = Served::new();
    let stream = spoken(Frames::new().data("m").hang());
    let script = transport([
        Step::answer(stream),
        Step::answer(streamed(Code::Ok)).after(9 * MS),
    ]);
    let service = served.grpc().layer(script);
    drop(
        service
            .clone()
            .oneshot(rpc("/shop.Served/Gone"))
            .await
            .unwrap(),
    );
    let call = service.oneshot(rpc("/shop.Served/Gone"));
    tokio::time::timeout(MS, call).await.unwrap_err();
    for span in served.kept.spans() {
        assert_eq!(span.status, Status::Unset);
        assert_eq!(span.text("rpc.status_code").unwrap(), "CANCELLED");
        assert_eq!(span.value("error.type"), None);
    }
}

/// Law 9: a stream's span ends with it.
#[tokio::test(start_paused = true)]
async fn a_served_streams_span_ends_with_its_trailers() {
    let served = Served::new();
    let frames = Frames::new().data("m").wait(25 * MS);
    let stream = spoken(frames.trailer("grpc-status", "15"));
    let span = served
        .rpc("/shop.Served/Stream", Step::answer(stream))
        .await;
    let lasted = span.end_time.duration_since(span.start_time).unwrap();
    assert_eq!(lasted, 25 * MS);
    assert_eq!(span.text("error.type").unwrap(), "DATA_LOSS");
}

fn called(path: &str, parent: &str) -> Request<()> {
    let mut request = rpc(path);
    let headers = request.headers_mut();
    headers.insert("traceparent", HeaderValue::from_str(parent).unwrap());
    headers.insert("tracestate", HeaderValue::from_static("a=1,b=2"));
    request
}

/// What a handler calls on its way, and in its stream, lies below the span of the call that it serves.
#[tokio::test]
async fn a_span_continues_its_callers_and_what_is_called_inside_lies_below_it() {
    let served = Served::new();
    let client = AttemptLayer::grpc("stock").tracer_provider(&served.kept.provider);
    let seen = transport([Step::answer(streamed(Code::Ok))]);
    let inner = client.layer(seen.clone());
    let handler = service_fn(move |_: Request<()>| {
        let inner = inner.clone();
        async move {
            read(inner.oneshot(rpc("/shop.Stock/Count")).await).await;
            Ok::<_, Infallible>(streamed(Code::Ok))
        }
    });
    let service = served.grpc().layer(handler);
    let answered: Result<_, Infallible> = service.oneshot(called("/shop.Served/In", CALLER)).await;
    read(answered.map_err(BoxError::from)).await;
    let spans = served.kept.spans();
    let [inside, span] = &spans[..] else {
        panic!("{spans:?}");
    };
    let trace = TraceId::from_hex("0af7651916cd43dd8448eb211c80319c").unwrap();
    assert_eq!(span.span_context.trace_id(), trace);
    assert_eq!(
        span.parent_span_id,
        SpanId::from_hex("b7ad6b7169203331").unwrap()
    );
    assert!(span.parent_span_is_remote);
    assert_eq!(span.span_context.trace_state().header(), "a=1,b=2");
    assert_eq!(inside.span_context.trace_id(), trace);
    assert_eq!(inside.parent_span_id, span.span_context.span_id());
    assert_eq!(seen.requests()[0]["tracestate"], "a=1,b=2");
}

/// A stream makes its calls while it is read.
#[tokio::test]
async fn a_served_span_is_current_while_its_stream_is_read() {
    let served = Served::new();
    let handler = service_fn(|_: Request<()>| async {
        let body = Watching(None);
        let mut response = spoken(Frames::new()).map(|_| body);
        *response.version_mut() = http::Version::HTTP_2;
        Ok::<_, Infallible>(response)
    });
    let service = served.grpc().layer(handler);
    let answered = service.oneshot(rpc("/shop.Served/Watch")).await.unwrap();
    let mut body = std::pin::pin!(answered.into_body());
    let frame = std::future::poll_fn(|cx| http_body::Body::poll_frame(body.as_mut(), cx)).await;
    let trailers = frame.unwrap().unwrap().into_trailers().unwrap();
    let span = served.kept.only();
    assert_eq!(trailers["span"], span.span_context.span_id().to_string());
}

/// A body that says which span is current as it is read.
struct Watching(Option<()>);

impl http_body::Body for Watching {
    type Data = bytes::Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Self::Data>, BoxError>>> {
        if self.0.replace(()).is_some() {
            return std::task::Poll::Ready(None);
        }
        let span = Context::current().span().span_context().span_id();
        let mut trailers = http::HeaderMap::new();
        trailers.insert("span", span.to_string().parse().unwrap());
        trailers.insert("grpc-status", HeaderValue::from_static("0"));
        std::task::Poll::Ready(Some(Ok(http_body::Frame::trailers(trailers))))
    }
}

/// A caller that does not sample is obeyed by what is called inside, although nothing is recorded here.
#[tokio::test]
async fn what_the_caller_did_not_sample_is_not_sampled_further_in() {
    let served = Served::new();
    let client = AttemptLayer::grpc("stock").tracer_provider(&served.kept.provider);
    let seen = transport([Step::answer(streamed(Code::Ok))]);
    let inner = client.layer(seen.clone());
    let handler = service_fn(move |_: Request<()>| inner.clone().oneshot(rpc("/shop.Stock/Un")));
    let unsampled = CALLER.replace("-01", "-00");
    let service = served.grpc().layer(handler);
    read(service.oneshot(called("/shop.Served/Un", &unsampled)).await).await;
    assert_eq!(served.kept.spans().len(), 0);
    let sent = seen.requests()[0]["traceparent"]
        .to_str()
        .unwrap()
        .to_owned();
    assert_eq!(sent[..36], unsampled[..36], "the same trace");
    assert!(sent.ends_with("-00"), "{sent}");
}

/// A propagator of another form, and none of ours where it says nothing.
#[tokio::test]
async fn a_propagator_that_is_passed_in_reads_the_caller() {
    let served = Served::new();
    let layer = served.grpc().propagator(TraceContextPropagator::new());
    let script = transport([Step::answer(streamed(Code::Ok))]);
    read(
        layer
            .layer(script)
            .oneshot(called("/shop.Served/Prop", CALLER))
            .await,
    )
    .await;
    let span = served.kept.only();
    assert_eq!(
        span.parent_span_id,
        SpanId::from_hex("b7ad6b7169203331").unwrap()
    );
}

#[tokio::test]
async fn a_call_without_a_caller_begins_a_trace_or_lies_below_what_is_current() {
    let served = Served::new();
    let span = served
        .rpc("/shop.Served/Root", Step::answer(streamed(Code::Ok)))
        .await;
    assert_eq!(span.parent_span_id, SpanId::INVALID);
}

mod http_requests {
    use super::*;

    async fn serve(status: u16, request: Request<()>) -> (SpanData, Vec<String>) {
        let served = Served::new();
        let layer = ServerCallLayer::http()
            .route(|extensions| extensions.get::<&'static str>().copied())
            .tracer_provider(&served.kept.provider)
            .meter_provider(&served.counted.provider);
        let script = transport([Step::answer(answer(status, Frames::new()))]);
        read(layer.layer(script).oneshot(request).await).await;
        let points = served.counted.points("http.server.request.duration");
        (served.kept.only(), points.into_keys().collect())
    }

    /// The conventions' HTTP server span: OT-03, OT-10.
    #[tokio::test]
    async fn a_served_request_is_one_server_span_and_one_measurement() {
        let mut request = get("https://shop/items/7?sig=secret&page=2");
        request.extensions_mut().insert("/items/{id}");
        let agent = HeaderValue::from_static("curl/8");
        request.headers_mut().insert("user-agent", agent);
        let (span, points) = serve(200, request).await;
        assert_eq!(span.name, "GET /items/{id}");
        assert_eq!(span.span_kind, SpanKind::Server);
        for (key, value) in [
            ("http.request.method", "GET"),
            ("http.route", "/items/{id}"),
            ("url.path", "/items/7"),
            ("url.query", "sig=REDACTED&page=2"),
            ("url.scheme", "https"),
            ("server.address", "shop"),
            ("user_agent.original", "curl/8"),
            ("network.protocol.version", "1.1"),
            ("http.response.status_code", "200"),
        ] {
            let found = span.value(key).map(|value| value.to_string());
            assert_eq!(found.as_deref(), Some(value), "{key}");
        }
        let line = "http.request.method=GET http.response.status_code=200 \
                    http.route=/items/{id} network.protocol.version=1.1 url.scheme=https";
        assert_eq!(points, [line]);
    }

    /// ES-03, ES-04.
    #[tokio::test]
    async fn a_request_that_is_at_fault_is_no_error_of_the_server() {
        let (span, points) = serve(404, get("/nowhere")).await;
        assert_eq!((span.name.as_ref(), &span.status), ("GET", &Status::Unset));
        assert_eq!(span.value("error.type"), None);
        assert!(!points[0].contains("error.type"), "{points:?}");
        assert!(!points[0].contains("nowhere"), "{points:?}");
        let (span, points) = serve(503, get("/down")).await;
        assert_eq!(span.status, Status::error(""));
        assert_eq!(span.text("error.type").unwrap(), "503");
        assert!(points[0].contains("error.type=503"), "{points:?}");
    }
}

/// A sampler that refuses here is heard by what is called inside.
#[tokio::test]
async fn what_is_refused_here_is_refused_further_in() {
    let kept = Kept::sampled(Sampler::AlwaysOff);
    let client = AttemptLayer::http("stock").tracer_provider(&kept.provider);
    let seen = transport([Step::answer(answer(200, Frames::new()))]);
    let inner = client.layer(seen.clone());
    let handler = service_fn(move |_: Request<()>| inner.clone().oneshot(get("http://stock/")));
    let layer = ServerCallLayer::http().tracer_provider(&kept.provider);
    read(layer.layer(handler).oneshot(called("/", CALLER)).await).await;
    let sent = seen.requests()[0]["traceparent"]
        .to_str()
        .unwrap()
        .to_owned();
    assert_eq!(sent[..36], CALLER[..36]);
    assert!(sent.ends_with("-00"), "{sent}");
}
