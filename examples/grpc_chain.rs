//! Shows three tonic services in a chain: less time at each hop, and one waterfall of all that they sent and served.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use mamparo::client::TonicClient;
use mamparo::deadline::DeadlinePolicy;
use mamparo::serve;
use mamparo::stack::Stack;
use mamparo_core::grpc::Grpc;
use mamparo_core::{BoxError, CallContext, clock};
use mamparo_telemetry::attempt::GrpcSend;
use mamparo_telemetry::operation::GrpcCall;
use mamparo_telemetry::{AttemptLayer, OperationLayer, ServerCallLayer};
use mamparo_testkit::grpc::{Echo, EchoClient, EchoReply, EchoRequest, EchoServer, Echoing};
use opentelemetry::trace::SpanId;
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Code, Request, Response, Status, Streaming};

/// How long each service works before it asks the next one.
const WORKS: Duration = Duration::from_millis(60);

type Recorded = (OperationLayer<Grpc, GrpcCall>, AttemptLayer<Grpc, GrpcSend>);
type Next =
    EchoClient<TonicClient<Channel, OperationLayer<Grpc, GrpcCall>, AttemptLayer<Grpc, GrpcSend>>>;

/// One service of the chain.
struct Hop {
    name: &'static str,
    /// The one that it asks; the last one answers itself.
    next: Option<Next>,
    lefts: Lefts,
    served: AtomicU32,
}

/// What each hop had left, in the order in which they were asked.
#[derive(Clone, Debug, Default)]
struct Lefts(Arc<Mutex<Vec<Duration>>>);

impl Lefts {
    fn note(&self, name: &str) {
        let left = CallContext::current()
            .deadline()
            .map(|deadline| deadline.remaining(clock::now()));
        println!("{name:>8}: {:>7.1?} left", left.unwrap_or(Duration::MAX));
        let mut lefts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lefts.push(left.unwrap_or(Duration::MAX));
    }

    fn take(&self) -> Vec<Duration> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[tonic::async_trait]
impl Echo for Hop {
    type CountStream = <Echoing as Echo>::CountStream;
    type ChatStream = <Echoing as Echo>::ChatStream;

    /// Works a while, then asks the next one, which inherits the deadline with no code here.
    async fn say(&self, request: Request<EchoRequest>) -> Result<Response<EchoReply>, Status> {
        self.lefts.note(self.name);
        tokio::time::sleep(WORKS).await;
        match &self.next {
            Some(next) => next.clone().say(request.into_inner()).await,
            // The last one is not ready the first time.
            None if self.served.fetch_add(1, Ordering::Relaxed) == 0 => {
                Err(Status::unavailable("warming up"))
            }
            None => Echoing.say(request).await,
        }
    }

    async fn count(
        &self,
        request: Request<EchoRequest>,
    ) -> Result<Response<Self::CountStream>, Status> {
        Echoing.count(request).await
    }

    async fn collect(
        &self,
        request: Request<Streaming<EchoRequest>>,
    ) -> Result<Response<EchoReply>, Status> {
        Echoing.collect(request).await
    }

