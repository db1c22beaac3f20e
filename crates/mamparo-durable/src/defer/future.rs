//! One request, until it is answered or deferred.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response};
use http_body::Body;
use mamparo_core::BoxError;
use mamparo_core::gate::GateFuture;
use pin_project::pin_project;
use tower_service::Service;

use super::{DeferBody, Deferrable};
use crate::backend::BoxFuture;

/// The future of a request that may be deferred.
#[pin_project]
#[must_use = "futures do nothing unless polled"]
pub struct DeferFuture<S: Service<Request<B>>, B, D: Body>(#[pin] State<S, B, D>);

#[pin_project(project = Now)]
enum State<S: Service<Request<B>>, B, D: Body> {
    /// It only asks, and is handed on.
    Passed(#[pin] GateFuture<S, Request<B>>),
    /// It may be deferred. In a box: its steps wait for a store, whose futures have no names.
    Running(BoxFuture<'static, Result<Deferrable<Response<DeferBody<D>>>, BoxError>>),
}

impl<S: Service<Request<B>>, B, D: Body> DeferFuture<S, B, D> {
    pub(super) const fn passed(future: GateFuture<S, Request<B>>) -> Self {
        Self(State::Passed(future))
    }

    pub(super) const fn running(
        run: BoxFuture<'static, Result<Deferrable<Response<DeferBody<D>>>, BoxError>>,
    ) -> Self {
        Self(State::Running(run))
    }
}

impl<S, B, D> Future for DeferFuture<S, B, D>
where
    S: Service<Request<B>, Response = Response<D>>,
    S::Error: Into<BoxError>,
    D: Body,
{
    type Output = Result<Deferrable<Response<DeferBody<D>>>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().0.project() {
            Now::Passed(future) => future.poll(cx).map(|result| {
                let response = result.map_err(Into::into)?;
                Ok(Deferrable::Answered(response.map(DeferBody::untouched)))
            }),
            Now::Running(run) => run.as_mut().poll(cx),
        }
    }
}

impl<S: Service<Request<B>>, B, D: Body> fmt::Debug for DeferFuture<S, B, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            State::Passed(_) => "DeferFuture::Passed",
            State::Running(_) => "DeferFuture::Running",
        })
    }
}
