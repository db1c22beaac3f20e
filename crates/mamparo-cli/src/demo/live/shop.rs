//! A shop that calls each dependency twenty times a second.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::connect::HttpConnector;
use mamparo::deadline::{DeadlineLayer, DeadlinePolicy};
use mamparo::fallback::{self, FallbackPolicy};
use mamparo::policy::{Format, Policies};
use mamparo_core::{BoxError, Dependency, Kind};
use mamparo_telemetry::Metrics;
use tokio::time::{MissedTickBehavior, interval};
use tower::util::BoxCloneSyncService;
use tower::{Layer, Service, ServiceExt};

use super::cast::{self, CAST, OPERATION, Trouble};
use crate::demo::client::request;
use crate::demo::peer::Peer;
use crate::page::Page;

/// The policy of each dependency.
const POLICIES: &str = include_str!("policies.toml");

/// Operations a second, to each dependency.
const DEMAND: u32 = 20;

/// How long a handler of the shop may take.
const HANDLER: Duration = Duration::from_secs(5);

/// In trouble, this dependency is as much more in demand.
const MORE: (&str, u32) = ("news", 3);

/// Of the calls of this one, one in four finds its thread blocked for so long, in trouble.
const BLOCKED: (&str, u64, Duration) = ("reports", 4, Duration::from_millis(60));

type Call = BoxCloneSyncService<Request<Full<Bytes>>, (), BoxError>;

/// The shop; it calls for as long as its runtime lives.
#[derive(Debug)]
pub(super) struct Shop {
    pub(super) metrics: Metrics,
    trouble: Trouble,
    _servers: Vec<Peer>,
}

impl Shop {
    pub(super) async fn open(page: &Page) -> Result<Self, BoxError> {
        let trouble = Trouble::default();
        let policies = Policies::loader().text("policies.toml", POLICIES, Format::Toml);
        let policies = policies.load()?;
        let metrics = page.metrics().watch(policies.clone());
        let mut servers = Vec::new();
        for &(name, behaviour) in CAST {
            let server = cast::start(behaviour, &trouble).await?;
            let client = client(name, &policies, &metrics, page)?;
            let blocked = (name == BLOCKED.0).then(|| blocked(client.clone(), trouble.clone()));
            let times = if name == MORE.0 { MORE.1 } else { 1 };
            let client = blocked.unwrap_or(client);
            tokio::spawn(demand(client, server.url("/"), times, trouble.clone()));
            servers.push(server);
        }
        Ok(Self {
            metrics,
            trouble,
            _servers: servers,
        })
    }

    /// Lets each dependency come into its own trouble, but for those that are always well.
    pub(super) fn make_trouble(&self) {
        self.trouble.begin();
    }
}

/// A dependency's client, by its policy.
fn client(
    name: &'static str,
    policies: &Policies,
    metrics: &Metrics,
    page: &Page,
) -> Result<Call, BoxError> {
    let (operations, attempts) = page.layers(Dependency::named(name));
    let stack = policies.dependency(name)?.http()?;
    let stack = stack
        .observer(Arc::new(metrics.clone()))
        .telemetry(operations, attempts);
    if name != "quotes" {
        return handler(mamparo::client::hyper(HttpConnector::new(), &stack));
    }
    let policy = FallbackPolicy::builder().on([Kind::Server]).build()?;
    let none = fallback::value(Response::new(Full::default()));
    let stack = stack.fallback(policy, none);
    handler(mamparo::client::hyper(HttpConnector::new(), &stack))
}

/// Called as a handler calls it, with a deadline to inherit; each answer is read to its end.
fn handler<S, B>(client: S) -> Result<Call, BoxError>
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>, Error = BoxError, Future: Send>,
    S: Clone + Send + Sync + 'static,
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    let given = DeadlineLayer::http(DeadlinePolicy::within(HANDLER)?).dependency("shop");
    Ok(BoxCloneSyncService::new(given.layer(client).and_then(read)))
}

async fn read<B>(answer: Response<B>) -> Result<(), BoxError>
where
    B: Body<Data = Bytes, Error: Into<BoxError>>,
{
    let read = answer.into_body().collect().await;
    read.map(drop).map_err(Into::into)
}

/// Blocks the thread of some calls once they were sent, as a handler does that computes.
fn blocked(client: Call, trouble: Trouble) -> Call {
    let calls = Arc::new(AtomicU64::new(0));
    BoxCloneSyncService::new(tower::service_fn(move |request| {
        let (_, every, pause) = BLOCKED;
        let call = client.clone().oneshot(request);
        let blocks = trouble.is_here() && calls.fetch_add(1, Relaxed).is_multiple_of(every);
        async move {
            let block = async {
                if blocks {
                    std::thread::sleep(pause);
                }
            };
            // The call is polled first.
            tokio::join!(biased; call, block).0
        }
    }))
}

/// Asks for answers from now on, and for `times` as many in trouble.
async fn demand(client: Call, url: String, times: u32, trouble: Trouble) {
    let mut ticks = interval(Duration::from_secs(1) / DEMAND);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut operation: u64 = 0;
    loop {
        ticks.tick().await;
        let calls = if trouble.is_here() { times } else { 1 };
        for _ in 0..calls {
            operation += 1;
            if let Ok(mut request) = request(Method::GET, &url, None) {
                let number = HeaderValue::from(operation);
                request.headers_mut().insert(OPERATION, number);
                tokio::spawn(client.clone().oneshot(request));
            }
        }
    }
}
