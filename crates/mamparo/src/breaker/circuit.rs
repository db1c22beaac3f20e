//! One breaker's state, as many threads use it at once.
//!
//! Closed, a call reads a few words that hardly ever change, and writes to its own thread's shard at most. Open, it reads
//! two words. Whatever changes the state takes a lock, and no code of a user's runs under it.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use mamparo_core::breaker::{BreakerCause, BreakerState, Transition};
use mamparo_core::clock::{self, Instant};

use super::Ramp;
use super::config::BreakerPolicy;
use super::journal::Journal;
use super::phase::Phase;
use super::state::{self, Change, Control, NEVER, Nanos, Probing, Readings};
use super::streak::Streak;
use super::ticket::{Refusal, Ticket};
use super::window::{Bad, Recent};
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering};

/// When to come back if all probes are out: nobody knows how long one takes, and this is the shortest that HTTP can say.
const PROBES_OUT: Duration = Duration::from_secs(1);

/// One breaker.
#[derive(Debug)]
pub(super) struct Circuit {
    hot: Hot,
    control: Mutex<Control>,
    /// Results that came after the state had changed.
    late: AtomicU64,
    /// Results that said nothing of the dependency.
    ignored: AtomicU64,
    /// Calls that were dropped before their end.
    cancelled: AtomicU64,
    journal: Arc<Journal>,
    key: Option<Arc<str>>,
}

/// What every call reads.
#[derive(Debug)]
#[repr(align(128))]
struct Hot {
    phase: Phase,
    /// While not closed, nobody passes before this instant.
    refuses_until: AtomicU64,
    streak: Streak,
    ramp_since: AtomicU64,
    ramp_saved: AtomicU64,
    base: Instant,
    /// No closed breaker's good call reads it.
    policy: ArcSwap<BreakerPolicy>,
    kept: Recent,
}

impl Circuit {
    /// Closes a new circuit; `spread` its counts over all threads' shards.
    pub(super) fn new(
        policy: Arc<BreakerPolicy>,
        journal: Arc<Journal>,
        key: Option<Arc<str>>,
        spread: bool,
    ) -> Self {
        let control = Control::new();
        let circuit = Self {
            hot: Hot {
                phase: Phase::new(control.epoch()),
                refuses_until: AtomicU64::new(0),
                streak: Streak::new(),
                ramp_since: AtomicU64::new(0),
                ramp_saved: AtomicU64::new(0),
                base: clock::now(),
                kept: Recent::new(policy.window, spread),
                policy: ArcSwap::new(policy),
            },
            control: Mutex::new(control),
            late: AtomicU64::new(0),
            ignored: AtomicU64::new(0),
            cancelled: AtomicU64::new(0),
            journal,
            key,
        };
        circuit.hot.kept.begin(circuit.control().epoch());
        circuit
    }

    fn policy(&self) -> Guard<Arc<BreakerPolicy>> {
        self.hot.policy.load()
    }

    /// Goes on by other settings: its state stays, and so does its window unless it has another shape.
    pub(super) fn renew(&self, policy: Arc<BreakerPolicy>) {
        let control = self.control();
        let window = policy.window;
        let old = self.hot.policy.swap(policy);
        if old.window != window {
            self.hot.kept.renew(window, control.epoch());
        }
        self.publish_places(&control);
    }

    pub(super) const fn journal(&self) -> &Arc<Journal> {
        &self.journal
    }

    pub(super) fn key(&self) -> Option<&Arc<str>> {
        self.key.as_ref()
    }

