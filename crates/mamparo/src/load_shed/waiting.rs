//! A call that waits for the inner service, and is shed if that took too long.

use std::task::{Context, Poll, ready};

use mamparo_core::gate::GateFuture;
use mamparo_core::{BoxError, Gate, clock};
use tower_service::Service;

use super::guard::Place;
use super::service::Call;

/// A call that waits for the inner service.
pub(super) struct Waiting<S, P, A, Req> {
    gate: Gate<S>,
    /// Until the inner service is ready.
    held: Option<(Req, Place<P, A>)>,
    call: Call,
}

/// A call that the inner service was ready for in time, and its place.
type Called<S, P, A, Req> = (GateFuture<S, Req>, Place<P, A>);

impl<S, P, A, Req> Waiting<S, P, A, Req> {
    pub(super) fn new(gate: Gate<S>, request: Req, place: Place<P, A>, call: Call) -> Box<Self> {
        Box::new(Self {
            gate,
            held: Some((request, place)),
            call,
        })
    }

    /// Polls the inner service's readiness, and calls it unless the call waited too long for it.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Called<S, P, A, Req>, BoxError>>
    where
        S: Service<Req> + Clone,
        S::Error: Into<BoxError>,
    {
        ready!(self.gate.poll_inner(cx)).map_err(Into::into)?;
        let Some((request, place)) = self.held.take() else {
            return Poll::Pending; // not reached: it is polled until the inner service is ready, and no more
        };
        let shared = &*place.shared;
        if self.call.arrived.is_some()
            && let Err(by) = shared.waited(&self.call, clock::now())
        {
            return Poll::Ready(Err(shared.refuse(by, self.call.priority())));
        }
        Poll::Ready(Ok((self.gate.call(request), place)))
    }
}
