//! A provider that answers by script, a store that can be down, and what was sent.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use mamparo_core::BoxError;
use mamparo_core::clock::{self, Instant, WallClock};
use mamparo_testkit::body::ScriptedBody;
use tokio::sync::watch;
use tower::{Layer as _, Service, ServiceExt as _};

use crate::backend::{BackendError, BoxFuture, Committed, Outbox, PostponeDue, Step, Trouble};
use crate::defer::{Defer, DeferBody, DeferBuilder, DeferLayer, DeferPolicy, Deferrable};
use crate::engine::Engine;
use crate::machine::{Record, TransactionId};
use crate::memory::Memory;
use crate::policy::{Policies, Policy, Wait};
use crate::web::Judge;

pub(super) const MINUTE: Duration = Duration::from_secs(60);

/// A wall clock that paused time moves.
#[derive(Clone, Copy, Debug)]
struct Paused(Instant);

impl WallClock for Paused {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1_700_000_000) + (clock::now() - self.0)
    }
}

/// An outbox that can be down.
#[derive(Debug)]
struct Ill {
    inner: Arc<dyn Outbox>,
    down: Arc<AtomicBool>,
    /// Commits wait while this is true.
    stuck: watch::Receiver<bool>,
}

impl Outbox for Ill {
    fn commit(&self, steps: Vec<Step>) -> BoxFuture<'_, Vec<Result<Committed, BackendError>>> {
        if *self.stuck.borrow() {
            let mut stuck = self.stuck.clone();
            return Box::pin(async move {
                stuck.wait_for(|stuck| !stuck).await.unwrap();
                self.inner.commit(steps).await
            });
        }
        if !self.down.load(Ordering::Relaxed) {
            return self.inner.commit(steps);
        }
        let ill = |_: &Step| Err(BackendError::new(Trouble::Unavailable, "it is ill"));
        let all = steps.iter().map(ill).collect();
        Box::pin(async move { all })
    }

    fn postpone(&self, due: PostponeDue) -> BoxFuture<'_, Result<u64, BackendError>> {
        self.inner.postpone(due)
    }
}

/// What the provider answers, and how a stack fails.
pub(super) type Answer = Result<Response<ScriptedBody>, BoxError>;

/// What was sent: key, body and headers.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub(super) key: Option<String>,
    pub(super) body: Bytes,
    pub(super) headers: HeaderMap,
    pub(super) at: Instant,
}

/// A client stack, at whose end a provider answers by script, and then with 200.
#[derive(Clone, Debug, Default)]
pub(super) struct Provider {
    script: Arc<Mutex<VecDeque<Answer>>>,
    sent: Arc<Mutex<Vec<Sent>>>,
}

impl Provider {
    pub(super) fn new(script: impl IntoIterator<Item = Answer>) -> Self {
        Self {
            script: Arc::new(Mutex::new(script.into_iter().collect())),
            sent: Arc::default(),
        }
    }

    pub(super) fn sent(&self) -> Vec<Sent> {
        self.sent.lock().unwrap().clone()
    }

    pub(super) fn keys(&self) -> Vec<String> {
        let sent = self.sent();
        sent.into_iter().filter_map(|sent| sent.key).collect()
    }
}

impl Service<Request<ScriptedBody>> for Provider {
    type Response = Response<ScriptedBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Answer>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<ScriptedBody>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let key = head.headers.get("idempotency-key");
            let sent = Sent {
                key: key.map(|key| key.to_str().unwrap().to_owned()),
                body: body.collect().await?.to_bytes(),
                headers: head.headers,
                at: clock::now(),
            };
            this.sent.lock().unwrap().push(sent);
            let next = this.script.lock().unwrap().pop_front();
            next.unwrap_or_else(|| Ok(Response::new(ScriptedBody::new("paid"))))
        })
    }
}

/// An engine, a layer around a provider, and the switch of the store.
pub(super) struct Desk {
    pub(super) engine: Engine,
    pub(super) layer: DeferLayer,
    pub(super) provider: Provider,
    down: Arc<AtomicBool>,
    stuck: watch::Sender<bool>,
}

impl Desk {
    pub(super) fn new(policy: DeferBuilder, script: impl IntoIterator<Item = Answer>) -> Self {
        Self::attempting(4, policy, script)
    }

    pub(super) fn attempting(
        max_attempts: u32,
        policy: DeferBuilder,
        script: impl IntoIterator<Item = Answer>,
    ) -> Self {
        let clock = Paused(clock::now());
        let backend = Memory::new(clock).backend();
        let (down, (stuck, waits)) = (Arc::default(), watch::channel(false));
        let ill = Arc::new(Ill {
            inner: Arc::clone(backend.outbox().unwrap()),
            down: Arc::clone(&down),
            stuck: waits,
        });
        let wait = Wait::builder().base(MINUTE).factor(1.0).cap(MINUTE);
        let wait = wait.jitter(0.0).build().unwrap();
        let waits = Policy::builder().business(wait).technical(wait);
        let waits = waits.max_attempts(max_attempts).build().unwrap();
        let engine = Engine::builder(backend.with_outbox(ill))
            .policies(Policies::new(waits))
            .wall_clock(clock);
        let engine = engine.build().unwrap();
        let layer = DeferLayer::new(engine.clone(), policy.build().unwrap()).dependency("psp");
        Self {
            engine,
            layer,
            provider: Provider::new(script),
            down,
            stuck,
        }
    }

    pub(super) fn store_is_down(&self) {
        self.down.store(true, Ordering::Relaxed);
    }

    pub(super) fn store_is_stuck(&self) {
        self.stuck.send_replace(true);
    }

    pub(super) fn store_is_well(&self) {
        self.stuck.send_replace(false);
    }

    pub(super) fn service(&self) -> Defer<Provider> {
        self.layer.layer(self.provider.clone())
    }

    pub(super) async fn call(
        &self,
        request: Request<ScriptedBody>,
    ) -> Result<Deferrable<Response<DeferBody<ScriptedBody>>>, BoxError> {
        self.service().oneshot(request).await
    }

    pub(super) async fn stored(&self, id: &TransactionId) -> Record {
        self.engine.load(id).await.unwrap().unwrap()
    }

    /// Sends what is due until a transaction is at its end.
    pub(super) async fn until_over(&self, id: &TransactionId) -> Record {
        let running = self
            .engine
            .run(self.layer.sender::<_, ScriptedBody>(self.provider.clone()));
        let over = loop {
            let record = self.stored(id).await;
            if record.progress.state.is_terminal() {
                break record;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        running.stop().await.unwrap();
        over
    }
}

/// 409, and a body whose status is CANCELLED, are refusals.
pub(super) fn payment() -> DeferBuilder {
    let judge = Judge::builder()
        .refused([StatusCode::CONFLICT])
        .field("status")
        .refused_values(["CANCELLED"]);
    DeferPolicy::builder("payment").judge(judge.build().unwrap())
}

pub(super) fn charge() -> Request<ScriptedBody> {
    let request = Request::post("http://psp/charges").header("content-type", "text/plain");
    request.body(ScriptedBody::new("5 EUR")).unwrap()
}

pub(super) fn keyed(key: &str) -> Request<ScriptedBody> {
    let mut request = charge();
    let key = key.parse().unwrap();
    request.headers_mut().insert("idempotency-key", key);
    request
}

pub(super) fn answer(status: u16, body: impl Into<Bytes>) -> Answer {
    let answer = Response::builder().status(status);
    Ok(answer.body(ScriptedBody::new(body)).unwrap())
}

pub(super) fn cancelled() -> Answer {
    answer(200, r#"{"status":"CANCELLED"}"#)
}
