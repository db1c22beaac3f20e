//! Waiting for the head, inside the span.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::Response;
use mamparo_core::{BoxError, Head, Outcome, Verdict};
use pin_project::pin_project;

use super::guard::ExchangeGuard;
use super::role::{Fault, Passes, Role};
use super::shared::Shared;

/// The future of one exchange.
#[pin_project]
#[must_use = "futures do nothing unless polled"]
pub struct ExchangeFuture<F, P, R: Role> {
    #[pin]
    inner: F,
    exchange: Option<ExchangeGuard<R>>,
    shared: Arc<Shared<P, R>>,
}

impl<F, P, R: Role> ExchangeFuture<F, P, R> {
    pub(super) const fn new(
        inner: F,
        exchange: ExchangeGuard<R>,
        shared: Arc<Shared<P, R>>,
    ) -> Self {
        Self {
            inner,
            exchange: Some(exchange),
            shared,
        }
    }
}

impl<F, P, R, B, E> Future for ExchangeFuture<F, P, R>
where
    F: Future<Output = Result<Response<B>, E>>,
    P: Outcome<Response<B>>,
    R: Passes<E>,
{
    type Output = Result<P::Out<ExchangeGuard<R>>, R::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let Some(exchange) = this.exchange else {
            return Poll::Pending; // not reached: the answer was given already
        };
        let answer = ready!(exchange.enter(|| this.inner.poll(cx)));
        let Some(mut exchange) = this.exchange.take() else {
            return Poll::Pending; // not reached, as above
        };
        let classifier = &this.shared.classifier;
        let heard = exchange.is_heard();
        let judge = |outcome: Result<&Response<B>, &BoxError>| match heard {
            true => classifier.head(outcome),
            false => Head::last(Verdict::IGNORED), // nobody would hear of it
        };
        Poll::Ready(match answer {
            Ok(response) => {
                let head = judge(Ok(&response));
                exchange.answered(&response);
                Ok(classifier.tie(response, head, exchange))
            }
            Err(error) => {
                Err(R::pass(error).look(|error| exchange.fail(judge(Err(error)).verdict, error)))
            }
        })
    }
}

impl<F, P, R: Role> fmt::Debug for ExchangeFuture<F, P, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExchangeFuture")
            .field("exchange", &self.exchange)
            .finish_non_exhaustive()
    }
}
