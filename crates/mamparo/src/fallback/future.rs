//! One operation under way, and its fallback.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use mamparo_core::shard::Held;
use mamparo_core::{
    BoxError, CallContext, Class, Classify, Dependency, Event, FallbackEnd, Rejection, Verdict,
    What, clock,
};
use pin_project::pin_project;
use tower_service::Service;

use super::error::FallbackError;
use super::layer::Shared;
use super::places::Place;
use super::serve::Mark;
use super::state::falls_back;
use super::{Failed, FallbackFailed, FellBack, Serve, Substitute};

/// The future of one operation, and of its fallback should it fail.
#[pin_project]
#[must_use = "futures do nothing unless polled"]
pub struct FallbackFuture<S, P, F, Req>
where
    F: Substitute<P, Req>,
    S: Service<F::Wire>,
{
    #[pin]
    state: State<S::Future, FallingBack<S::Response, F::Future>>,
    /// What is kept of the request, until the fallback needs it.
    kept: Option<F::Kept>,
    shared: Held<Shared<P, F>>,
}

#[pin_project(project = StateProjected)]
enum State<C, F> {
    Calling {
        #[pin]
        future: C,
    },
    // In a place of its own, because it is rare, and a future is moved before it is polled.
    FallingBack {
        fallback: Pin<Box<F>>,
    },
}

/// A fallback under way, and what it stands in for.
#[pin_project]
struct FallingBack<Res, F> {
    #[pin]
    future: F,
    failed: Failed,
    place: Option<Place>,
    /// The operation's own result, which is the caller's should the fallback fail.
    own: Option<Result<Res, BoxError>>,
}

impl<S, P, F, Req> FallbackFuture<S, P, F, Req>
where
    F: Substitute<P, Req>,
    S: Service<F::Wire>,
{
    #[inline]
    pub(super) const fn new(future: S::Future, kept: F::Kept, shared: Held<Shared<P, F>>) -> Self {
        Self {
            state: State::Calling { future },
            kept: Some(kept),
            shared,
        }
    }
}

impl<S, P, F, Req> Future for FallbackFuture<S, P, F, Req>
where
    F: Substitute<P, Req>,
    P: Classify<S::Response> + Serve<S::Response, F::Response>,
    S: Service<F::Wire>,
    S::Error: Into<BoxError>,
{
    type Output = Result<P::Out, BoxError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let shared = &**this.shared;
        loop {
            let fallback = match this.state.as_mut().project() {
                StateProjected::FallingBack { fallback } => {
                    return fallback.as_mut().poll_answer(shared, cx);
                }
                StateProjected::Calling { future } => {
                    let outcome = ready!(future.poll(cx)).map_err(Into::into);
                    let verdict = shared.protocol.head(outcome.as_ref()).verdict;
                    if verdict.class() == Class::Success {
                        return Poll::Ready(outcome.map(|own| shared.protocol.own(own, None)));
                    }
                    match fall_back(shared, this.kept, outcome, verdict) {
                        Ok(fallback) => fallback,
                        Err(outcome) => {
                            let own = |own| shared.protocol.own(own, None);
                            return Poll::Ready(outcome.map(own));
                        }
                    }
                }
            };
            // The dependency's own future goes first, and with it whatever it still holds.
            this.state.set(State::FallingBack { fallback });
        }
    }
}

/// Asks for another answer, if the failure is one to fall back from; else the operation's own result is the caller's.
#[cold]
#[expect(
    clippy::type_complexity,
    reason = "the parts are named by the traits, and an alias would hide them"
)]
fn fall_back<P, F, Req, Res>(
    shared: &Shared<P, F>,
    kept: &mut Option<F::Kept>,
    own: Result<Res, BoxError>,
    verdict: Verdict,
) -> Result<Pin<Box<FallingBack<Res, F::Future>>>, Result<Res, BoxError>>
where
    F: Substitute<P, Req>,
{
    let rejection = own.as_ref().err().and_then(|error| Rejection::of(&**error));
    let reason = rejection.map(Rejection::reason);
    if !falls_back(&shared.policy, verdict, reason) {
        return Err(own);
    }
    let failed = Failed::new(verdict, reason);
    match ask(shared, kept, failed) {
        Ok((future, place)) => Ok(Box::pin(FallingBack {
            future,
            failed,
            place,
            own: Some(own),
        })),
        Err(ended) => {
            report(shared, verdict, ended);
            Err(own)
        }
    }
}

/// Asks what stands in; an error is why not.
fn ask<P, F, Req>(
    shared: &Shared<P, F>,
    kept: &mut Option<F::Kept>,
    failed: Failed,
) -> Result<(F::Future, Option<Place>), FallbackEnd>
where
    F: Substitute<P, Req>,
{
    let deadline = CallContext::current().deadline();
    if deadline.is_some_and(|deadline| deadline.has_passed(clock::now())) {
        return Err(FallbackEnd::TooLate);
    }
    let place = match &shared.places {
        Some(places) => Some(places.take().ok_or(FallbackEnd::Full)?),
        None => None,
    };
    let kept = kept.take().ok_or(FallbackEnd::NoRequest)?;
    let future = shared.substitute.answer(&shared.protocol, kept, failed);
    Ok((future.ok_or(FallbackEnd::NoRequest)?, place))
}

impl<Res, F> FallingBack<Res, F> {
    fn poll_answer<P, T, Sub, E>(
        self: Pin<&mut Self>,
        shared: &Shared<P, T>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<P::Out, BoxError>>
    where
        P: Serve<Res, Sub>,
        F: Future<Output = Result<Sub, E>>,
        E: Into<BoxError>,
    {
        let this = self.project();
        let answer = ready!(this.future.poll(cx));
        let place = this.place.take();
        let verdict = this.failed.verdict();
        let error = match answer {
            Ok(answer) => {
                report(shared, verdict, FallbackEnd::Served);
                let mark = Mark {
                    fell_back: FellBack(*this.failed),
                    header: shared.policy.settings.header.as_ref(),
                    place,
                };
                return Poll::Ready(Ok(shared.protocol.other(answer, mark)));
            }
            Err(error) => error.into(),
        };
        report(shared, verdict, FallbackEnd::Failed);
        Poll::Ready(match this.own.take() {
            // A real response is never replaced by an error of ours.
            Some(Ok(own)) => {
                let failed = FallbackFailed(Arc::new(error));
                Ok(shared.protocol.own(own, Some(failed)))
            }
            Some(Err(own)) => Err(FallbackError::new(dependency(shared), own, error).into()),
            None => Err(error),
        })
    }
}

fn dependency<P, F>(shared: &Shared<P, F>) -> Dependency {
    if shared.dependency.is_unnamed() {
        CallContext::current().dependency()
    } else {
        shared.dependency
    }
}

fn report<P, F>(shared: &Shared<P, F>, verdict: Verdict, ended: FallbackEnd) {
    let what = What::FellBack { verdict, ended };
    let context = CallContext::current_for(shared.dependency);
    Event::report(shared.observer.as_ref(), &context, what);
}

impl<S, P, F, Req> fmt::Debug for FallbackFuture<S, P, F, Req>
where
    F: Substitute<P, Req>,
    S: Service<F::Wire>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Calling { .. } => "calling",
            State::FallingBack { .. } => "falling back",
        };
        f.debug_struct("FallbackFuture")
            .field("state", &state)
            .finish_non_exhaustive()
    }
}
