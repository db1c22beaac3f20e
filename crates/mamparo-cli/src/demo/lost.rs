//! A server that pays once for each key, and whose first answers get lost.

use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use mamparo::idempotency::{IdempotencyLayer, IdempotencyPolicy, MemoryStore};
use mamparo::idempotency_key::KeyPolicy;
use mamparo_core::http::IDEMPOTENCY_KEY;
use mamparo_core::{BoxError, InvalidSetting};
use tower::{Layer, Service, ServiceExt};

use super::cast::text;
use super::client::{Hyper, request, send, stack, via_hyper};
use super::peer::{Lost, Peer};
use super::proof::Proof;
use crate::telemetry::Pipeline;

/// As many payments are made.
const PAYMENTS: usize = 4;

/// Nothing here takes long.
const WAITS: Duration = Duration::from_secs(2);

/// What came of the payments.
#[derive(Debug)]
pub(super) struct Payments {
    answered: usize,
    replayed: usize,
    made: usize,
    /// As many were made of as many by a server that knows no keys.
    made_without: usize,
}

/// Pays through a server that recognises keys, and through one that does not; of each payment the first answer is lost.
pub(super) async fn payments(telemetry: &Pipeline) -> Result<Payments, BoxError> {
    let client = client(telemetry)?;
    let keys = IdempotencyPolicy::for_all_callers().required().build()?;
    let keys = IdempotencyLayer::new(MemoryStore::new(), keys);
    let (made, made_without) = (Arc::default(), Arc::default());
    let server = Peer::serving(losing(keys.layer(till(&made)))).await?;
    let (answered, replayed) = pay(&client, &server).await?;
    let server = Peer::serving(losing(till(&made_without))).await?;
    pay(&client, &server).await?;
    Ok(Payments {
        answered,
        replayed,
        made: made.load(Relaxed),
        made_without: made_without.load(Relaxed),
    })
}

fn client(telemetry: &Pipeline) -> Result<Hyper, InvalidSetting> {
    let stack = stack(telemetry, "till", WAITS, WAITS)?;
    Ok(via_hyper(&stack.idempotency_key(KeyPolicy::default())))
}

/// Makes payments; returns how many were answered, and how many of the answers were given again.
async fn pay(client: &Hyper, server: &Peer) -> Result<(usize, usize), BoxError> {
    let (mut answered, mut replayed) = (0, 0);
    for _ in 0..PAYMENTS {
        let payment = request(Method::POST, &server.url("/payments"), None)?;
        let answer = send(client.clone(), payment).await?;
        answered += usize::from(answer.status() == StatusCode::CREATED);
        replayed += usize::from(answer.headers().contains_key("idempotent-replayed"));
    }
    Ok((answered, replayed))
}

/// Pays, whoever asks.
fn till<B: Send + 'static>(
    made: &Arc<AtomicUsize>,
) -> impl Service<
    Request<B>,
    Response = Response<Full<Bytes>>,
    Error = Infallible,
    Future: Send + 'static,
> + Clone
+ Send
+ use<B> {
    let made = Arc::clone(made);
    tower::service_fn(move |_: Request<B>| {
        let number = made.fetch_add(1, Relaxed) + 1;
        std::future::ready(Ok(text(StatusCode::CREATED, format!("payment {number}\n"))))
    })
}

/// Loses the first answer to each key, when the work is done.
fn losing<S, B>(
    inner: S,
) -> impl Service<Request<Incoming>, Response = Response<B>, Error = BoxError, Future: Send> + Clone + Send
where
    S: Service<Request<Incoming>, Response = Response<B>, Future: Send> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    B: Send + 'static,
{
    let known: Arc<Mutex<HashSet<Option<HeaderValue>>>> = Arc::default();
    tower::service_fn(move |request: Request<Incoming>| {
        let (inner, known) = (inner.clone(), Arc::clone(&known));
        async move {
            let key = request.headers().get(IDEMPOTENCY_KEY).cloned();
            let answer = inner.oneshot(request).await.map_err(Into::into)?;
            let first = known
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(key);
            if first { Err(Lost.into()) } else { Ok(answer) }
        }
    })
}

impl Payments {
    pub(super) fn proof(&self) -> Proof {
        let all = [self.answered, self.replayed, self.made] == [PAYMENTS; 3];
        Proof {
            name: "lost answers",
            holds: all && self.made_without == 2 * PAYMENTS,
            says: format!(
                "{} payments made for {PAYMENTS} keys, {} first answers lost and given again; {} by a server that knows no keys",
                self.made, self.replayed, self.made_without
            ),
        }
    }
}
