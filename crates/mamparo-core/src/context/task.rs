//! Taking the context into a spawned task, or leaving it behind.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project::pin_project;

use super::{CallContext, Scope};

/// A future that is polled in the context in which it was made, wherever it is spawned.
#[pin_project]
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct InContext<F> {
    #[pin]
    future: F,
    scope: Scope,
}

impl<F: Future> Future for InContext<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        this.scope.enter(|| this.future.poll(cx))
    }
}

/// Takes the current context along into a spawned task: the deadline binds there too.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use mamparo_core::{CallContext, carry};
/// let task = tokio::spawn(carry(async { CallContext::current().deadline() }));
/// assert_eq!(task.await.unwrap(), None);
/// # }
/// ```
pub fn carry<F: Future>(future: F) -> InContext<F> {
    InContext {
        future,
        scope: Scope::of(CallContext::current()),
    }
}

/// Leaves the current context behind, for background work that outlives the call.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use mamparo_core::{CallContext, detach};
/// assert!(detach(async { CallContext::current().operation() }).await.is_none());
/// # }
/// ```
pub fn detach<F: Future>(future: F) -> InContext<F> {
    InContext {
        future,
        scope: Scope::of(CallContext::EMPTY),
    }
}
