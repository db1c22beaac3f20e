//! A program that calls dependencies through stacks of ours, each with a trouble of its own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use axum::Router;
use axum::body::HttpBody;
use axum::routing::get;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty};
use mamparo::breaker::BreakerPolicy;
use mamparo::deadline::{DeadlineLayer, DeadlinePolicy};
use mamparo::fallback::{self, FallbackPolicy};
use mamparo::hedge::HedgePolicy;
use mamparo::rate_limit::RateLimitPolicy;
use mamparo::replay::ReplayBody;
use mamparo::retry::RetryPolicy;
use mamparo::stack::Stack;
use mamparo_core::clock::{self, Instant};
use mamparo_core::http::Http;
use mamparo_core::{Backoff, BoxError, Budget, CallContext, Kind};
use mamparo_telemetry::metrics::Places;
use mamparo_telemetry::prometheus::Exposition;
use mamparo_telemetry::{AttemptLayer, Metrics, OperationLayer};
use mamparo_testkit::body::ScriptedBody;
use mamparo_testkit::service::{Script, Step};
use tokio::time::{MissedTickBehavior, interval};
use tower::util::BoxCloneSyncService;
use tower::{Layer, Service, ServiceExt, service_fn};

use super::payments::Payments;

const MS: Duration = Duration::from_millis(1);

/// Operations a second, to each dependency.
const DEMAND: u32 = 20;

/// What the one dependency that asks for little is given.
const SHORT: Duration = Duration::from_millis(20);

type Sent = Request<ReplayBody<Empty<Bytes>>>;
type Answer = Response<ScriptedBody>;
type Transport = Script<Sent, Answer, ()>;
type Call = BoxCloneSyncService<Request<Empty<Bytes>>, (), BoxError>;

/// The program, calling and exposing its metrics for as long as its runtime lives.
pub(super) struct Shop {
    pub(super) address: SocketAddr,
    trouble: Arc<AtomicBool>,
    payments: Payments,
}

/// One send, as a dependency sees it.
struct Arrival {
    /// Which operation it belongs to, by the first attempts so far.
    operation: u64,
    attempt: u32,
    /// Since the program began.
    at: Duration,
    /// Whether the dependency is in trouble.
    ill: bool,
}

impl Arrival {
    /// Tells whether it is the first attempt of one operation in so many.
    const fn is_first_of(&self, every: u64) -> bool {
        self.attempt == 1 && self.operation.is_multiple_of(every)
    }
}

/// What a dependency does with a send.
type Behaviour = fn(&Arrival) -> Step<Answer>;

