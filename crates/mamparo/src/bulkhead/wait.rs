//! A call's wait in the queue.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use mamparo_core::clock::{self, Instant};
use mamparo_core::shard::Held;
use mamparo_core::{BoxError, CallContext};
use pin_project::pin_project;
use tokio::time::Sleep;

use super::error::waited;
use super::layer::Shared;
use super::permit::{Place, Ticket};
use crate::timer;

/// The wait for a place: until it is handed over, or there is no time left.
#[pin_project]
pub(super) struct Wait<P> {
    ticket: Ticket<P>,
    shared: Held<Shared<P>>,
    asked: Instant,
    until: Option<Instant>,
    /// The last instant before the deadline at which a call still makes sense.
    useful_until: Option<Instant>,
    /// Made once the wait was pending.
    #[pin]
    timer: Option<Sleep>,
}

impl<P> Wait<P> {
    pub(super) fn new(ticket: Ticket<P>, shared: Held<Shared<P>>) -> Self {
        let asked = clock::now();
        let policy = &shared.policy;
        let deadline = CallContext::current().attempt_deadline();
        let useful_until =
            deadline.map(|deadline| deadline.less(policy.min_attempt_time()).instant());
        let longest = policy.max_wait().map(|wait| clock::later(asked, wait));
        Self {
            ticket,
            asked,
            until: [longest, useful_until].into_iter().flatten().min(),
            useful_until,
            timer: None,
            shared,
        }
    }
}

impl<P> Future for Wait<P> {
    type Output = Result<Place<P>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let Some(place) = this.ticket.poll(cx) {
            this.timer.set(None);
            let now = clock::now();
            // A busy machine may poll us long after we were handed the place.
            if this.useful_until.is_none_or(|until| now < until) {
                let waited = now.saturating_duration_since(*this.asked);
                this.shared.report_wait(waited);
                return Poll::Ready(Ok(place));
            }
        } else {
            let Some(until) = *this.until else {
                return Poll::Pending;
            };
            if this.timer.is_none() {
                this.timer.set(Some(tokio::time::sleep_until(until)));
            }
            if let Some(timer) = this.timer.as_mut().as_pin_mut() {
                ready!(timer::poll(timer, cx));
            }
        }
        let limit = this
            .until
            .map(|until| until.saturating_duration_since(*this.asked));
        let limit = limit.unwrap_or_default();
        this.shared.note(limit);
        let rejection = waited(this.shared.name(), limit);
        Poll::Ready(Err(this.shared.reject(rejection)))
    }
}
