//! Who plays in these tests.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use mamparo_core::{Event, KeyStep, Observer, What};
use std::sync::Mutex;
use tokio::time::sleep;
use tower::util::BoxCloneSyncService;
use tower::{Layer, ServiceExt, service_fn};

use super::super::{
    IdempotencyBody, IdempotencyBuilder, IdempotencyLayer, IdempotencyPolicy, IdempotencyStore,
    MemoryStore,
};

pub(super) type Body = Full<Bytes>;
pub(super) type Sent = Request<IdempotencyBody<Body>>;

/// An answer, read.
#[derive(Debug)]
pub(super) struct Got {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Got {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(super) fn is_replayed(&self) -> bool {
        self.header("idempotent-replayed") == Some("true")
    }

    /// The last part of a problem's type.
    pub(super) fn problem(&self) -> String {
        let body: serde_json::Value = serde_json::from_slice(&self.body).unwrap();
        assert_eq!(
            self.header("content-type"),
            Some("application/problem+json")
        );
        assert_eq!(body["status"], self.status.as_u16());
        let kind = body["type"].as_str().unwrap();
        kind.rsplit([':', '#']).next().unwrap().to_owned()
    }
}

/// A server that counts how often its handler runs.
#[derive(Clone)]
pub(super) struct Server {
    pub(super) runs: Arc<AtomicUsize>,
    pub(super) heard: Arc<Heard>,
    service:
        BoxCloneSyncService<Request<Body>, Response<IdempotencyBody<Body>>, mamparo_core::BoxError>,
}

#[derive(Debug, Default)]
pub(super) struct Heard(Mutex<Vec<KeyStep>>);

impl Observer for Heard {
    fn on(&self, event: &Event<'_>) {
        if let What::Key { step, .. } = event.what {
            self.0.lock().unwrap().push(step);
        }
    }
}

impl Heard {
    pub(super) fn steps(&self) -> Vec<KeyStep> {
        self.0.lock().unwrap().clone()
    }

    pub(super) fn has(&self, step: KeyStep) -> bool {
        self.steps().contains(&step)
    }
}

pub(super) fn policy() -> IdempotencyBuilder {
    IdempotencyPolicy::for_all_callers()
}

impl Server {
    /// Answers with the number of the run and what was sent, at once.
    pub(super) fn counting(policy: IdempotencyBuilder) -> Self {
        Self::over(MemoryStore::new(), policy, async |run, sent: Sent| {
            let body = sent.into_body().collect().await.unwrap().to_bytes();
            let answer = format!("run {run}: {}", String::from_utf8_lossy(&body));
            let mut response = Response::new(Full::from(answer));
            response
                .headers_mut()
                .insert("content-type", "text/plain".parse().unwrap());
            response
                .headers_mut()
                .insert("location", format!("/{run}").parse().unwrap());
            response
        })
    }

    /// Answers after a while.
    pub(super) fn slow(policy: IdempotencyBuilder, takes: Duration) -> Self {
        Self::over(MemoryStore::new(), policy, move |run, _| async move {
            sleep(takes).await;
            Response::new(Full::from(format!("run {run}")))
        })
    }

    pub(super) fn over<St: IdempotencyStore, F>(
        store: St,
        policy: IdempotencyBuilder,
        handler: impl Fn(usize, Sent) -> F + Clone + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Response<Body>> + Send + 'static,
    {
        Self::failing(store, policy, move |run, sent| {
            let answer = handler(run, sent);
            async move { Ok::<_, Infallible>(answer.await) }
        })
    }

    pub(super) fn failing<St: IdempotencyStore, F, E>(
        store: St,
        policy: IdempotencyBuilder,
        handler: impl Fn(usize, Sent) -> F + Clone + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Response<Body>, E>> + Send + 'static,
        E: Into<mamparo_core::BoxError> + 'static,
    {
        let runs = Arc::new(AtomicUsize::new(0));
        let heard = Arc::new(Heard::default());
        let layer = IdempotencyLayer::new(store, policy.build().unwrap());
        let layer = layer.observer(heard.clone());
        let count = Arc::clone(&runs);
        let handler = service_fn(move |sent: Sent| {
            let run = count.fetch_add(1, Ordering::Relaxed) + 1;
            handler(run, sent)
        });
        let service = BoxCloneSyncService::new(layer.layer(handler));
        Self {
            runs,
            heard,
            service,
        }
    }

    pub(super) async fn send(&self, request: Request<Body>) -> Got {
        self.try_send(request).await.unwrap()
    }

    pub(super) async fn try_send(
        &self,
        request: Request<Body>,
    ) -> Result<Got, mamparo_core::BoxError> {
        let (head, body) = self.service.clone().oneshot(request).await?.into_parts();
        let body = body.collect().await?;
        Ok(Got {
            status: head.status,
            headers: head.headers,
            body: body.to_bytes(),
        })
    }

    /// Sends a POST with a key.
    pub(super) async fn post(&self, key: &str, body: &str) -> Got {
        self.send(post(key, body)).await
    }

    pub(super) fn runs(&self) -> usize {
        self.runs.load(Ordering::Relaxed)
    }
}

pub(super) fn post(key: &str, body: &str) -> Request<Body> {
    let request = Request::post("/charges?a=1").header("idempotency-key", key);
    request.body(Full::from(body.to_owned())).unwrap()
}
