//! A client with the protecting layers, a server, and a proxy between them that can spoil everything.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use axum::body::HttpBody;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::connect::HttpConnector;
use mamparo::attempt_timeout::AttemptPolicy;
use mamparo::breaker::BreakerPolicy;
use mamparo::bulkhead::BulkheadPolicy;
use mamparo::connect_timeout::ConnectTimeoutLayer;
use mamparo::deadline::DeadlinePolicy;
use mamparo::retry::RetryPolicy;
use mamparo::stack::Stack;
use mamparo_core::clock::{self, Instant};
use mamparo_core::{Backoff, BoxError, Budget};
use mamparo_testkit::proxy::FaultProxy;
use mamparo_testkit::server::{Replies, Server};
use tokio::task::{JoinError, JoinSet};
use tower::ServiceExt;
use tower::layer::util::Identity;
use tower::util::{BoxCloneSyncService, MapRequestLayer};

/// Nobody waits longer than this for an operation.
pub(super) const DEADLINE: Duration = Duration::from_millis(1_500);

/// Nor for one attempt.
pub(super) const ATTEMPT: Duration = Duration::from_millis(500);

/// Operations that the bulkhead lets run at once, and those that wait in its line.
pub(super) const PLACES: usize = 8;
pub(super) const LINE: usize = 4;

/// What a busy machine may add to any time.
pub(super) const SLACK: Duration = Duration::from_millis(300);

/// What operations pay in for resends, and what is there besides each second.
const RATIO: f64 = 0.2;
const PER_SECOND: u32 = 2;

/// How long an operation took, and what it came to.
type Ended = (Duration, Result<Bytes, BoxError>);

type Call = BoxCloneSyncService<Request<Full<Bytes>>, Bytes, BoxError>;

/// A client, a server and what lies between.
pub(super) struct Rig {
    pub(super) server: Server,
    pub(super) proxy: FaultProxy,
    client: Call,
    started: Instant,
    operations: Arc<AtomicUsize>,
    sends: Arc<AtomicUsize>,
}

/// What came of some operations.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) operations: usize,
    pub(super) answered: usize,
    /// Physical sends, whether or not they reached the server.
    pub(super) sends: usize,
    pub(super) longest: Duration,
    /// What the others ended with, and how many.
    pub(super) errors: BTreeMap<String, usize>,
}

impl Rig {
    pub(super) async fn start(replies: impl Into<Replies>) -> Self {
        Self::before(Server::start(replies).await).await
    }

    async fn before(server: Server) -> Self {
        let proxy = FaultProxy::start(server.address()).await;
        let sends = Arc::new(AtomicUsize::new(0));
        let client = client(Arc::clone(&sends));
        Self {
            server,
            proxy,
            client,
            started: clock::now(),
            operations: Arc::default(),
            sends,
        }
    }

    /// Before a server that works so long for each request; says how many it ever works for at once.
    pub(super) async fn before_work(time: Duration) -> (Self, Arc<Work>) {
        let work = Arc::new(Work::default());
        let at_work = Arc::clone(&work);
        let server = Server::with(move |_| {
            let work = Arc::clone(&at_work);
            async move {
                work.run(time).await;
                Response::new(Full::from("done"))
            }
        });
        (Self::before(server.await).await, work)
    }

    /// Makes one operation, reads its answer whole, and says how long that took.
    pub(super) fn call(&self) -> impl Future<Output = Ended> + Send + use<> {
        let request = Request::get(self.proxy.url("/")).body(Full::default());
        let client = self.client.clone();
        self.operations.fetch_add(1, SeqCst);
        async move {
            let start = clock::now();
            let result = client.oneshot(request.unwrap()).await;
            (start.elapsed(), result)
        }
    }

    /// Makes operations, so many at once.
    pub(super) async fn run(&self, operations: usize, at_once: usize) -> Report {
        let sent = self.sends();
        let mut report = Report::new(operations);
        let mut running = JoinSet::new();
        for _ in 0..operations {
            if running.len() == at_once {
                report.add(running.join_next().await);
            }
            running.spawn(self.call());
        }
        while !running.is_empty() {
            report.add(running.join_next().await);
        }
        report.sends = self.sends() - sent;
        report
    }

    pub(super) fn sends(&self) -> usize {
        self.sends.load(SeqCst)
    }

