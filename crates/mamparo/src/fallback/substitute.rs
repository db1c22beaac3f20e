//! Where the other answer comes from: a value, a closure, or a service.

use std::future::{Future, Ready, ready};

use mamparo_core::BoxError;
use mamparo_core::gate::{Gate, GateFuture};
use tower_service::Service;

use super::Failed;
use crate::replay::Replay;

/// What stands in for a dependency whose operation has failed; `P` is the protocol.
pub trait Substitute<P, Req>: Send + Sync + 'static {
    /// What the dependency is sent.
    type Wire;
    /// What is kept of the request.
    type Kept;
    /// What it answers.
    type Response;
    /// How it fails.
    type Error: Into<BoxError>;
    /// Its answer to come.
    type Future: Future<Output = Result<Self::Response, Self::Error>>;

    /// Splits a request into what the dependency is sent and what is kept; `max_body` is the most bytes of a body to keep.
    fn split(&self, protocol: &P, request: Req, max_body: usize) -> (Self::Wire, Self::Kept);

    /// Asks for an answer; none if too little of the request was kept.
    fn answer(&self, protocol: &P, kept: Self::Kept, failed: Failed) -> Option<Self::Future>;
}

/// A value that is cloned for each answer; see [`value`].
#[derive(Clone, Debug)]
pub struct Value<R>(R);

/// A closure that makes the answer; see [`from_fn`].
#[derive(Clone, Debug)]
pub struct FromFn<F>(F);

/// An async closure that makes the answer; see [`from_async_fn`].
#[derive(Clone, Debug)]
pub struct FromAsyncFn<F>(F);

/// A service that answers the same request; see [`service`].
#[derive(Clone, Debug)]
pub struct FromService<T>(T);

/// Answers with a copy of a value.
///
/// ```
/// use mamparo::fallback::{self, FallbackLayer, FallbackPolicy};
/// use mamparo_core::Plain;
///
/// let no_recommendations: Vec<u32> = Vec::new();
/// let layer = FallbackLayer::new(
///     FallbackPolicy::default(),
///     Plain::idempotent(),
///     fallback::value(no_recommendations),
/// );
/// # let _ = layer;
/// ```
pub const fn value<R>(value: R) -> Value<R> {
    Value(value)
}

/// Answers with what a closure makes of the failure; its error is the fallback's own failure.
pub const fn from_fn<F>(make: F) -> FromFn<F> {
    FromFn(make)
}

/// Answers with what an async closure makes of the failure; its error is the fallback's own failure.
pub const fn from_async_fn<F>(make: F) -> FromAsyncFn<F> {
    FromAsyncFn(make)
}

/// Sends the same request to another service.
///
/// The request is copied as for a resend, which the other kinds of fallback do without; it gets the clone of `service`
/// that answers it ready by itself.
pub const fn service<T>(service: T) -> FromService<T> {
    FromService(service)
}

impl<P, Req, R> Substitute<P, Req> for Value<R>
where
    R: Clone + Send + Sync + 'static,
{
    type Wire = Req;
    type Kept = ();
    type Response = R;
    type Error = BoxError;
    type Future = Ready<Result<R, BoxError>>;

    #[inline]
    fn split(&self, _: &P, request: Req, _: usize) -> (Req, ()) {
        (request, ())
    }

    fn answer(&self, _: &P, (): (), _: Failed) -> Option<Self::Future> {
        Some(ready(Ok(self.0.clone())))
    }
}

impl<P, Req, F, R, E> Substitute<P, Req> for FromFn<F>
where
    F: Fn(Failed) -> Result<R, E> + Send + Sync + 'static,
    E: Into<BoxError>,
{
    type Wire = Req;
    type Kept = ();
    type Response = R;
    type Error = E;
    type Future = Ready<Result<R, E>>;

    #[inline]
    fn split(&self, _: &P, request: Req, _: usize) -> (Req, ()) {
        (request, ())
    }

    fn answer(&self, _: &P, (): (), failed: Failed) -> Option<Self::Future> {
        Some(ready((self.0)(failed)))
    }
}

impl<P, Req, F, Fut, R, E> Substitute<P, Req> for FromAsyncFn<F>
where
    F: Fn(Failed) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, E>>,
    E: Into<BoxError>,
{
    type Wire = Req;
    type Kept = ();
    type Response = R;
    type Error = E;
    type Future = Fut;

    #[inline]
    fn split(&self, _: &P, request: Req, _: usize) -> (Req, ()) {
        (request, ())
    }

    fn answer(&self, _: &P, (): (), failed: Failed) -> Option<Fut> {
        Some((self.0)(failed))
    }
}

impl<P, Req, T> Substitute<P, Req> for FromService<T>
where
    P: Replay<Req>,
    T: Service<P::Wire, Error: Into<BoxError>> + Clone + Send + Sync + 'static,
{
    type Wire = P::Wire;
    type Kept = Option<P::Held>;
    type Response = T::Response;
    type Error = T::Error;
    type Future = GateFuture<T, P::Wire>;

    fn split(&self, protocol: &P, request: Req, max_body: usize) -> (P::Wire, Self::Kept) {
        protocol.split(request, Some(max_body))
    }

    fn answer(&self, protocol: &P, kept: Self::Kept, _: Failed) -> Option<Self::Future> {
        let (wire, _) = protocol.again(kept?, false).ok()?;
        Some(Gate::new(self.0.clone()).call(wire))
    }
}