impl Shop {
    pub(super) async fn open() -> Self {
        let exposed = Exposition::new();
        let trouble = Arc::new(AtomicBool::new(false));
        let metrics = Metrics::of(exposed.provider());
        let payments = Payments::open(&metrics);
        Opening {
            metrics,
            exposed: exposed.clone(),
            trouble: Arc::clone(&trouble),
            since: clock::now(),
        }
        .call_all();
        let metrics = move || {
            let exposed = exposed.clone();
            async move { exposed.page().unwrap() }
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let routes = Router::new().route("/metrics", get(metrics));
        tokio::spawn(axum::serve(listener, routes).into_future());
        Self {
            address,
            trouble,
            payments,
        }
    }

    /// Lets each dependency come into its own trouble, but for those that are always well.
    pub(super) async fn make_trouble(&self) {
        self.trouble.store(true, Relaxed);
        self.payments.make_trouble().await;
    }
}

/// What is shared while the program starts.
struct Opening {
    metrics: Metrics,
    exposed: Exposition,
    trouble: Arc<AtomicBool>,
    since: Instant,
}

impl Opening {
    fn call_all(&self) {
        // As well as things are.
        self.call(
            "catalog",
            retried("catalog", Budget::default()),
            mostly_well,
        );
        // Well too, and three times as much in demand once the others are ill.
        let news = self.client("news", retried("news", Budget::default()), mostly_well);
        self.demand(news, 3);
        // Nothing bounds its resends.
        self.call("psp", retried("psp", Budget::unlimited()), |it| {
            if it.ill && it.attempt == 1 {
                status(503)
            } else {
                mostly_well(it)
            }
        });
        // What was saved by sending it again no longer is.
        self.call("search", retried("search", Budget::unlimited()), |it| {
            let again = it.ill && it.attempt > 1;
            status(if it.is_first_of(10) || again {
                503
            } else {
                200
            })
        });
        // Fails more than its budget pays for.
        let budget = Budget::builder().ratio(0.1).min_per_second(0);
        self.call("ledger", retried("ledger", budget.build().unwrap()), |it| {
            if it.ill && it.is_first_of(2) {
                status(503)
            } else {
                mostly_well(it)
            }
        });
        // Down for less than half of each second.
        let breaker = BreakerPolicy::builder()
            .consecutive_failures(3)
            .open_wait(100 * MS, 100 * MS)
            .successes_to_close(1);
        let stock = Stack::http("stock")
            .retry(once())
            .breaker(breaker.build().unwrap());
        self.call("stock", stock, |it| {
            let down = it.at.subsec_millis() < 400;
            status(if it.ill && down { 503 } else { 200 })
        });
        // One in ten takes long, and all succeed.
        self.call("images", Stack::http("images").retry(once()), |it| {
            let long = it.ill && it.is_first_of(10);
            status(200).after(if long { 600 * MS } else { Duration::ZERO })
        });
        self.call_reports();
        self.call_quotes();
    }

    /// In trouble blocks its thread, past the little time that it is given; and sometimes does not answer.
    fn call_reports(&self) {
        let within = DeadlinePolicy::within(SHORT).unwrap();
        let stack = Stack::http("reports")
            .retry(once())
            .breaker(BreakerPolicy::off());
        let stack = self.observed("reports", stack.deadline(within));
        let inner = self.transport(|it| match it.ill && it.is_first_of(5) {
            true => Step::hang(),
            false => status(200),
        });
        let trouble = Arc::clone(&self.trouble);
        let calls = Arc::new(AtomicU64::new(0));
        let transport = service_fn(move |request| {
            let inner = inner.clone();
            let blocks = trouble.load(Relaxed) && calls.fetch_add(1, Relaxed).is_multiple_of(4);
            async move {
                if blocks {
                    std::thread::sleep(3 * SHORT);
                }
                inner.oneshot(request).await
            }
        });
        let (operation, attempt) = self.telemetry("reports");
        let service = stack.telemetry(operation, attempt).layer(transport);
        self.demand(whole(service), 1);
    }

    /// Hedged, limited and with something to fall back on: what the dashboard shows besides.
    fn call_quotes(&self) {
        let hedge = HedgePolicy::builder().fixed(20 * MS).build().unwrap();
        // A hedge has to wait for its turn.
        let limit = RateLimitPolicy::per(Duration::from_secs(1), 25)
            .burst(1)
            .max_wait(200 * MS);
        let empty = fallback::from_fn(|_| Ok::<_, BoxError>(Answer::new(ScriptedBody::empty())));
        let policy = FallbackPolicy::builder()
            .on([Kind::Server])
            .build()
            .unwrap();
        let stack = Stack::http("quotes")
            .hedge(hedge)
            .rate_limit(limit.build().unwrap());
        let stack = self.observed("quotes", stack).fallback(policy, empty);
        let transport = self.transport(|it| match () {
            () if it.is_first_of(25) => status(501),
            () if it.is_first_of(10) => status(200).after(100 * MS),
            () => status(200),
        });
        let (operation, attempt) = self.telemetry("quotes");
        self.demand(
            whole(stack.telemetry(operation, attempt).layer(transport)),
            1,
        );
    }

    fn call(&self, name: &'static str, stack: Stack, behaviour: Behaviour) {
        self.demand(self.client(name, stack, behaviour), 1);
    }

