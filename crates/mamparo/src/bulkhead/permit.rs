//! Guards: of a place, and of a place in the queue.

use std::fmt;
use std::task::Context;

use mamparo_core::shard::Held;
use mamparo_core::{BoxError, CallContext, Classify, Head, Kind, Outcome, Resend, Settle, Verdict};

use super::Hold;
use super::adaptive::Started;
use super::layer::Shared;
use super::partition::Seat;

/// A call's place in a bulkhead, kept while its answer is not over; given back once.
pub struct Permit<P>(Option<Place<P>>);

/// A place, and the time of the call that runs in it.
pub(super) struct Place<P> {
    /// Since when its call runs, until its head is there; only an adaptive limit asks.
    since: Option<Started>,
    taken: Taken<P>,
}

/// A place, given back on drop.
struct Taken<P> {
    shared: Held<Shared<P>>,
    seat: Seat,
}

impl<P> Place<P> {
    /// Guards a place that was just taken.
    #[inline]
    pub(super) fn new(shared: Held<Shared<P>>, seat: Seat) -> Self {
        let taken = Taken { shared, seat };
        let governor = taken.shared.adaptive.as_ref();
        Self {
            since: governor.map(|governor| governor.start()),
            taken,
        }
    }

    /// Says that its call begins now.
    pub(super) fn start(&mut self) {
        let governor = self.taken.shared.adaptive.as_ref();
        self.since = governor.map(|governor| governor.start());
    }

    /// Judges a head, and keeps the place as long as the answer is not over.
    #[inline]
    pub(super) fn answered<Res>(mut self, answer: Res) -> P::Out<Permit<P>>
    where
        P: Outcome<Res>,
    {
        let head = self.taken.shared.protocol.head(Ok(&answer));
        self.measure(head.verdict);
        if head.last || self.taken.shared.policy.hold() == Hold::UntilHead {
            let head = Head::last(head.verdict);
            return self.taken.shared.protocol.tie(answer, head, Permit(None));
        }
        let shared = self.taken.shared.clone();
        shared.protocol.tie(answer, head, Permit(Some(self)))
    }

    /// Judges an error, with which the call is over, and returns it.
    pub(super) fn failed<Res>(mut self, error: BoxError) -> BoxError
    where
        P: Classify<Res>,
    {
        if self.since.is_some() {
            let head = self.taken.shared.protocol.head(Err(&error));
            self.measure(head.verdict);
        }
        error
    }

    #[inline]
    fn measure(&mut self, verdict: Verdict) {
        if let Some(since) = self.since.take() {
            self.taken.shared.measure(since, verdict);
        }
    }

    /// A call that was cut is the dependency's failure; one that its caller gave up says nothing.
    #[cold]
    fn dropped_at_work(&mut self) {
        if CallContext::is_cutting() {
            self.measure(Verdict::failure(Kind::Timeout, Resend::Never));
        }
    }
}

impl<P> Drop for Place<P> {
    #[inline]
    fn drop(&mut self) {
        if self.since.is_some() {
            self.dropped_at_work();
        }
    }
}

impl<P> Drop for Taken<P> {
    #[inline]
    fn drop(&mut self) {
        self.shared.places.leave(self.seat);
    }
}

impl<P: Send + Sync + 'static> Settle for Permit<P> {
    #[inline]
    fn settle(&mut self, _: Verdict) {
        self.0 = None;
    }
}

impl<P> fmt::Debug for Permit<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit")
            .field("held", &self.0.is_some())
            .finish()
    }
}

/// A place in the queue; dropped, it leaves the queue, or gives back the place that it was handed meanwhile.
pub(super) struct Ticket<P> {
    holder: Option<Holder<P>>,
}

struct Holder<P> {
    shared: Held<Shared<P>>,
    seat: Seat,
    number: u64,
}

impl<P> Ticket<P> {
    pub(super) const fn new(shared: Held<Shared<P>>, seat: Seat, number: u64) -> Self {
        let holder = Some(Holder {
            shared,
            seat,
            number,
        });
        Self { holder }
    }

    /// Changes the ticket for the place, once it has been handed over.
    pub(super) fn poll(&mut self, cx: &Context<'_>) -> Option<Place<P>> {
        let holder = self.holder.as_ref()?;
        if !holder.shared.places.poll(holder.number, cx) {
            return None;
        }
        let holder = self.holder.take()?;
        Some(Place::new(holder.shared, holder.seat))
    }
}

impl<P> Drop for Ticket<P> {
    fn drop(&mut self) {
        if let Some(holder) = self.holder.take() {
            holder.shared.places.abandon(holder.number, holder.seat);
        }
    }
}
