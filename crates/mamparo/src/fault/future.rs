//! One call that may be spoiled.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use mamparo_core::BoxError;
use pin_project::pin_project;
use tokio::time::Sleep;

use super::{BodyFault, Spoil};
use crate::timer;

/// The future of a call that may be late, wrong or cut short.
#[pin_project]
#[must_use = "futures do nothing unless polled"]
pub struct FaultFuture<F, P: Spoil<Res>, Res> {
    #[pin]
    state: State<F, P::Out>,
    late: Duration,
    body: Option<BodyFault>,
}

#[pin_project(project = StateProjected)]
enum State<F, Out> {
    /// The inner service works.
    Called(#[pin] F),
    /// The answer is there.
    Answered(Option<Result<Out, BoxError>>),
    /// The answer is there, and waits for its time. Boxed, because it is rare.
    Late(Option<Result<Out, BoxError>>, Pin<Box<Sleep>>),
}

impl<F, P: Spoil<Res>, Res> FaultFuture<F, P, Res> {
    const fn new(state: State<F, P::Out>) -> Self {
        Self {
            state,
            late: Duration::ZERO,
            body: None,
        }
    }

    pub(super) const fn called(future: F) -> Self {
        Self::new(State::Called(future))
    }

    pub(super) const fn answered(answer: Result<P::Out, BoxError>) -> Self {
        Self::new(State::Answered(Some(answer)))
    }

    pub(super) fn late(mut self, late: Duration) -> Self {
        self.late = late;
        self
    }

    pub(super) fn spoil(mut self, body: BodyFault) -> Self {
        self.body = Some(body);
        self
    }
}

impl<F, P, Res, E> Future for FaultFuture<F, P, Res>
where
    F: Future<Output = Result<Res, E>>,
    P: Spoil<Res>,
    E: Into<BoxError>,
{
    type Output = Result<P::Out, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let answer = match this.state.as_mut().project() {
                StateProjected::Called(future) => match ready!(future.poll(cx)) {
                    Ok(answer) => Some(Ok(P::pass(answer, *this.body))),
                    Err(error) => Some(Err(error.into())),
                },
                StateProjected::Answered(answer) => answer.take(),
                StateProjected::Late(answer, timer) => {
                    ready!(timer::poll(timer.as_mut(), cx));
                    return answer.take().map_or(Poll::Pending, Poll::Ready);
                }
            };
            let Some(answer) = answer else {
                return Poll::Pending; // polled again after its end
            };
            if this.late.is_zero() {
                return Poll::Ready(answer);
            }
            let timer = Box::pin(tokio::time::sleep(*this.late));
            this.state.set(State::Late(Some(answer), timer));
        }
    }
}

impl<F, P: Spoil<Res>, Res> fmt::Debug for FaultFuture<F, P, Res> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultFuture")
            .field("late", &self.late)
            .field("body", &self.body)
            .finish_non_exhaustive()
    }
}