    fn client(&self, name: &'static str, stack: Stack, behaviour: Behaviour) -> Call {
        let (operation, attempt) = self.telemetry(name);
        let stack = self.observed(name, stack).telemetry(operation, attempt);
        whole(stack.layer(self.transport(behaviour)))
    }

    /// The stack, which tells the metrics all that it does.
    fn observed(&self, name: &'static str, stack: Stack) -> Stack {
        let mut metrics = self.metrics.clone().watch_budget(name, stack.budget());
        if let Some(handle) = stack.bulkhead_handle() {
            let read = move || Places::new(handle.in_flight(), handle.queued(), handle.limit());
            metrics = metrics.watch_bulkhead(name, read);
        }
        if stack.breaker_handle().is_some() {
            metrics = metrics.watch_breaker(name);
        }
        stack.observer(Arc::new(metrics))
    }

    fn telemetry(&self, name: &'static str) -> (OperationLayer<Http>, AttemptLayer) {
        let meters = self.exposed.provider();
        let operation = OperationLayer::http(name).meter_provider(meters);
        (operation, AttemptLayer::http(name).meter_provider(meters))
    }

    fn transport(&self, behaviour: Behaviour) -> Transport {
        let (trouble, since) = (Arc::clone(&self.trouble), self.since);
        let operations = AtomicU64::new(0);
        Script::noting(|_: &Sent| (), []).otherwise(move || {
            let attempt = CallContext::current().attempt();
            let first = u64::from(attempt == 1);
            behaviour(&Arrival {
                operation: operations.fetch_add(first, Relaxed) + first,
                attempt,
                at: since.elapsed(),
                ill: trouble.load(Relaxed),
            })
        })
    }

    /// Asks for answers from now on, and for `times` as many in trouble.
    fn demand(&self, client: Call, times: u32) {
        let trouble = Arc::clone(&self.trouble);
        tokio::spawn(async move {
            let mut ticks = interval(Duration::from_secs(1) / DEMAND);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
            loop {
                ticks.tick().await;
                let calls = if trouble.load(Relaxed) { times } else { 1 };
                for _ in 0..calls {
                    let request = Request::get("http://shop.internal/").body(Empty::new());
                    tokio::spawn(client.clone().oneshot(request.unwrap()));
                }
            }
        });
    }
}

/// Called as a handler calls it, with a deadline to inherit; each answer is read to its end.
fn whole<S, B>(service: S) -> Call
where
    S: Service<Request<Empty<Bytes>>, Response = Response<B>, Error = BoxError>,
    S: Clone + Send + Sync + 'static,
    S::Future: Send,
    B: HttpBody<Data = Bytes, Error = BoxError> + Send + 'static,
{
    let given = DeadlinePolicy::within(Duration::from_secs(5)).unwrap();
    let handler = DeadlineLayer::http(given).dependency("shop").layer(service);
    BoxCloneSyncService::new(handler.and_then(read))
}

async fn read<B>(answer: Response<B>) -> Result<(), BoxError>
where
    B: HttpBody<Data = Bytes, Error = BoxError>,
{
    answer.into_body().collect().await.map(drop)
}

fn mostly_well(it: &Arrival) -> Step<Answer> {
    status(if it.is_first_of(20) { 503 } else { 200 })
}

fn status(code: u16) -> Step<Answer> {
    let mut answer = Answer::new(ScriptedBody::empty());
    *answer.status_mut() = code.try_into().unwrap();
    Step::answer(answer)
}

fn retried(name: &'static str, budget: Budget) -> Stack {
    let backoff = Backoff::builder()
        .base(10 * MS)
        .cap(20 * MS)
        .build()
        .unwrap();
    let retry = RetryPolicy::builder()
        .max_attempts(2)
        .backoff(backoff)
        .budget(budget);
    let stack = Stack::http(name).retry(retry.build().unwrap());
    stack.breaker(BreakerPolicy::off())
}

fn once() -> RetryPolicy {
    RetryPolicy::builder().max_attempts(1).build().unwrap()
}
