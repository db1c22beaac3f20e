//! One call, which passes, waits for the inner service, or is shed.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use mamparo_core::gate::GateFuture;
use mamparo_core::{BoxError, Outcome};
use pin_project::pin_project;
use tower_service::Service;

use super::guard::{Place, ShedGuard};
use super::priority::Assess;
use super::waiting::Waiting;

/// The future of a call under load shedding.
#[pin_project]
#[must_use = "futures do nothing unless polled"]
pub struct LoadShedFuture<S: Service<Req>, P, A, Req>(#[pin] State<S, P, A, Req>);

#[pin_project(project = Now)]
enum State<S: Service<Req>, P, A, Req> {
    /// It passed. The call is dropped before its place is given back.
    Called {
        #[pin]
        future: GateFuture<S, Req>,
        /// None where the layer is off.
        place: Option<Place<P, A>>,
    },
    /// It waits for the inner service.
    Waiting(Box<Waiting<S, P, A, Req>>),
    /// It was shed; its rejection, until it is told.
    Refused(Option<BoxError>),
}

impl<S: Service<Req>, P, A, Req> LoadShedFuture<S, P, A, Req> {
    #[inline]
    pub(super) const fn called(future: GateFuture<S, Req>, place: Option<Place<P, A>>) -> Self {
        Self(State::Called { future, place })
    }

    pub(super) const fn waits(waiting: Box<Waiting<S, P, A, Req>>) -> Self {
        Self(State::Waiting(waiting))
    }

    pub(super) const fn refused(rejection: BoxError) -> Self {
        Self(State::Refused(Some(rejection)))
    }
}

impl<S, P, A, Req> Future for LoadShedFuture<S, P, A, Req>
where
    S: Service<Req> + Clone,
    S::Error: Into<BoxError>,
    P: Outcome<S::Response>,
    A: Assess<Req>,
{
    type Output = Result<P::Out<ShedGuard<P, A>>, BoxError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().0;
        loop {
            match state.as_mut().project() {
                Now::Called { future, place } => {
                    let outcome = ready!(future.poll(cx)).map_err(Into::into);
                    return match place.take() {
                        Some(place) => Poll::Ready(ended(outcome, place)),
                        None => Poll::Ready(outcome.map(P::untied)),
                    };
                }
                Now::Waiting(waiting) => {
                    let (future, place) = ready!(waiting.poll(cx))?;
                    let place = Some(place);
                    state.set(State::Called { future, place });
                }
                Now::Refused(rejection) => {
                    return match rejection.take() {
                        Some(rejection) => Poll::Ready(Err(rejection)),
                        None => Poll::Pending, // polled after its end
                    };
                }
            }
        }
    }
}

/// Judges what came back, and ties the place to an answer that is not over yet.
///
/// Should a classifier panic, the place is dropped: it is free, and nothing is counted.
#[inline]
fn ended<Res, P, A>(
    outcome: Result<Res, BoxError>,
    place: Place<P, A>,
) -> Result<P::Out<ShedGuard<P, A>>, BoxError>
where
    P: Outcome<Res>,
    A: Send + Sync + 'static,
{
    let head = place.shared.protocol.head(outcome.as_ref());
    match outcome {
        Err(error) => {
            place.settle(head.verdict);
            Err(error)
        }
        Ok(answer) if head.last => {
            place.settle(head.verdict);
            let settled = ShedGuard::settled();
            Ok(place.shared.protocol.tie(answer, head, settled))
        }
        Ok(answer) => {
            let shared = place.shared.clone();
            let guard = ShedGuard::open(place);
            Ok(shared.protocol.tie(answer, head, guard))
        }
    }
}

impl<S: Service<Req>, P, A, Req> fmt::Debug for LoadShedFuture<S, P, A, Req> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            State::Called { .. } => "LoadShedFuture::Called",
            State::Waiting(_) => "LoadShedFuture::Waiting",
            State::Refused(_) => "LoadShedFuture::Refused",
        })
    }
}
