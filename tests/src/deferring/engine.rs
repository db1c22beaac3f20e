//! The engine that all tests run, with short waits, and where it keeps things.

use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::http::Request;
use bytes::Bytes;
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use mamparo_aws::Aws;
use mamparo_core::BoxError;
use mamparo_core::clock::SystemClock;
use mamparo_durable::backend::{Backend, BoxFuture, Message, Queue, QueueName, Request as Claimed};
use mamparo_durable::engine::{Engine, EngineBuilder, Transaction};
use mamparo_durable::handler::{Gatekeeper, Listener};
use mamparo_durable::machine::{Alert, Answer, Gate, Patience, Terms, TransactionId, Utc};
use mamparo_durable::policy::{Policies, Policy, Wait};
use mamparo_durable::web::{HttpSender, Judge, StoredRequest};
use mamparo_postgres::{Postgres, Settings};
use mamparo_sqlite::SqliteDurable;
use tower::{Service, ServiceExt as _};

use super::dependency::{LATER, MAX_ATTEMPTS, NEVER};

/// What a process prints before an alert: its name, the transaction, and what else is known.
pub(super) const ALERT: &str = "alert ";

/// Opens `sqlite FILE`, `postgres URL SCHEMA` or `aws URL PREFIX`; with `parts` at the end, one thing is done after the other.
pub(super) async fn open(place: &str) -> Backend {
    let mut words = place.split(' ');
    let mut word = || words.next().unwrap_or_default();
    let backend = match word() {
        "sqlite" => SqliteDurable::open(word()).unwrap().backend(),
        "aws" => aws(word(), word()).await.backend().await.unwrap(),
        _ => {
            let settings = Settings::builder(word())
                .schema(word())
                .acquire_timeout(Duration::from_secs(2))
                .statement_timeout(Duration::from_secs(5));
            let postgres = Postgres::connect(settings.build().unwrap()).await;
            postgres.unwrap().backend()
        }
    };
    match word() {
        "parts" => backend.without_outbox(),
        _ => backend,
    }
}

/// Clients of a local server, which leave every wait to the scheduler.
pub(super) async fn aws(url: &str, prefix: &str) -> Aws {
    let settings = mamparo_aws::Settings::builder()
        .endpoint(url)
        .prefix(prefix)
        .region("eu-west-1")
        .credentials("key", "secret")
        .schedule_from(Duration::ZERO)
        .timeout(Duration::from_secs(20))
        .attempt_timeout(Duration::from_secs(10));
    Aws::connect(settings.build().unwrap()).await.unwrap()
}

fn wait(millis: u64) -> Wait {
    let wait = Wait::builder()
        .base(Duration::from_millis(millis))
        .factor(1.5)
        .cap(Duration::from_millis(300))
        .jitter(0.5);
    wait.build().unwrap()
}

/// Waits of 50 to 300 ms, and nothing that ends one but its answers.
fn policies() -> Policies {
    let policy = Policy::builder()
        .max_attempts(MAX_ATTEMPTS)
        .max_postponements(10_000)
        .give_up_after(Duration::from_secs(3_600))
        .business(wait(100))
        .technical(wait(50))
        .postponed(wait(50));
    Policies::new(policy.build().unwrap())
}

/// An engine with these waits, which prints what a person should hear of.
pub(super) fn builder(backend: Backend, lease: Duration) -> EngineBuilder {
    Engine::builder(backend)
        .policies(policies())
        .lease(lease)
        .reconcile_every(Duration::from_millis(250))
        .listener(Arc::new(Loud))
}

/// Takes up after a few leases what is stuck, a second at least.
pub(super) fn hasty(lease: Duration) -> Patience {
    let stuck = Duration::from_secs(1).max(lease * 3);
    Patience {
        scheduling: stuck,
        scheduled: stuck,
        sending: stuck,
        in_flight: stuck * 3 / 2,
    }
}

/// One that begins with this is answered by a message.
pub(super) const BY_MESSAGE: &str = "message";

/// Whoever sends the original of one that begins with this, dies before it does.
pub(super) const UNSENT: &str = "unsent";

/// Sends over HTTP.
#[derive(Clone)]
pub(super) struct Sender {
    http: HttpSender<Client<HttpConnector, Full<Bytes>>, Full<Bytes>>,
    answers: Arc<dyn Queue>,
}

impl Sender {
    pub(super) fn new(backend: &Backend) -> Self {
        let client = Client::builder(TokioExecutor::new()).build_http();
        let judge = Judge::builder().refused([LATER]).declined([NEVER]);
        Self {
            http: HttpSender::new(client, judge.build().unwrap()),
            answers: Arc::clone(backend.queue(QueueName::Answers)),
        }
    }
}

impl Service<Claimed> for Sender {
    type Response = Option<Answer>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Option<Answer>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Claimed) -> Self::Future {
        let Self { mut http, answers } = self.clone();
        Box::pin(async move {
            let id = request.id.clone();
            let answer = http.ready().await?.call(request).await?;
            match answer {
                Some(answer) if id.as_str().starts_with(BY_MESSAGE) => {
                    let message = Message::Answer { id, answer };
                    answers.publish(vec![message]).await?;
                    Ok(None)
                }
                answer => Ok(answer),
            }
        })
    }
}

pub(super) fn transaction(id: &str, dependency: SocketAddr) -> Transaction {
    let request = Request::post(format!("http://{dependency}/"))
        .body(Bytes::from(id.to_owned()))
        .unwrap();
    let stored = StoredRequest::new(&request).encode();
    let begins =
        Transaction::new(TransactionId::new(id).unwrap(), "payment", stored).dependency("psp");
    if id.starts_with(UNSENT) {
        begins.sent()
    } else {
        begins
    }
}

/// Open for the last 150 ms of each second and a half.
#[derive(Debug)]
pub(super) struct Moody;

impl Gatekeeper for Moody {
    fn gate(&self, _: &Terms) -> Gate {
        let now = Utc::of(&SystemClock);
        let into = now.millis() % 1_500;
        if into < 1_350 {
            return Gate::Pass;
        }
        let shut = Duration::from_millis(u64::try_from(1_500 - into).unwrap());
        Gate::Postpone {
            until: Some(now.plus(shut)),
        }
    }
}

/// Prints alerts.
#[derive(Debug)]
struct Loud;

impl Listener for Loud {
    fn alert(&self, alert: &Alert) {
        let id = alert.transaction_id.as_ref().map_or("-", |id| id.as_str());
        let detail = alert.detail.as_ref().map_or("", |detail| detail.as_str());
        println!(
            "\n{ALERT}{} {id} {} {detail}",
            alert.kind.as_str(),
            alert.count
        );
    }
}