    async fn chat(
        &self,
        request: Request<Streaming<EchoRequest>>,
    ) -> Result<Response<Self::ChatStream>, Status> {
        Echoing.chat(request).await
    }
}

/// Starts a service; its caller's deadline and trace go on in it.
fn start(hop: Hop, traces: &SdkTracerProvider) -> Result<SocketAddr, BoxError> {
    let incoming = TcpIncoming::bind("127.0.0.1:0".parse()?)?;
    let address = incoming.local_addr()?;
    let server = Server::builder()
        .layer(ServerCallLayer::grpc().tracer_provider(traces))
        .layer(serve::grpc())
        .add_service(EchoServer::new(hop));
    tokio::spawn(server.serve_with_incoming(incoming));
    Ok(address)
}

/// A generated client behind the whole stack.
fn client(
    name: &'static str,
    address: SocketAddr,
    within: Duration,
    traces: &SdkTracerProvider,
) -> Result<Next, BoxError> {
    let (operation, attempt): Recorded = (OperationLayer::grpc(name), AttemptLayer::grpc(name));
    let stack = Stack::grpc(name)
        .deadline(DeadlinePolicy::within(within)?)
        .telemetry(
            operation.tracer_provider(traces),
            attempt.tracer_provider(traces),
        );
    let channel = Endpoint::from_shared(format!("http://{address}"))?.connect_lazy();
    Ok(EchoClient::new(mamparo::client::tonic(channel, &stack)))
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let exporter = InMemorySpanExporter::default();
    let traces = SdkTracerProvider::builder()
        .with_simple_exporter(exporter.clone())
        .build();
    let lefts = Lefts::default();
    let hop = |name, next| Hop {
        name,
        next,
        lefts: lefts.clone(),
        served: AtomicU32::new(0),
    };

    let long = Duration::from_secs(10);
    let stock = start(hop("stock", None), &traces)?;
    let prices = client("stock", stock, long, &traces)?;
    let prices = start(hop("prices", Some(prices)), &traces)?;
    let orders = client("prices", prices, long, &traces)?;
    let orders = start(hop("orders", Some(orders)), &traces)?;

    let mut patient = client("orders", orders, Duration::from_secs(1), &traces)?;
    let reply = patient
        .say(EchoRequest::text("7 chairs"))
        .await?
        .into_inner();
    println!("  caller: {} from the last of three\n", reply.text);
    let had = lefts.take();
    // The last one was asked twice.
    assert_eq!(had.len(), 4);
    assert!(
        had.windows(2).all(|pair| pair[1] + WORKS / 2 < pair[0]),
        "{had:?}"
    );

    let spans = exporter.get_finished_spans()?;
    waterfall(&spans);
    exporter.reset();

    let start = clock::now();
    let mut hasty = client("orders", orders, WORKS * 2, &traces)?;
    let Err(status) = hasty.say(EchoRequest::text("a table")).await else {
        return Err("three services were faster than they can be".into());
    };
    println!(
        "  caller: {} after {:.0?}",
        status.message(),
        start.elapsed()
    );
    assert_eq!(status.code(), Code::DeadlineExceeded);
    assert!(start.elapsed() < WORKS * 4);
    Ok(())
}

/// Draws the spans of one trace, each below the one that it belongs to.
fn waterfall(spans: &[SpanData]) {
    let traces: std::collections::HashSet<_> = spans
        .iter()
        .map(|span| span.span_context.trace_id())
        .collect();
    assert_eq!(traces.len(), 1, "one trace");
    let begin = spans.iter().map(|span| span.start_time).min();
    let end = spans.iter().map(|span| span.end_time).max();
    let (Some(begin), Some(end)) = (begin, end) else {
        return;
    };
    let drawn = draw(spans, SpanId::INVALID, 0, (begin, end));
    assert_eq!(drawn, spans.len(), "every span is below another");
    println!();
}

fn draw(
    spans: &[SpanData],
    parent: SpanId,
    depth: usize,
    (begin, end): (SystemTime, SystemTime),
) -> usize {
    const WIDTH: f64 = 40.0;
    let mut below: Vec<_> = spans
        .iter()
        .filter(|span| span.parent_span_id == parent)
        .collect();
    below.sort_by_key(|span| span.start_time);
    let mut drawn = below.len();
    for span in below {
        let since = |time: SystemTime| time.duration_since(begin).unwrap_or_default();
        let whole = since(end).as_secs_f64();
        let column = |time| (since(time).as_secs_f64() / whole * WIDTH) as usize;
        let (from, to) = (column(span.start_time), column(span.end_time));
        let name = span.name.replace("mamparo.test.v1.", "");
        let label = format!("{:depth$}{name} ({:?})", "", span.span_kind);
        let bar = "━".repeat((to - from).max(1));
        let length = since(span.end_time) - since(span.start_time);
        println!("{label:<36} {:from$}{bar} {length:.0?}", "");
        drawn += draw(spans, span.span_context.span_id(), depth + 1, (begin, end));
    }
    drawn
}
