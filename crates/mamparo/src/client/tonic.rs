//! tonic's channel.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use ::http::{Request, Response};
use ::tonic::body::Body;
use ::tonic::{ConnectError, Status, TimeoutExpired};
use mamparo_core::grpc::Grpc;
use mamparo_core::{BoxError, CallContext, Deadline, Reason, Rejection, chain, clock};
use pin_project::pin_project;
use tower_layer::{Identity, Layer};
use tower_service::Service;

use super::proof::{prove, proves_nothing};
use super::sound::{SoundBody, sound, status_of};
use super::upload::Upload;
use crate::replay::ReplayBody;
use crate::stack::Stack;

/// How far apart two timers may go off that were set for the same instant: timers are no finer than a millisecond.
const TICKS: Duration = Duration::from_millis(2);

/// The recommended stack around a channel of tonic's: what [`tonic()`] returns, and what a generated client takes.
pub type TonicClient<S, O = Identity, A = Identity, F = Identity> =
    <Stack<O, A, F, Grpc> as Layer<TonicTransport<S>>>::Service;

/// Builds the recommended stack around a channel of tonic's.
///
/// What it returns goes into the `new`, `with_origin` or `with_interceptor` of a generated client. The channel may be
/// anything that stands in for one, such as an `InterceptedService`. How long a connection may take is the channel's own:
/// set `Endpoint::connect_timeout`, or give it [`Stack::connect`] around a connector. An `Endpoint::timeout` is not needed: each
/// attempt is bounded here.
///
/// The limits are for short calls. A stream that is meant to last needs longer ones: [`Stack::deadline`] for the whole of it (10 s),
/// [`Stack::attempt`] for an upload that is answered at its end (2 s), and for the silence between two messages of an answer (10 s).
///
/// ```
/// use mamparo::stack::Stack;
/// use mamparo_testkit::grpc::EchoClient;
/// use tonic::transport::Endpoint;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let channel = Endpoint::from_static("http://127.0.0.1:50051").connect_lazy();
/// let echo = EchoClient::new(mamparo::client::tonic(channel, &Stack::grpc("echo")));
/// # let _ = echo;
/// # }
/// ```
pub fn tonic<S, O, A, F>(channel: S, stack: &Stack<O, A, F, Grpc>) -> TonicClient<S, O, A, F>
where
    Stack<O, A, F, Grpc>: Layer<TonicTransport<S>>,
{
    stack.layer(TonicTransport::new(channel))
}

/// Sends requests through a channel of tonic's, and says what its errors prove.
#[derive(Clone, Debug)]
pub struct TonicTransport<S> {
    channel: S,
}

impl<S> TonicTransport<S> {
    /// Stands on a channel.
    pub const fn new(channel: S) -> Self {
        Self { channel }
    }
}

impl<S, B> Service<Request<ReplayBody<B>>> for TonicTransport<S>
where
    S: Service<Request<Body>, Response = Response<Body>>,
    S::Error: Into<BoxError>,
    B: http_body::Body + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<SoundBody>;
    type Error = BoxError;
    type Future = TonicFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.channel
            .poll_ready(cx)
            .map_err(|error| told(error.into()))
    }

    fn call(&mut self, request: Request<ReplayBody<B>>) -> Self::Future {
        TonicFuture {
            future: self
                .channel
                .call(request.map(|body| Body::new(Upload::new(body)))),
        }
    }
}

/// The future of one request through a channel of tonic's.
#[pin_project]
#[must_use = "futures do nothing unless polled"]
pub struct TonicFuture<F> {
    #[pin]
    future: F,
}

impl<F, E> Future for TonicFuture<F>
where
    F: Future<Output = Result<Response<Body>, E>>,
    E: Into<BoxError>,
{
    type Output = Result<Response<SoundBody>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(match ready!(self.project().future.poll(cx)) {
            Ok(answer) => Ok(sound(answer)),
            Err(error) => Err(told(error.into())),
        })
    }
}

/// What an error proves.
#[cold]
fn told(error: BoxError) -> BoxError {
    if chain::find::<TimeoutExpired>(&*error).is_some() {
        return late().into();
    }
    let connect = chain::find::<ConnectError>(&*error).is_some();
    let known = chain::find::<Status>(&*error).is_some();
    if known && !connect && proves_nothing(&*error) {
        // Whatever stands around the channel said so itself, before anything was sent.
        return error;
    }
    let error = prove(error, connect);
    if known {
        error.into()
    } else {
        status_of(error).into()
    }
}

/// tonic has a timer of its own, for the `grpc-timeout` that we have written: it goes off with ours, or a moment earlier. One
/// that goes off long before is the channel's, and bounds an attempt.
fn late() -> Rejection {
    let (context, now) = (CallContext::current(), clock::now());
    let due = |at: Option<Deadline>| at.is_some_and(|at| at.remaining(now) <= TICKS);
    let cut = |reason| Rejection::cut(reason, context.dependency());
    if due(context.attempt_deadline()) {
        cut(Reason::DeadlineExceeded)
    } else if due(context.attempt_cut()) {
        cut(Reason::AttemptTimedOut).with_limit(context.attempt_timeout())
    } else {
        cut(Reason::AttemptTimedOut)
    }
}

impl<F> fmt::Debug for TonicFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TonicFuture").finish_non_exhaustive()
    }
}
