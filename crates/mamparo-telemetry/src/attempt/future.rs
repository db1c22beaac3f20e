//! Waiting for the head, inside the attempt's span.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::Response;
use mamparo_core::{BoxError, Head, Outcome, Verdict};
use pin_project::pin_project;

use super::guard::AttemptGuard;
use super::layer::Shared;

/// The future of one physical send.
#[pin_project]
#[must_use = "futures do nothing unless polled"]
pub struct AttemptFuture<F, P> {
    #[pin]
    inner: F,
    attempt: Option<AttemptGuard>,
    shared: Arc<Shared<P>>,
}

impl<F, P> AttemptFuture<F, P> {
    pub(super) const fn new(inner: F, attempt: AttemptGuard, shared: Arc<Shared<P>>) -> Self {
        Self {
            inner,
            attempt: Some(attempt),
            shared,
        }
    }
}

impl<F, P, B, E> Future for AttemptFuture<F, P>
where
    F: Future<Output = Result<Response<B>, E>>,
    E: Into<BoxError>,
    P: Outcome<Response<B>>,
{
    type Output = Result<P::Out<AttemptGuard>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let Some(attempt) = this.attempt else {
            return Poll::Pending; // not reached: the answer was given already
        };
        let answer = ready!(attempt.enter(|| this.inner.poll(cx))).map_err(Into::into);
        let Some(mut attempt) = this.attempt.take() else {
            return Poll::Pending; // not reached, as above
        };
        let head = if attempt.is_heard() {
            this.shared.classifier.head(answer.as_ref())
        } else {
            Head::last(Verdict::IGNORED) // nobody would hear of it
        };
        Poll::Ready(match answer {
            Ok(response) => {
                attempt.answered(response.status(), response.version());
                Ok(this.shared.classifier.tie(response, head, attempt))
            }
            Err(error) => {
                attempt.fail(head.verdict, &error);
                Err(error)
            }
        })
    }
}

impl<F, P> fmt::Debug for AttemptFuture<F, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttemptFuture")
            .field("attempt", &self.attempt)
            .finish_non_exhaustive()
    }
}
