//! A request with a key, from its first byte to its answer.

use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use http::request::Parts;
use http::{Response, response};
use http_body::Body;
use mamparo_core::grpc::is_grpc;
use mamparo_core::{BoxError, Gate, KeyStep};
use tower_service::Service;

use super::body::{self, IdempotencyBody, Read};
use super::fingerprint::Taking;
use super::future::Phase;
use super::guard::Guard;
use super::layer::Shared;
use super::reply::{Go, Reply, Replying};
use super::state::Refusal;
use super::tx::{IdempotencyTx, Started};
use super::{IdempotencyStore, KeyId};

/// Whose key a request carries.
pub(super) struct Asked {
    pub(super) id: KeyId,
    pub(super) principal: Vec<u8>,
}

/// A request with a key.
pub(super) struct Run<S, B, St> {
    gate: Gate<S>,
    head: Parts,
    body: B,
    asked: Asked,
    shared: Arc<Shared<St>>,
    phase: Arc<Phase>,
}

/// What came of calling the handler.
pub(super) struct Ran<R: Body> {
    pub(super) head: response::Parts,
    pub(super) read: Read<R>,
}

impl<S, B, St> Run<S, B, St> {
    pub(super) fn new(
        gate: Gate<S>,
        head: Parts,
        body: B,
        asked: Asked,
        shared: Arc<Shared<St>>,
    ) -> Self {
        Self {
            gate,
            head,
            body,
            asked,
            shared,
            phase: Arc::default(),
        }
    }

    pub(super) fn phase(&self) -> Arc<Phase> {
        Arc::clone(&self.phase)
    }
}

impl<S, B, R, St> Run<S, B, St>
where
    S: Service<Request<IdempotencyBody<B>>, Response = Response<R>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    St: IdempotencyStore,
    B: Body<Data = Bytes, Error: Send> + Send + 'static,
    R: Body<Data = Bytes, Error: Send> + Send + 'static,
{
    /// Reads the request, and asks the store for its key.
    pub(super) async fn serve(self) -> Reply<R> {
        let Self {
            gate,
            head,
            body,
            asked,
            shared,
            phase,
        } = self;
        let Asked { id, principal } = asked;
        let reply = Replying::new(id, is_grpc(&head.headers), shared);
        let settings = &reply.shared.policy.settings;
        let mut taking = Taking::of(&head, &settings.compared);
        let read = body::read(body, settings.request_limit, |data| taking.body(data)).await;
        let (body, fits) = match read {
            Read::Whole { data, trailers } => (IdempotencyBody::whole(data, trailers), true),
            Read::Larger(body) => (body, false),
            Read::Broken(_) => return Ok(reply.refuse(Refusal::Unreadable)),
        };
        let begin = reply.begin(taking.end());
        phase.begin();
        let mut guard = Guard::new(begin.lease(), Arc::clone(&reply.shared));
        let go = match reply.ask(&begin, &mut guard).await {
            Ok(go) => go,
            Err(response) => return Ok(response),
        };
        if phase.is_caller_gone() {
            return Ok(reply.refuse(Refusal::Unreadable));
        }
        phase.run();
        let started = Started {
            lease: begin.lease(),
            fingerprint: begin.fingerprint,
            principal,
            policy: reply.shared.policy.clone(),
            request_fits: fits,
            again: go == Go::Again,
        };
        let tx = IdempotencyTx::new(started);
        let mut request = Request::from_parts(head, body);
        request.extensions_mut().insert(tx.clone());
        guard.ran();
        let ran = call(gate, request, settings.answer_limit);
        let ran = reply.renewing(begin.lease(), ran).await;
        if phase.is_caller_gone() {
            reply.tell(KeyStep::LeftBehind);
        }
        reply.end(ran, &tx, go, &mut guard).await
    }
}

/// Calls the handler, and reads its answer.
async fn call<S, B, R>(
    mut gate: Gate<S>,
    request: Request<IdempotencyBody<B>>,
    limit: usize,
) -> Result<Ran<R>, BoxError>
where
    S: Service<Request<IdempotencyBody<B>>, Response = Response<R>> + Clone,
    S::Error: Into<BoxError>,
    B: Body,
    R: Body<Data = Bytes>,
{
    let response = gate.call(request).await.map_err(Into::into)?;
    let (head, body) = response.into_parts();
    let read = body::read(body, limit, |_| ()).await;
    Ok(Ran { head, read })
}
