//! What a call holds of its breaker until its answer is over.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mamparo_core::clock::{self, Instant};
use mamparo_core::shard::Held;
use mamparo_core::{CallContext, Deadline, Settle, Verdict};

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
    ticket: Option<Ticket>,
    /// When it began, where it may be too slow.
    began: Option<Instant>,
    /// Whether the answer's head came too late.
    slow: bool,
    /// When whoever drops this cuts it, rather than cancels it.
    cut: Option<Deadline>,
}

impl<P, K> Open<P, K> {
    #[inline]
    pub(super) fn new(
        shared: Held<Shared<P, K>>,
        keyed: Option<Arc<Circuit>>,
        ticket: Ticket,
    ) -> Self {
        let times = shared.circuits.policy().rules.slow_threshold.is_some();
        Self {
            shared,
            keyed,
            ticket: Some(ticket),
            began: times.then(clock::now),
            slow: false,
            cut: CallContext::current().deadline(),
        }
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
        if let Some(began) = self.began {
            let elapsed = clock::now().saturating_duration_since(began);
            self.slow = self.is_slow(elapsed);
        }
    }

    fn is_slow(&self, elapsed: Duration) -> bool {
        let threshold = self.circuit().policy().rules.slow_threshold;
        threshold.is_some_and(|threshold| elapsed >= threshold)
    }

    /// Hears the verdict; called once, before it is dropped.
    #[inline]
    pub(super) fn settle(&mut self, verdict: Verdict) {
        let Some(ticket) = self.ticket.take() else {
            return;
        };
        let circuit = self.circuit();
        let read = circuit.policy().reading.read(verdict);
        match read {
            Read::Success if !self.slow => circuit.good(ticket, clock::now),
            Read::Ignored => circuit.ignore(ticket),
            Read::Success | Read::Failure => {
                let bad = Bad {
                    failed: read == Read::Failure,
                    slow: self.slow,
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
                slow: self.slow,
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
