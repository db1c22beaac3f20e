//! The wiring of idempotency keys.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};
use http_body::Body;
use mamparo_core::grpc::is_grpc;
use mamparo_core::{BoxError, Gate};
use tower_service::Service;

use super::layer::Shared;
use super::run::{Asked, Run};
use super::state::{Refusal, admit};
use super::{IdempotencyBody, IdempotencyFuture, IdempotencyStore, key, problem};

/// Recognises requests by their idempotency keys, and answers a repeated one as the first; see the [module](super).
pub struct Idempotency<S, St> {
    inner: Gate<S>,
    shared: Arc<Shared<St>>,
}

impl<S, St> Idempotency<S, St> {
    pub(super) const fn new(inner: S, shared: Arc<Shared<St>>) -> Self {
        Self {
            inner: Gate::new(inner),
            shared,
        }
    }
}

impl<S, St, B, R> Service<Request<B>> for Idempotency<S, St>
where
    S: Service<Request<IdempotencyBody<B>>, Response = Response<R>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    St: IdempotencyStore,
    B: Body<Data = Bytes, Error: Send> + Send + 'static,
    R: Body<Data = Bytes, Error: Send> + Send + 'static,
{
    type Response = Response<IdempotencyBody<R>>;
    type Error = BoxError;
    type Future = IdempotencyFuture<S, B, R>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    #[inline]
    fn call(&mut self, request: Request<B>) -> Self::Future {
        let settings = &self.shared.policy.settings;
        let counts = settings.methods.contains(request.method());
        // Most requests of most servers: nothing is taken apart, and nothing is boxed.
        if !counts || (!settings.required && !request.headers().contains_key(&settings.header)) {
            let request = request.map(IdempotencyBody::untouched);
            return IdempotencyFuture::passed(self.inner.call(request));
        }
        let (head, body) = request.into_parts();
        match self.shared.ask(&head) {
            Ok(asked) => {
                let gate = self.inner.clone();
                // The run makes an instance ready when, and if, its handler is called.
                self.inner.release();
                let run = Run::new(gate, head, body, asked, Arc::clone(&self.shared));
                let (phase, behind) = (run.phase(), Arc::clone(&self.shared.behind));
                IdempotencyFuture::keyed(Box::pin(run.serve()), phase, behind)
            }
            Err(refusal) => {
                self.inner.release();
                IdempotencyFuture::done(self.shared.refuse(refusal, &head))
            }
        }
    }
}

impl<St: IdempotencyStore> Shared<St> {
    /// Reads whose key a request carries.
    fn ask(&self, head: &Parts) -> Result<Asked, Refusal> {
        let settings = &self.policy.settings;
        let key = key::read(
            &head.headers,
            &settings.header,
            settings.syntax,
            settings.longest_key,
        );
        let key = admit(key)?;
        let principal = settings.principal.of(head).ok_or(Refusal::NoPrincipal)?;
        self.warn_once();
        let id = key.id(&settings.namespace, &principal);
        Ok(Asked { id, principal })
    }

    #[cold]
    fn refuse<R: Body>(&self, refusal: Refusal, head: &Parts) -> Response<IdempotencyBody<R>> {
        self.tell(None, refusal.step());
        let response = problem::write(&self.policy.settings, refusal, is_grpc(&head.headers));
        response.map(|body| IdempotencyBody::whole(body, None))
    }
}

impl<S: Clone, St> Clone for Idempotency<S, St> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<S: fmt::Debug, St> fmt::Debug for Idempotency<S, St> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idempotency")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}
