//! One operation, until its deadline.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use mamparo_core::clock::Instant;
use mamparo_core::gate::GateFuture;
use mamparo_core::{BoxError, CallContext};
use pin_project::pin_project;
use tower_service::Service;

use super::error::{cut, refused};
use super::layer::Shared;
use crate::bound::{self, Bounded, Over};
use crate::wire::BoundsAnswer;

/// The future of an operation that ends at its deadline.
#[pin_project]
#[must_use = "futures do nothing unless polled"]
pub struct DeadlineFuture<S: Service<Req>, W, Req> {
    #[pin]
    call: Bounded<S, Req>,
    called: Instant,
    shared: Arc<Shared<W>>,
}

impl<S: Service<Req>, W, Req> DeadlineFuture<S, W, Req> {
    /// Runs a call that was made at `called`; none is one that was refused.
    #[inline]
    pub(super) const fn new(
        inner: Option<GateFuture<S, Req>>,
        context: CallContext,
        called: Instant,
        shared: Arc<Shared<W>>,
    ) -> Self {
        Self {
            call: Bounded::new(inner, context),
            called,
            shared,
        }
    }
}

impl<S, W, Req> Future for DeadlineFuture<S, W, Req>
where
    S: Service<Req>,
    S::Error: Into<BoxError>,
    W: BoundsAnswer<S::Response>,
{
    type Output = Result<W::Bounded, BoxError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let deadline = this.call.context().deadline();
        let over = ready!(this.call.as_mut().poll(deadline, cx));
        let (context, observer) = (this.call.context(), this.shared.observer.as_ref());
        let rejection = match over {
            Over::Ended(result) => {
                bound::report_late(context, observer);
                return Poll::Ready(match result {
                    Ok(answer) => Ok(bound::within_deadline(
                        &this.shared.wire,
                        answer,
                        context,
                        observer,
                    )),
                    Err(error) => Err(error.into()),
                });
            }
            Over::Cut { sent } => {
                bound::report_late(context, observer);
                match deadline.filter(|_| sent) {
                    Some(deadline) => cut(context, deadline.remaining(*this.called)),
                    None => refused(context),
                }
            }
            Over::Refused => refused(context),
        };
        Poll::Ready(Err(bound::reject(rejection, context, observer)))
    }
}

impl<S: Service<Req>, W, Req> fmt::Debug for DeadlineFuture<S, W, Req> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadlineFuture")
            .field("deadline", &self.call.context().deadline())
            .finish_non_exhaustive()
    }
}
