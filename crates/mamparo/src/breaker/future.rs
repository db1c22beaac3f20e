//! One call through a breaker.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use mamparo_core::gate::GateFuture;
use mamparo_core::{BoxError, Outcome};
use pin_project::pin_project;
use tower_service::Service;

use super::guard::{BreakerGuard, Open};

/// The future of a call that a breaker let through, or refused.
#[pin_project]
#[must_use = "futures do nothing unless polled"]
pub struct BreakerFuture<S: Service<Req>, P, K, Req>(#[pin] State<S, P, K, Req>);

#[pin_project(project = Projected)]
enum State<S: Service<Req>, P, K, Req> {
    /// The call is under way. It is dropped before its place is given back.
    Called {
        #[pin]
        inner: GateFuture<S, Req>,
        open: Option<Open<P, K>>,
    },
    Refused {
        error: Option<BoxError>,
    },
}

impl<S: Service<Req>, P, K, Req> BreakerFuture<S, P, K, Req> {
    #[inline]
    pub(super) const fn called(inner: GateFuture<S, Req>, open: Open<P, K>) -> Self {
        Self(State::Called {
            inner,
            open: Some(open),
        })
    }

    #[inline]
    pub(super) const fn refused(error: BoxError) -> Self {
        Self(State::Refused { error: Some(error) })
    }
}

impl<S, P, K, Req> Future for BreakerFuture<S, P, K, Req>
where
    S: Service<Req>,
    S::Error: Into<BoxError>,
    P: Outcome<S::Response>,
    K: Send + Sync + 'static,
{
    type Output = Result<P::Out<BreakerGuard<P, K>>, BoxError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().0.project() {
            Projected::Called { inner, open } => {
                let outcome = ready!(inner.poll(cx)).map_err(Into::into);
                match open.take() {
                    // From here on it is dropped, and its place given back, should a classifier panic.
                    Some(open) => Poll::Ready(ended(outcome, open)),
                    None => Poll::Pending, // not reached: a future is not polled after its end
                }
            }
            Projected::Refused { error } => match error.take() {
                Some(error) => Poll::Ready(Err(error)),
                None => Poll::Pending, // not reached: a future is not polled after its end
            },
        }
    }
}

/// Judges what came back, and ties the place to an answer that is not over yet.
#[inline]
fn ended<Res, P, K>(
    outcome: Result<Res, BoxError>,
    mut open: Open<P, K>,
) -> Result<P::Out<BreakerGuard<P, K>>, BoxError>
where
    P: Outcome<Res>,
    K: Send + Sync + 'static,
{
    open.answered();
    let head = open.shared.protocol.head(outcome.as_ref());
    match outcome {
        Err(error) => {
            open.settle(head.verdict);
            Err(error)
        }
        Ok(answer) if head.last => {
            open.settle(head.verdict);
            let settled = BreakerGuard::settled();
            Ok(open.shared.protocol.tie(answer, head, settled))
        }
        Ok(answer) => {
            let shared = open.shared.clone();
            let guard = BreakerGuard::open(open);
            Ok(shared.protocol.tie(answer, head, guard))
        }
    }
}

impl<S: Service<Req>, P, K, Req> fmt::Debug for BreakerFuture<S, P, K, Req> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            State::Called { .. } => "BreakerFuture::Called",
            State::Refused { .. } => "BreakerFuture::Refused",
        })
    }
}
