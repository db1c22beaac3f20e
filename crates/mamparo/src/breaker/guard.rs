//! What a call holds of its breaker until its answer is over.

use std::fmt;
use std::sync::Arc;

use mamparo_core::clock::{self, Instant};
use mamparo_core::shard::Held;
use mamparo_core::{CallContext, Class, Deadline, Head, Settle, Verdict};

use super::Read;
use super::circuit::Circuit;
use super::layer::Shared;
use super::ticket::Ticket;
use super::window::Bad;

/// Holds a call's place in its breaker until the answer is over, and gives it back exactly once.
pub struct BreakerGuard<P, K> {
    open: Option<Open<P, K>>,
}

/// A call whose verdict is still open.
pub(super) struct Open<P, K> {
    pub(super) shared: Held<Shared<P, K>>,
    /// The breaker of its key; else the one of all calls.
    keyed: Option<Arc<Circuit>>,
    ticket: Ticket,
    pace: Pace,
    /// When whoever drops this cuts it, rather than cancels it.
    cut: Option<Deadline>,
}

/// How quick a call is.
#[derive(Clone, Copy)]
enum Pace {
    /// It does not matter, or it was quick enough.
    Fine,
    /// It began then, and is still under way.
    Since(Instant),
    /// It took too long.
    Slow,
}

impl<P, K> Open<P, K> {
    #[inline]
    pub(super) fn new(
        shared: Held<Shared<P, K>>,
        keyed: Option<Arc<Circuit>>,
        ticket: Ticket,
    ) -> Self {
        let times = shared.policy.rules.slow_threshold.is_some();
        Self {
            shared,
            keyed,
            ticket,
            pace: if times {
                Pace::Since(clock::now())
            } else {
                Pace::Fine
            },
            cut: CallContext::current().deadline(),
        }
    }

    /// Moves what is still open elsewhere: into an answer's body.
    pub(super) fn take(&mut self) -> Self {
        let taken = Self {
            shared: self.shared.clone(),
            keyed: self.keyed.take(),
            ..*self
        };
        self.ticket.take();
        taken
    }

    #[inline]
    fn circuit(&self) -> &Circuit {
        match &self.keyed {
            Some(circuit) => circuit,
            None => self.shared.circuits.whole(),
        }
    }

    /// The answer's head, or an error, is there: from here on a call gets no slower.
    #[inline]
    pub(super) fn answered(&mut self) {
        if let Pace::Since(began) = self.pace {
            self.pace = self.pace_at(began, clock::now());
        }
    }

    fn pace_at(&self, began: Instant, now: Instant) -> Pace {
        let elapsed = now.saturating_duration_since(began);
        match self.shared.policy.rules.slow_threshold {
            Some(threshold) if elapsed >= threshold => Pace::Slow,
            _ => Pace::Fine,
        }
    }

    const fn is_slow(&self) -> bool {
        matches!(self.pace, Pace::Slow)
    }

    /// Hears the verdict; called once, before it is dropped.
    #[inline]
    pub(super) fn settle(&mut self, verdict: Verdict) {
        let Some(ticket) = self.ticket.take() else {
            return;
        };
        if matches!(verdict.class(), Class::Success) && !self.is_slow() {
            self.circuit().good(ticket, clock::now);
        } else {
            self.settle_otherwise(ticket, verdict);
        }
    }

    /// Hears the verdict on an answer's head, which may be the last: what to tie to the answer.
    #[inline]
    pub(super) fn judge(&mut self, head: Head) -> BreakerGuard<P, K> {
        if head.last {
            self.settle(head.verdict);
            BreakerGuard::settled()
        } else {
            if head.verdict.class() == Class::Success && !self.is_slow() {
                self.circuit().began_well(self.ticket);
            }
            BreakerGuard::open(self.take())
        }
    }

    #[cold]
    fn settle_otherwise(&self, ticket: Ticket, verdict: Verdict) {
        let circuit = self.circuit();
        match self.shared.policy.reading.read(verdict) {
            Read::Ignored => circuit.ignore(ticket),
            Read::Success if !self.is_slow() => circuit.good(ticket, clock::now),
            read @ (Read::Success | Read::Failure) => {
                let bad = Bad {
                    failed: read == Read::Failure,
                    slow: self.is_slow(),
                };
                circuit.bad(ticket, bad, verdict.hint(), clock::now());
            }
        }
    }

    /// Nobody heard the end: whoever made the call has dropped it, or its time was up.
    #[cold]
    fn dropped(&mut self, ticket: Ticket) {
        let late = |deadline: Deadline| deadline.has_passed(clock::now());
        if CallContext::is_cutting() || self.cut.is_some_and(late) {
            self.answered();
            let bad = Bad {
                failed: true,
                slow: self.is_slow(),
            };
            self.circuit().bad(ticket, bad, None, clock::now());
        } else {
            self.circuit().cancel(ticket);
        }
    }
}

impl<P, K> Drop for Open<P, K> {
    #[inline]
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.dropped(ticket);
        }
    }
}

impl<P, K> BreakerGuard<P, K> {
    /// Holds what is still open.
    pub(super) const fn open(open: Open<P, K>) -> Self {
        Self { open: Some(open) }
    }

    /// Holds nothing: the verdict has been heard.
    #[inline]
    pub(super) const fn settled() -> Self {
        Self { open: None }
    }
}

impl<P, K> Settle for BreakerGuard<P, K>
where
    P: Send + Sync + 'static,
    K: Send + Sync + 'static,
{
    #[inline]
    fn settle(&mut self, verdict: Verdict) {
        if let Some(mut open) = self.open.take() {
            open.settle(verdict);
        }
    }
}

impl<P, K> fmt::Debug for BreakerGuard<P, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BreakerGuard")
            .field("open", &self.open.is_some())
            .finish_non_exhaustive()
    }
}
