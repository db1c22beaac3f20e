//! Waiting for the answer, inside the operation.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use mamparo_core::{BoxError, Outcome};
use pin_project::pin_project;

use super::guard::OperationGuard;
use super::layer::Shared;
use super::role::Kept;

/// The future of one operation.
#[pin_project]
#[must_use = "futures do nothing unless polled"]
pub struct OperationFuture<F, P, R, K: Kept> {
    #[pin]
    inner: F,
    // After the inner future: its attempts end before the operation does.
    operation: Option<OperationGuard<K>>,
    shared: Arc<Shared<P, R>>,
}

impl<F, P, R, K: Kept> OperationFuture<F, P, R, K> {
    pub(super) const fn new(
        inner: F,
        operation: OperationGuard<K>,
        shared: Arc<Shared<P, R>>,
    ) -> Self {
        Self {
            inner,
            operation: Some(operation),
            shared,
        }
    }
}

impl<F, P, R, K, Res, E> Future for OperationFuture<F, P, R, K>
where
    F: Future<Output = Result<Res, E>>,
    E: Into<BoxError>,
    P: Outcome<Res>,
    K: Kept,
{
    type Output = Result<P::Out<OperationGuard<K>>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let Some(operation) = this.operation else {
            return Poll::Pending; // not reached: the answer was given already
        };
        let answer = ready!(operation.enter(|| this.inner.poll(cx))).map_err(Into::into);
        let head = this.shared.classifier.head(answer.as_ref());
        let Some(mut operation) = this.operation.take() else {
            return Poll::Pending; // not reached, as above
        };
        Poll::Ready(match answer {
            Ok(response) => Ok(this.shared.classifier.tie(response, head, operation)),
            Err(error) => {
                operation.fail(head.verdict, &error);
                Err(error)
            }
        })
    }
}

impl<F, P, R, K: Kept> fmt::Debug for OperationFuture<F, P, R, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OperationFuture")
            .field("operation", &self.operation)
            .finish_non_exhaustive()
    }
}