    /// What must hold whatever is wrong: everybody has an answer in time, the resends stay within what is paid for, and
    /// nothing works on once nobody waits.
    pub(super) async fn assert_kept(&self, report: &Report) {
        assert!(report.longest <= DEADLINE + SLACK, "{report:?}");
        // Since the beginning: what is not spent on resends at once may be later.
        let operations = self.operations.load(SeqCst);
        let seconds = self.started.elapsed().as_secs_f64() + 1.0;
        let paid = operations as f64 * RATIO + seconds * f64::from(PER_SECOND);
        let sends = self.sends();
        assert!(
            sends <= operations + paid as usize,
            "{sends} of {operations}: {report:?}"
        );
        self.assert_nothing_goes_on().await;
    }

    async fn assert_nothing_goes_on(&self) {
        let sent = self.sends();
        let ended = clock::now();
        tokio::time::sleep(SLACK).await;
        self.server.until_idle().await;
        assert_eq!(self.sends(), sent, "something was sent for nobody");
        let stopped = self.server.stopped_at();
        let late = |stop: Instant| stop.saturating_duration_since(ended) > SLACK;
        assert!(!stopped.is_some_and(late), "the server worked for nobody");
    }

    /// Waits until operations are answered again, once nothing is wrong any more.
    pub(super) async fn assert_recovers(&self) {
        for _ in 0..50 {
            if self.call().await.1.is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("no operation is answered, although nothing is wrong any more");
    }
}

/// What a server is working for.
#[derive(Debug, Default)]
pub(super) struct Work {
    running: AtomicUsize,
    most: AtomicUsize,
}

impl Work {
    async fn run(&self, time: Duration) {
        let running = self.running.fetch_add(1, SeqCst) + 1;
        self.most.fetch_max(running, SeqCst);
        tokio::time::sleep(time).await;
        self.running.fetch_sub(1, SeqCst);
    }

    /// The most requests at once.
    pub(super) fn most(&self) -> usize {
        self.most.load(SeqCst)
    }
}

impl Report {
    const fn new(operations: usize) -> Self {
        Self {
            operations,
            answered: 0,
            sends: 0,
            longest: Duration::ZERO,
            errors: BTreeMap::new(),
        }
    }

    fn add(&mut self, ended: Option<Result<Ended, JoinError>>) {
        let (took, result) = ended.unwrap().unwrap();
        self.longest = self.longest.max(took);
        match result {
            Ok(_) => self.answered += 1,
            Err(error) => *self.errors.entry(error.to_string()).or_default() += 1,
        }
    }
}

/// The recommended stack, around a pooled client.
fn client(sends: Arc<AtomicUsize>) -> Call {
    let backoff = Backoff::builder()
        .base(Duration::from_millis(20))
        .cap(Duration::from_millis(100));
    let budget = Budget::builder().ratio(RATIO).min_per_second(PER_SECOND);
    let retry = RetryPolicy::builder()
        .backoff(backoff.build().unwrap())
        .budget(budget.build().unwrap());
    let attempt = AttemptPolicy::builder().timeout(ATTEMPT).body_idle(ATTEMPT);
    // So long that no call is refused that only waits for its turn on a busy machine.
    let bulkhead = BulkheadPolicy::builder()
        .limit(PLACES)
        .max_waiting(LINE)
        .max_wait(DEADLINE / 2);
    let open = Duration::from_millis(300);
    let breaker = BreakerPolicy::builder().open_wait(open, 2 * open);
    let count = move |request| {
        sends.fetch_add(1, SeqCst);
        request
    };
    let stack = Stack::http("peer")
        .deadline(DeadlinePolicy::within(DEADLINE).unwrap())
        .bulkhead(bulkhead.build().unwrap())
        .retry(retry.build().unwrap())
        .breaker(breaker.build().unwrap())
        .attempt(attempt.build().unwrap())
        .connect_timeout(ConnectTimeoutLayer::new(ATTEMPT).unwrap())
        .telemetry(Identity::new(), MapRequestLayer::new(count));
    let client = mamparo::client::hyper(HttpConnector::new(), &stack);
    BoxCloneSyncService::new(client.and_then(read))
}

async fn read<B>(answer: Response<B>) -> Result<Bytes, BoxError>
where
    B: HttpBody<Data = Bytes, Error = BoxError>,
{
    if !answer.status().is_success() {
        return Err(answer.status().to_string().into());
    }
    Ok(answer.into_body().collect().await?.to_bytes())
}
