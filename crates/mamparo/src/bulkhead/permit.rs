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

/// A place, given back on drop.
pub(super) struct Place<P> {
    shared: Held<Shared<P>>,
    /// Since when its call runs, until its head is there; only an adaptive limit asks.
    since: Option<Started>,
    seat: Seat,
}

impl<P> Place<P> {
    /// Guards a place that was just taken.
    #[inline]
    pub(super) fn new(shared: Held<Shared<P>>, seat: Seat) -> Self {
        Self {
            since: shared.started(),
            shared,
            seat,
        }
    }

    /// Says that its call begins now.
    pub(super) fn start(&mut self) {
        self.since = self.shared.started();
    }

    /// Judges a head, and keeps the place as long as the answer is not over.
    #[inline]
    pub(super) fn answered<Res>(mut self, answer: Res) -> P::Out<Permit<P>>
    where
        P: Outcome<Res>,
    {
        let head = self.shared.protocol.head(Ok(&answer));
        self.measure(head.verdict);
        if head.last || self.shared.policy.hold() == Hold::UntilHead {
            let head = Head::last(head.verdict);
            return self.shared.protocol.tie(answer, head, Permit(None));
        }
        let shared = self.shared.clone();
        shared.protocol.tie(answer, head, Permit(Some(self)))
    }

    /// Judges an error, with which the call is over, and returns it.
    pub(super) fn failed<Res>(mut self, error: BoxError) -> BoxError
    where
        P: Classify<Res>,
    {
        if self.since.is_some() {
            let head = self.shared.protocol.head(Err(&error));
            self.measure(head.verdict);
        }
        error
    }

    #[inline]
    fn measure(&mut self, verdict: Verdict) {
        if let Some(since) = self.since.take() {
            self.shared.measure(since, verdict, 0);
        }
    }

    /// A call that was cut is the dependency's failure; one that its caller gave up says nothing.
    #[cold]
    fn dropped_at_work(&self, since: Started) {
        if CallContext::is_cutting() {
            let timeout = Verdict::failure(Kind::Timeout, Resend::Never);
            // It has left by now.
            self.shared.measure(since, timeout, 1);
        }
    }
}

impl<P> Drop for Place<P> {
    #[inline]
    fn drop(&mut self) {
        // First, since an algorithm or an observer may panic.
        self.shared.places.leave(self.seat);
        if let Some(since) = self.since {
            self.dropped_at_work(since);
        }
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