    /// No code panics while it holds the lock; were it poisoned all the same, its state would still be one.
    fn control(&self) -> MutexGuard<'_, Control> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    fn nanos(&self, now: Instant) -> Nanos {
        state::nanos(now.saturating_duration_since(self.hot.base))
    }

    /// Tells whether a call would most likely be refused now, so that nothing needs to be ready for it.
    #[inline]
    pub(super) fn refuses(&self) -> bool {
        self.hot.phase.refuses()
    }

    /// Tells whether it is closed, and for good.
    pub(super) fn is_closed(&self) -> bool {
        self.hot.phase.closed_epoch().is_some()
    }

    /// Lets a call through, or refuses it; reads the clock only if it is not simply closed.
    #[inline]
    pub(super) fn admit(&self, clock: impl FnOnce() -> Instant) -> Result<Ticket, Refusal> {
        match self.hot.phase.closed_epoch() {
            Some(epoch) => Ok(Ticket::counted(epoch)),
            None => self.admit_otherwise(clock()),
        }
    }

    #[cold]
    fn admit_otherwise(&self, now: Instant) -> Result<Ticket, Refusal> {
        let now = self.nanos(now);
        if self.hot.phase.refuses() {
            let until = self.hot.refuses_until.load(Ordering::Acquire);
            if now < until {
                return Err(self.refusal(now, until));
            }
        }
        if let Some(epoch) = self.hot.phase.ramping_epoch() {
            return self.admit_on_ramp(epoch, now);
        }
        if self.hot.phase.is_disabled() {
            return Ok(Ticket::unseen());
        }
        let policy = self.policy();
        let mut control = self.control();
        if let Some(change) = control.elapse(&policy.recovery, now) {
            self.publish(&mut control, change, now);
            drop(control);
            // Before this call has a place: whoever hears of it may panic.
            self.journal.tell();
            control = self.control();
        }
        match control.state() {
            BreakerState::Disabled => Ok(Ticket::unseen()),
            BreakerState::Closed => Ok(Ticket::counted(control.epoch())),
            BreakerState::ForcedOpen => Err(self.refusal(now, NEVER)),
            BreakerState::Open => Err(self.refusal(now, control.refuses_until(&policy.recovery))),
            BreakerState::HalfOpen => self.probe(&mut control, now),
        }
    }

    fn probe(&self, control: &mut Control, now: Nanos) -> Result<Ticket, Refusal> {
        let probing = control.probe(&self.policy().recovery, now);
        self.publish_places(control);
        match probing {
            Probing::Probe(lease) => Ok(Ticket::probe(control.epoch(), lease)),
            Probing::Full => Err(Refusal {
                state: BreakerState::HalfOpen,
                retry_after: Some(PROBES_OUT),
            }),
        }
    }

    fn refusal(&self, now: Nanos, until: Nanos) -> Refusal {
        let wait = Duration::from_nanos(until.saturating_sub(now));
        let (state, retry_after) = if self.hot.phase.probes() {
            (BreakerState::HalfOpen, Some(PROBES_OUT))
        } else if until == NEVER {
            (BreakerState::ForcedOpen, None)
        } else {
            (BreakerState::Open, Some(wait))
        };
        Refusal { state, retry_after }
    }

    /// Lets through what the ramp allows.
    fn admit_on_ramp(&self, epoch: u64, now: Nanos) -> Result<Ticket, Refusal> {
        let policy = self.policy();
        let ramp = &policy.recovery.ramp;
        let since = self.hot.ramp_since.load(Ordering::Acquire);
        let since = Duration::from_nanos(now.saturating_sub(since));
        if since >= ramp.duration() {
            let mut control = self.control();
            control.end_ramp(&policy.recovery, now);
            self.hot.phase.set(&control);
            return Ok(Ticket::counted(epoch));
        }
        let saved = &self.hot.ramp_saved;
        let mut seen = saved.load(Ordering::Relaxed);
        loop {
            let (next, passes) = ramp.offer(since, seen);
            match saved.compare_exchange_weak(seen, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) if passes => return Ok(Ticket::counted(epoch)),
                Ok(_) => {
                    let retry_after = Some(ramp.duration().saturating_sub(since));
                    let state = BreakerState::Closed;
                    return Err(Refusal { state, retry_after });
                }
                Err(changed) => seen = changed,
            }
        }
    }

    /// A call went well and quickly.
    #[inline]
    pub(super) fn good(&self, ticket: Ticket, clock: impl FnOnce() -> Instant) {
        if !ticket.is_counted() || !self.hot.phase.is_epoch(ticket.epoch()) {
            self.good_otherwise(ticket, clock());
            return;
        }
        self.hot.streak.end(ticket.epoch());
        let now = || self.nanos(clock());
        self.hot.kept.good(ticket.epoch(), now);
    }

    #[cold]
    fn good_otherwise(&self, ticket: Ticket, now: Instant) {
        if !ticket.is_probe() {
            self.note_late(ticket);
            return;
        }
        let now = self.nanos(now);
        let mut control = self.control();
        if !self.has_place(&mut control, ticket) {
            return;
        }
        let change = control.succeeded(&self.policy().recovery, now, 1);
        self.after_probe(control, change, now);
    }

    /// A call's answer began well, and goes on: a probe's says as much once its place has lasted long enough.
    pub(super) fn began_well(&self, ticket: Ticket) {
        if ticket.is_probe() {
            let mut control = self.control();
            if control.epoch() == ticket.epoch() {
                control.began_well(ticket.lease());
            }
        }
    }

    /// A call failed or was slow; `hint` is the server's own wait.
    #[cold]
    pub(super) fn bad(&self, ticket: Ticket, bad: Bad, hint: Option<Duration>, now: Instant) {
        let now = self.nanos(now);
        let policy = self.policy();
        let wait = |opening| state::wait(&policy.recovery, opening, hint, fastrand::f64());
        if ticket.is_probe() {
            let mut control = self.control();
            if self.has_place(&mut control, ticket) {
                let rates = control.rates();
                let change = control.open(now, BreakerCause::ProbeFailed, rates, wait);
                self.after_probe(control, Some(change), now);
            }
            return;
        }
        if ticket.is_unseen() || !self.hot.phase.is_epoch(ticket.epoch()) {
            self.note_late(ticket);
            return;
        }
        let consecutive = if bad.failed {
            self.hot.streak.extend(ticket.epoch())
        } else {
            self.hot.streak.end(ticket.epoch());
            0
        };
        self.hot.kept.bad(ticket.epoch(), now, bad);
        let rules = &policy.rules;
        let rates = self.hot.kept.rates(ticket.epoch(), now, rules.minimum);
        if let Some(cause) = state::trips(rules, consecutive, &rates) {
            let mut control = self.control();
            // Of those that reach a threshold at once, one opens it.
            if control.epoch() != ticket.epoch() {
                return;
            }
            control.end_ramp(&policy.recovery, now);
            let change = control.open(now, cause, rates, wait);
            self.publish(&mut control, change, now);
            drop(control);
            self.journal.tell();
        }
    }

    /// A call ended in a way that says nothing of the dependency.
    #[cold]
    pub(super) fn ignore(&self, ticket: Ticket) {
        self.ignored.fetch_add(1, Ordering::Relaxed);
        self.give_back(ticket);
    }

    /// A call was dropped by whoever made it.
    #[cold]
    pub(super) fn cancel(&self, ticket: Ticket) {
        self.cancelled.fetch_add(1, Ordering::Relaxed);
        self.give_back(ticket);
    }

    fn give_back(&self, ticket: Ticket) {
        if ticket.is_probe() {
            let mut control = self.control();
            if control.epoch() == ticket.epoch() && control.give_back(ticket.lease()) {
                self.publish_places(&control);
            }
        }
    }

    /// Takes a probe's place back. Its result counts only if it still had one.
    fn has_place(&self, control: &mut Control, ticket: Ticket) -> bool {
        let had = control.epoch() == ticket.epoch() && control.give_back(ticket.lease());
        if !had {
            self.note_late(ticket);
        }
        had
    }

    fn after_probe(
        &self,
        mut control: MutexGuard<'_, Control>,
        change: Option<Change>,
        now: Nanos,
    ) {
        match change {
            Some(change) => self.publish(&mut control, change, now),
            None => self.publish_places(&control),
        }
        drop(control);
        if change.is_some() {
            self.journal.tell();
        }
    }

    fn note_late(&self, ticket: Ticket) {
        if !ticket.is_unseen() {
            self.late.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Forces a state on it.
    pub(super) fn force(&self, to: BreakerState, now: Instant) {
        let now = self.nanos(now);
        let mut control = self.control();
        if let Some(change) = control.force(to) {
            self.publish(&mut control, change, now);
        }
        drop(control);
        self.journal.tell();
    }

    /// Takes it out of use; nobody hears of it after this. Whoever does calls [`Journal::tell`] once it holds no lock.
    pub(super) fn retire(&self, now: Instant) {
        let mut control = self.control();
        let mut gone = Transition::new(control.state(), None, BreakerCause::Evicted, now);
        gone.key.clone_from(&self.key);
        gone.openings = control.openings();
        if !control.is_retired() {
            control.retire();
            self.journal.add(gone);
        }
    }

    /// Lets all threads see a change; the lock is held.
    fn publish(&self, control: &mut Control, change: Change, now: Nanos) {
        self.hot.kept.begin(control.epoch());
        if let Some(since) = control.ramp_since() {
            self.hot.ramp_since.store(since, Ordering::Release);
            let saved = Ramp::saved_at_start();
            self.hot.ramp_saved.store(saved, Ordering::Release);
        }
        self.publish_places(control);
        self.hot.phase.set(control);
        if control.is_retired() || change.from == change.to {
            return;
        }
        control.note(change.cause, now);
        let at = clock::later(self.hot.base, Duration::from_nanos(now));
        let mut transition = Transition::new(change.from, Some(change.to), change.cause, at);
        transition.key.clone_from(&self.key);
        transition.rates = change.rates;
        transition.openings = change.openings;
        transition.wait = change.wait;
        self.journal.add(transition);
    }

    /// Lets all threads see until when nobody passes; the lock is held.
    fn publish_places(&self, control: &Control) {
        let until = control.refuses_until(&self.policy().recovery);
        self.hot.refuses_until.store(until, Ordering::Release);
    }

    /// Reads what can be read of it.
    pub(super) fn read(&self, now: Instant) -> Readings {
        let now = self.nanos(now);
        let policy = self.policy();
        let control = self.control();
        let (state, epoch) = (control.state(), control.epoch());
        let ramp_since = control.ramp_since().map(|since| now.saturating_sub(since));
        let until = control.refuses_until(&policy.recovery);
        let refuses = state == BreakerState::Open || state == BreakerState::HalfOpen && now < until;
        let (cause, since) = control.noted();
        let rates = match state {
            BreakerState::Closed => self.hot.kept.rates(epoch, now, policy.rules.minimum),
            _ => control.rates(),
        };
        Readings {
            state,
            cause,
            lasts: Duration::from_nanos(now.saturating_sub(since)),
            rates,
            consecutive: self.hot.streak.length(epoch),
            openings: control.openings(),
            probes: control.probes(),
            admitted: ramp_since.map_or(1.0, |since| {
                policy.recovery.ramp.share(Duration::from_nanos(since))
            }),
            retry_after: (refuses.then(|| self.refusal(now, until))).and_then(|it| it.retry_after),
            late: self.late.load(Ordering::Relaxed),
            ignored: self.ignored.load(Ordering::Relaxed),
            cancelled: self.cancelled.load(Ordering::Relaxed),
        }
    }

    /// Returns how many bytes it takes, with all that it owns alone.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        let leases = state::bytes_of_leases(self.policy().recovery.probes);
        let key = self.key.as_ref().map_or(0, |key| key.len() + 16);
        size_of::<Self>() + self.hot.kept.bytes() + leases + key
    }
}
