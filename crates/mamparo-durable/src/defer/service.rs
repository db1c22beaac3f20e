//! The wiring of deferring.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use mamparo_core::{BoxError, Gate};
use tower_service::Service;

use super::layer::Shared;
use super::run::run;
use super::{DeferBody, DeferFuture, Deferrable};

/// Turns "not now" into a row; see the [module](super).
#[derive(Clone, Debug)]
pub struct Defer<S> {
    inner: Gate<S>,
    shared: Arc<Shared>,
}

impl<S> Defer<S> {
    pub(super) const fn new(inner: S, shared: Arc<Shared>) -> Self {
        Self {
            inner: Gate::new(inner),
            shared,
        }
    }
}

impl<S, B, D> Service<Request<B>> for Defer<S>
where
    S: Service<Request<B>, Response = Response<D>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + From<Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
    D: Body<Data = Bytes> + Send + 'static,
    D::Error: Into<BoxError> + Send,
{
    type Response = Deferrable<Response<DeferBody<D>>>;
    type Error = BoxError;
    type Future = DeferFuture<S, B, D>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if request.method().is_safe() {
            return DeferFuture::passed(self.inner.call(request));
        }
        let gate = self.inner.clone();
        // The run makes an instance ready when the body is read: nothing stays reserved until then.
        self.inner.release();
        DeferFuture::running(Box::pin(run(gate, request, Arc::clone(&self.shared))))
    }
}
