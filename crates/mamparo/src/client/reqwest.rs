//! reqwest's client.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use ::http::{Request, Response};
use ::reqwest::redirect::Policy;
use ::reqwest::{Client, ClientBuilder};
use bytes::Bytes;
use http_body::Body;
use mamparo_core::{BoxError, CallContext, Kind, Resend, TransportError, clock};
use pin_project::pin_project;
use tower_layer::{Identity, Layer};
use tower_service::Service;

use super::proof::prove;
use crate::stack::Stack;

/// The recommended stack around reqwest's client: what [`reqwest()`] returns.
///
/// It takes requests with any body, so a call that has no request yet must say which:
/// `ServiceExt::<Request<String>>::ready(&mut client)`; `oneshot` sees it from its request.
pub type ReqwestClient<O = Identity, A = Identity, F = Identity> =
    <Stack<O, A, F> as Layer<ReqwestTransport>>::Service;

/// Builds the recommended stack around reqwest's client.
///
/// It takes the builder, because reqwest's own retries can only be turned off there.
///
/// # Errors
///
/// What [`ClientBuilder::build`] refuses.
///
/// ```
/// use mamparo::stack::Stack;
///
/// let catalog = mamparo::client::reqwest(reqwest::Client::builder(), &Stack::http("catalog"))?;
/// # let _ = catalog;
/// # Ok::<(), reqwest::Error>(())
/// ```
pub fn reqwest<O, A, F>(
    builder: ClientBuilder,
    stack: &Stack<O, A, F>,
) -> Result<ReqwestClient<O, A, F>, ::reqwest::Error>
where
    Stack<O, A, F>: Layer<ReqwestTransport>,
{
    let builder = builder.connector_layer(stack.connect());
    Ok(stack.layer(ReqwestTransport::new(builder)?))
}

/// How long after the deadline reqwest's own timeout follows: it is a second line of defence, and must not win against
/// the layers, whose rejection says more.
const GRACE: Duration = Duration::from_millis(50);

/// Sends requests through reqwest's client, and says what its errors prove.
///
/// The answer is an `http::Response<reqwest::Body>`. To have reqwest's own methods on it, turn it back:
/// `reqwest::Response::from(answer.map(reqwest::Body::wrap))`.
#[derive(Clone, Debug)]
pub struct ReqwestTransport {
    client: Client,
}

impl ReqwestTransport {
    /// Builds the client, with its own retries and redirects turned off: one owner of resends, each of them seen.
    ///
    /// Inside of an operation the builder's own `timeout` is replaced by what remains of the deadline; set the stack's.
    ///
    /// # Errors
    ///
    /// What [`ClientBuilder::build`] refuses.
    pub fn new(builder: ClientBuilder) -> Result<Self, ::reqwest::Error> {
        let client = builder
            .retry(::reqwest::retry::never())
            .redirect(Policy::none())
            .build()?;
        Ok(Self { client })
    }
}

impl<B> Service<Request<B>> for ReqwestTransport
where
    B: Body + Send + Sync + 'static,
    B::Data: Into<Bytes>,
    B::Error: Into<BoxError>,
{
    type Response = Response<::reqwest::Body>;
    type Error = BoxError;
    type Future = ReqwestFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> ReqwestFuture {
        let request = ::reqwest::Request::try_from(request.map(::reqwest::Body::wrap));
        ReqwestFuture(match request {
            Ok(mut request) => {
                if let Some(deadline) = CallContext::current().deadline() {
                    *request.timeout_mut() = Some(deadline.remaining(clock::now()) + GRACE);
                }
                State::Sent(Box::pin(self.client.execute(request)))
            }
            Err(error) => State::Refused(Some(error)),
        })
    }
}

/// The future of one request through reqwest's client.
#[pin_project]
#[must_use = "futures do nothing unless polled"]
pub struct ReqwestFuture(#[pin] State);

type Execute = dyn Future<Output = Result<::reqwest::Response, ::reqwest::Error>> + Send;

#[pin_project(project = StateProjected)]
enum State {
    Sent(#[pin] Pin<Box<Execute>>),
    Refused(Option<::reqwest::Error>),
}

impl Future for ReqwestFuture {
    type Output = Result<Response<::reqwest::Body>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().0.project() {
            StateProjected::Sent(future) => future.poll(cx).map(|result| match result {
                Ok(response) => Ok(response.into()),
                Err(error) => Err(judge(error).into()),
            }),
            StateProjected::Refused(error) => match error.take() {
                Some(error) => Poll::Ready(Err(judge(error).into())),
                None => Poll::Pending,
            },
        }
    }
}

fn judge(error: ::reqwest::Error) -> TransportError {
    // The address is the caller's, and may hold a secret: it is not part of the message.
    let error = error.without_url();
    if error.is_builder() {
        return TransportError::new(Kind::Client, Resend::Never, error);
    }
    if error.is_connect() {
        return prove(error, true);
    }
    if error.is_timeout() {
        return TransportError::new(Kind::Timeout, Resend::IfIdempotent, error);
    }
    prove(error, false)
}

impl fmt::Debug for ReqwestFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReqwestFuture").finish_non_exhaustive()
    }
}
