//! The wiring of a bulkhead.

use std::fmt;
use std::mem;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use mamparo_core::shard::Spread;
use mamparo_core::{BoxError, Gate, Outcome};
use tower_service::Service;

use super::BulkheadFuture;
use super::error::full;
use super::layer::Shared;
use super::partition::{ByContext, Seat, TenantOf};
use super::permit::{Permit, Place, Ticket};
use super::places::Entry;
use super::wait::Wait;

/// Bounds how many calls run at once; see the [module](super).
pub struct Bulkhead<S, P, T = ByContext> {
    inner: Gate<S>,
    shared: Spread<Shared<P>>,
    tenants: T,
    /// Whether a call asks for more than a place: who it is for, whether it has one already, or needs none.
    asks_more: bool,
    /// Under back-pressure; it is not cloned.
    ahead: Ahead<P>,
}

/// What a service has before it is called.
enum Ahead<P> {
    Nothing,
    Queued(Ticket<P>),
    Ready(Place<P>),
}

impl<S, P: Clone, T> Bulkhead<S, P, T> {
    pub(super) fn new(inner: S, shared: Spread<Shared<P>>, tenants: T) -> Self {
        let policy = &shared.policy;
        Self {
            inner: Gate::new(inner),
            asks_more: policy.is_back_pressure()
                || policy.partitions().is_some()
                || policy.is_off(),
            shared,
            tenants,
            ahead: Ahead::Nothing,
        }
    }

    /// Waits for a place, ahead of the call.
    #[cold]
    fn poll_place(&mut self, cx: &Context<'_>) -> Poll<Result<(), BoxError>> {
        loop {
            self.ahead = match &mut self.ahead {
                Ahead::Ready(_) => return Poll::Ready(Ok(())),
                Ahead::Queued(ticket) => match ticket.poll(cx) {
                    Some(place) => Ahead::Ready(place),
                    None => return Poll::Pending,
                },
                Ahead::Nothing => match self.shared.places.enter_unbounded() {
                    Entry::Entered => Ahead::Ready(Place::new(self.shared.hold(), Seat::default())),
                    Entry::Queued(number) => {
                        let held = self.shared.hold();
                        Ahead::Queued(Ticket::new(held, Seat::default(), number))
                    }
                    Entry::Full => {
                        let rejection = full(self.shared.name());
                        return Poll::Ready(Err(self.shared.reject(rejection)));
                    }
                },
            };
        }
    }

    /// The place that was taken ahead; a wait that was not over is.
    #[cold]
    fn taken_ahead(&mut self) -> Option<Place<P>> {
        match mem::replace(&mut self.ahead, Ahead::Nothing) {
            Ahead::Ready(mut place) => {
                place.start();
                self.shared.note(Duration::ZERO);
                Some(place)
            }
            Ahead::Queued(_) | Ahead::Nothing => None,
        }
    }

    #[cold]
    fn seat<Req>(&self, request: &Req) -> Seat
    where
        T: TenantOf<Req>,
    {
        let partitions = self.shared.policy.partitions();
        partitions.map_or_else(Seat::default, |partitions| {
            partitions.seat(self.tenants.tenant(request))
        })
    }

    /// A call that found no place: it waits for one, or is refused.
    #[cold]
    fn wait<Req>(&mut self, entry: Entry, seat: Seat, request: Req) -> BulkheadFuture<S, P, Req>
    where
        S: Service<Req> + Clone,
    {
        let Entry::Queued(number) = entry else {
            self.inner.release();
            self.shared.note(Duration::ZERO);
            return BulkheadFuture::refused(self.shared.reject(full(self.shared.name())));
        };
        // Before a clone is made: whoever panics there leaves the line.
        let ticket = Ticket::new(self.shared.hold(), seat, number);
        self.inner.release();
        let wait = Wait::new(ticket, self.shared.hold());
        BulkheadFuture::queued(self.inner.defer(request), wait)
    }
}

impl<S, P, T, Req> Service<Req> for Bulkhead<S, P, T>
where
    S: Service<Req> + Clone,
    S::Error: Into<BoxError>,
    P: Outcome<S::Response> + Clone,
    T: TenantOf<Req>,
{
    type Response = P::Out<Permit<P>>;
    type Error = BoxError;
    type Future = BulkheadFuture<S, P, Req>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        if self.asks_more && self.shared.policy.is_back_pressure() {
            ready!(self.poll_place(cx))?;
            let ready = ready!(self.inner.poll_inner(cx));
            return Poll::Ready(ready.map_err(|error| {
                self.ahead = Ahead::Nothing;
                error.into()
            }));
        }
        if !self.shared.places.occupancy().has_room() {
            return Poll::Ready(Ok(())); // the call will wait or be refused, and hold no slot further in meanwhile
        }
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    #[inline]
    fn call(&mut self, request: Req) -> Self::Future {
        let (mut seat, mut place, mut off) = (Seat::default(), None, false);
        if self.asks_more {
            off = self.shared.policy.is_off();
            place = self.taken_ahead();
            seat = self.seat(&request);
        }
        if place.is_none() && !off {
            let entry = self.shared.places.enter(seat);
            if entry != Entry::Entered {
                return self.wait(entry, seat, request);
            }
            self.shared.note(Duration::ZERO);
            // Before the call: whoever panics there gives the place back.
            place = Some(Place::new(self.shared.hold(), seat));
        }
        match self.inner.ready() {
            Some(ready) => BulkheadFuture::called(ready.call(request), place),
            None => BulkheadFuture::entered(self.inner.call(request), place),
        }
    }
}

impl<S: Clone, P: Clone, T: Clone> Clone for Bulkhead<S, P, T> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            shared: self.shared.clone(),
            tenants: self.tenants.clone(),
            asks_more: self.asks_more,
            ahead: Ahead::Nothing,
        }
    }
}

impl<S: fmt::Debug, P, T> fmt::Debug for Bulkhead<S, P, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bulkhead")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}
