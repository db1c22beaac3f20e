//! The wiring of faults.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};

use mamparo_core::{BoxError, CallContext, Event, Observer, What};
use tower_service::Service;

use super::config::Effect;
use super::handle::{Active, Shared};
use super::state::{Draw, draw};
use super::{FaultFuture, Protocol, Spoil};

/// Spoils calls on purpose; see the [module](super).
pub struct Faulty<S, Req, P: Protocol> {
    inner: S,
    shared: Arc<Shared<Req, P>>,
    observer: Option<Arc<dyn Observer>>,
}

impl<S, Req, P: Protocol> Faulty<S, Req, P> {
    pub(super) const fn new(
        inner: S,
        shared: Arc<Shared<Req, P>>,
        observer: Option<Arc<dyn Observer>>,
    ) -> Self {
        Self {
            inner,
            shared,
            observer,
        }
    }

    fn report(&self, active: &Active<Req, P>, draw: &Draw<'_, P::MadeUp>) {
        for place in draw.hits() {
            self.shared.injected.fetch_add(1, Relaxed);
            let fault = active.plan.faults[place].effect.name();
            let what = What::FaultInjected { fault };
            Event::report(self.observer.as_ref(), &CallContext::current(), what);
        }
    }
}

impl<S, Req, P> Service<Req> for Faulty<S, Req, P>
where
    S: Service<Req> + Clone,
    S::Error: Into<BoxError>,
    P: Spoil<S::Response>,
{
    type Response = P::Out;
    type Error = BoxError;
    type Future = FaultFuture<S::Future, P, S::Response>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Req) -> Self::Future {
        let Some(active) = self.shared.active() else {
            return FaultFuture::called(self.inner.call(request));
        };
        let call = active.calls.fetch_add(1, Relaxed);
        let draw = draw(&active.plan, call, &request);
        self.report(&active, &draw);
        match draw.outcome {
            None | Some(Effect::Latency { .. }) => FaultFuture::called(self.inner.call(request)),
            Some(Effect::Body(fault)) => {
                FaultFuture::called(self.inner.call(request)).spoil(*fault)
            }
            Some(Effect::Error(error)) => {
                give_back(&mut self.inner);
                FaultFuture::answered(Err(error()))
            }
            Some(Effect::Response(response)) => {
                give_back(&mut self.inner);
                FaultFuture::answered(Ok(P::make_up(response())))
            }
        }
        .late(draw.late)
    }
}

/// Gives a slot back that was ready for a call which is not made: the next call asks for its own.
fn give_back<S: Clone>(inner: &mut S) {
    let fresh = inner.clone();
    *inner = fresh;
}

impl<S: Clone, Req, P: Protocol> Clone for Faulty<S, Req, P> {
    fn clone(&self) -> Self {
        Self::new(
            self.inner.clone(),
            Arc::clone(&self.shared),
            self.observer.clone(),
        )
    }
}

impl<S: fmt::Debug, Req, P: Protocol> fmt::Debug for Faulty<S, Req, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faulty")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}
