//! All four kinds of call at their deadline: what the caller gets, and that whoever answers stops.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::stream::{self, Stream, StreamExt};
use mamparo::breaker::BreakerPolicy;
use mamparo::deadline::DeadlinePolicy;
use mamparo::stack::Stack;
use mamparo_core::clock;
use mamparo_testkit::grpc::{EchoClient, EchoRequest, connect};
use tokio::sync::mpsc::UnboundedReceiver;
use tonic::body::Body;
use tonic::client::GrpcService;
use tonic::{Code, Request, Status, Streaming};

use super::endless::{Endless, Run, Runs, serve, serve_bare, within};

const LIMIT: Duration = Duration::from_millis(200);

/// How far from the deadline the end may be, and how long whoever answers may go on after it.
const GRACE: Duration = Duration::from_millis(50);

/// How often a measurement is made, on a machine that does something else besides: the best one counts.
const TRIES: usize = 4;

/// An upload that says one thing and never ends.
fn upload() -> impl Stream<Item = EchoRequest> + Send + 'static {
    stream::iter([EchoRequest::text("a")]).chain(stream::pending())
}

/// Reads frames until there is a status in their place.
async fn read<T>(frames: Result<tonic::Response<Streaming<T>>, Status>) -> Status {
    let mut frames = match frames {
        Ok(frames) => frames.into_inner(),
        Err(status) => return status,
    };
    loop {
        match frames.message().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("an endless stream has ended"),
            Err(status) => return status,
        }
    }
}

/// Makes a call `TRIES` times, and looks at its best end: the status at the deadline, and the handler gone soon after.
async fn ends<F>(runs: &mut UnboundedReceiver<Run>, call: impl Fn() -> F) -> usize
where
    F: Future<Output = Status>,
{
    let (mut early, mut late) = (Duration::MAX, Duration::MAX);
    let (mut gone, mut produced) = (Duration::MAX, 0);
    for _ in 0..TRIES {
        let start = clock::now();
        let status = call().await;
        assert_eq!(status.code(), Code::DeadlineExceeded, "{status:?}");
        let end = clock::now();
        let took = end - start;
        early = early.min(LIMIT.saturating_sub(took));
        late = late.min(took.saturating_sub(LIMIT));
        let run = runs.recv().await.unwrap();
        gone = gone.min(run.gone().await.saturating_duration_since(end));
        produced = produced.max(run.produced());
    }
    assert!(early <= GRACE, "{early:?} before the deadline");
    assert!(late <= GRACE, "{late:?} after the deadline");
    assert!(gone <= GRACE, "the handler went on for {gone:?}");
    produced
}

/// All four kinds.
async fn all_end<S>(client: EchoClient<S>, mut runs: UnboundedReceiver<Run>)
where
    S: GrpcService<Body> + Clone,
    S::Error: Into<tonic::codegen::StdError>,
    S::ResponseBody: http_body_util::BodyExt<Data = bytes::Bytes> + Send + 'static,
    <S::ResponseBody as tonic::codegen::Body>::Error: Into<tonic::codegen::StdError> + Send,
{
    let runs = &mut runs;
    let client = || client.clone();
    let request = || EchoRequest::text("a");
    ends(runs, || async {
        client().say(request()).await.unwrap_err()
    })
    .await;
    let produced = ends(runs, || async {
        read(client().count(request()).await).await
    })
    .await;
    assert!(
        (2..=4).contains(&produced),
        "{produced} frames of an endless stream"
    );
    ends(runs, || async {
        client().collect(upload()).await.unwrap_err()
    })
    .await;
    ends(runs, || async { read(client().chat(upload()).await).await }).await;
}

/// Rows P-A6 and P-A7, `ST-01`: the server knows of no deadline, and is told by the reset of its stream.
#[tokio::test]
async fn a_call_of_any_kind_ends_at_its_callers_deadline_and_the_server_stops() {
    let (service, runs) = Runs::new();
    let server = serve_bare(Endless(service)).await;
    // So many calls that are cut would open it.
    let stack = Stack::grpc("echo").breaker(BreakerPolicy::off());
    let stack = stack.deadline(DeadlinePolicy::within(LIMIT).unwrap());
    let client = mamparo::client::tonic(connect(server.address()), &stack);
    all_end(EchoClient::new(client), runs).await;
}

/// Rows P-A6 and P-A7, `ST-02`, `DL-06`: the caller knows of none.
#[tokio::test]
async fn a_call_of_any_kind_ends_at_its_servers_deadline_in_grpcs_words() {
    let (service, runs) = Runs::new();
    let address = serve(Endless(service), within(LIMIT)).await;
    all_end(EchoClient::new(connect(address)), runs).await;
}

fn client_within(
    address: SocketAddr,
    limit: Duration,
) -> EchoClient<mamparo::client::TonicClient<tonic::transport::Channel>> {
    let stack = Stack::grpc("echo").deadline(DeadlinePolicy::within(limit).unwrap());
    EchoClient::new(mamparo::client::tonic(connect(address), &stack))
}

/// Row P-A1, `DL-03`: by hand, through tonic's own `set_timeout`.
#[tokio::test]
async fn a_timeout_set_by_hand_shortens_the_deadline_and_never_leaves_when_it_is_longer() {
    let (service, mut runs) = Runs::new();
    let address = serve(Endless(service), within(Duration::from_secs(60))).await;
    for (own, by_hand) in [(LIMIT, 30 * LIMIT), (30 * LIMIT, LIMIT)] {
        let mut request = Request::new(EchoRequest::text("a"));
        request.set_timeout(by_hand);
        let start = clock::now();
        let status = client_within(address, own).say(request).await.unwrap_err();
        assert_eq!(status.code(), Code::DeadlineExceeded, "{status:?}");
        assert!(start.elapsed() < 10 * LIMIT, "{:?}", start.elapsed());
        let told = runs.recv().await.unwrap().remaining.unwrap();
        assert!(told <= LIMIT, "{told:?} of {own:?}, {by_hand:?} by hand");
    }
}

/// `ST-04`: the server's own limit is not our deadline, which is far off.
#[tokio::test]
async fn a_cancelled_call_whose_deadline_has_not_passed_stays_cancelled() {
    let (service, _runs) = Runs::new();
    let incoming = tonic::transport::server::TcpIncoming::bind("127.0.0.1:0".parse().unwrap());
    let incoming = incoming.unwrap();
    let address = incoming.local_addr().unwrap();
    let server = tonic::transport::Server::builder()
        .timeout(LIMIT / 2)
        .add_service(mamparo_testkit::grpc::EchoServer::new(Endless(service)));
    tokio::spawn(server.serve_with_incoming(incoming));
    let cases = [
        (30 * LIMIT, Code::Cancelled),
        (LIMIT / 2, Code::DeadlineExceeded),
    ];
    for (limit, code) in cases {
        let mut client = client_within(address, limit);
        let status = client.say(EchoRequest::text("a")).await.unwrap_err();
        assert_eq!(status.code(), code, "within {limit:?}: {status:?}");
    }
}
