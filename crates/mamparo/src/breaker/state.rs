//! The decision: when a breaker opens, who may probe, when it closes.

use std::time::Duration;

use mamparo_core::breaker::{BreakerCause, BreakerState, Rates};

use super::config::{Recovery, Rules};

/// Nanoseconds since the breaker was made.
pub(super) type Nanos = u64;

/// Never, as an instant.
pub(super) const NEVER: Nanos = Nanos::MAX;

/// What a breaker knows beside its counts: read and changed by one thread at a time, outside of the closed path.
#[derive(Debug)]
pub(super) struct Control {
    state: BreakerState,
    /// Grows with every change of the state. A result that belongs to an earlier epoch changes nothing.
    epoch: u64,
    /// How often it has opened since it was last closed for good.
    openings: u32,
    /// The end of the wait, while open.
    until: Nanos,
    /// The probes under way, while half-open.
    leases: Vec<Lease>,
    last_lease: u64,
    /// The probes of this epoch that succeeded.
    successes: u32,
    /// When it closed, while admission still grows.
    ramp_since: Option<Nanos>,
    /// The window as it was when it opened.
    rates: Rates,
    /// Why it is in its state, and since when.
    cause: Option<BreakerCause>,
    since: Nanos,
    /// Whether another key has taken its place: nobody is to hear of it any more.
    retired: bool,
}

/// A probe's place, until its result is there or it is too old.
#[derive(Clone, Copy, Debug)]
struct Lease {
    number: u64,
    expires: Nanos,
    /// Whether its answer has begun, and well.
    began_well: bool,
}

/// A change of the state, as far as it is decided here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Change {
    pub(super) from: BreakerState,
    pub(super) to: BreakerState,
    pub(super) cause: BreakerCause,
    pub(super) rates: Rates,
    pub(super) openings: u32,
    pub(super) wait: Option<Duration>,
}

/// Whether a half-open breaker lets a call through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Probing {
    /// It does: this is its lease.
    Probe(u64),
    /// All places are taken.
    Full,
}

/// Says which rule opens a closed breaker, if one does.
pub(super) fn trips(rules: &Rules, consecutive: u32, rates: &Rates) -> Option<BreakerCause> {
    let reached = |rate: Option<f64>, limit: Option<f64>| {
        rate.zip(limit).is_some_and(|(rate, limit)| rate >= limit)
    };
    if rules.consecutive.is_some_and(|limit| consecutive >= limit) {
        Some(BreakerCause::ConsecutiveFailures)
    } else if rules.failures.is_some_and(|limit| rates.failures >= limit) {
        Some(BreakerCause::FailureCount)
    } else if reached(rates.failure_rate(), rules.failure_rate) {
        Some(BreakerCause::FailureRate)
    } else if reached(rates.slow_rate(), rules.slow_rate) {
        Some(BreakerCause::SlowRate)
    } else {
        None
    }
}

/// Says how long a breaker stays open at its `opening`th time in a row; `random` is from 0 to 1.
///
/// The wait grows up to the longest before it is jittered. What the server asked for is at least obeyed, up to the
/// longest too, and only lengthened.
pub(super) fn wait(
    recovery: &Recovery,
    opening: u32,
    hint: Option<Duration>,
    random: f64,
) -> Duration {
    let longest = recovery.longest_wait;
    let exponent = i32::try_from(opening.saturating_sub(1)).unwrap_or(i32::MAX);
    let grown = recovery.wait.as_secs_f64() * recovery.growth.powi(exponent);
    let own = grown.min(longest.as_secs_f64());
    let jittered = own * recovery.jitter.mul_add(2.0 * random - 1.0, 1.0);
    let hinted = hint.map_or(0.0, |hint| {
        hint.min(longest).as_secs_f64() * recovery.jitter.mul_add(random, 1.0)
    });
    Duration::from_secs_f64(jittered.max(hinted))
}

impl Control {
    pub(super) fn new() -> Self {
        Self {
            state: BreakerState::Closed,
            epoch: 1,
            openings: 0,
            until: 0,
            leases: Vec::new(),
            last_lease: 0,
            successes: 0,
            ramp_since: None,
            rates: Rates::default(),
            cause: None,
            since: 0,
            retired: false,
        }
    }

    pub(super) const fn state(&self) -> BreakerState {
        self.state
    }

    pub(super) const fn epoch(&self) -> u64 {
        self.epoch
    }

    pub(super) const fn openings(&self) -> u32 {
        self.openings
    }

    pub(super) const fn ramp_since(&self) -> Option<Nanos> {
        self.ramp_since
    }

    /// Notes why and when it came into its state.
    pub(super) const fn note(&mut self, cause: BreakerCause, now: Nanos) {
        (self.cause, self.since) = (Some(cause), now);
    }

    /// Returns why it is in its state, and since when.
    pub(super) const fn noted(&self) -> (Option<BreakerCause>, Nanos) {
        (self.cause, self.since)
    }

    /// Returns the window as it was when the breaker opened.
    pub(super) const fn rates(&self) -> Rates {
        self.rates
    }

    pub(super) fn probes(&self) -> usize {
        self.leases.len()
    }

    pub(super) const fn retire(&mut self) {
        self.retired = true;
    }

    pub(super) const fn is_retired(&self) -> bool {
        self.retired
    }

    /// Returns the instant before which nobody passes, however often they ask.
    pub(super) fn refuses_until(&self, recovery: &Recovery) -> Nanos {
        match self.state {
            BreakerState::Closed | BreakerState::Disabled => 0,
            BreakerState::ForcedOpen => NEVER,
            BreakerState::Open => self.until,
            BreakerState::HalfOpen if self.is_full(recovery) => {
                let expiries = self.leases.iter().map(|lease| lease.expires);
                expiries.min().unwrap_or(0)
            }
            BreakerState::HalfOpen => 0,
        }
    }

    fn is_full(&self, recovery: &Recovery) -> bool {
        self.leases.len() >= recovery.probes as usize
    }

    /// Opens, for a wait; a rule said so, or a probe failed.
    pub(super) fn open(
        &mut self,
        now: Nanos,
        cause: BreakerCause,
        rates: Rates,
        wait: impl FnOnce(u32) -> Duration,
    ) -> Change {
        self.openings = self.openings.saturating_add(1);
        let wait = wait(self.openings);
        self.until = now.saturating_add(nanos(wait));
        self.rates = rates;
        let mut change = self.change(BreakerState::Open, cause);
        change.wait = Some(wait);
        change
    }

    /// Does what time alone does: when the wait is over it is half-open, and probes that are too old lose their places.
    ///
    /// One whose answer began well and still goes on has succeeded by then: where all answers are long streams, nothing
    /// else could ever close it.
    pub(super) fn elapse(&mut self, recovery: &Recovery, now: Nanos) -> Option<Change> {
        if self.state == BreakerState::Open && now >= self.until {
            return Some(self.change(BreakerState::HalfOpen, BreakerCause::WaitElapsed));
        }
        let mut began_well = 0;
        self.leases.retain(|lease| {
            let expired = lease.expires <= now;
            began_well += u32::from(expired && lease.began_well);
            !expired
        });
        self.succeeded(recovery, now, began_well)
    }

    /// Leases a place to a probe, if there is one.
    pub(super) fn probe(&mut self, recovery: &Recovery, now: Nanos) -> Probing {
        if self.is_full(recovery) {
            return Probing::Full;
        }
        self.last_lease += 1;
        self.leases.push(Lease {
            number: self.last_lease,
            expires: now.saturating_add(nanos(recovery.probe_age)),
            began_well: false,
        });
        Probing::Probe(self.last_lease)
    }

    /// A probe's answer has begun, and well.
    pub(super) fn began_well(&mut self, lease: u64) {
        let held = self.leases.iter_mut().find(|held| held.number == lease);
        if let Some(held) = held {
            held.began_well = true;
        }
    }

    /// Takes a probe's place back; tells whether it still had one.
    pub(super) fn give_back(&mut self, lease: u64) -> bool {
        let before = self.leases.len();
        self.leases.retain(|held| held.number != lease);
        self.leases.len() < before
    }

    /// So many probes succeeded: enough of them close the breaker.
    pub(super) fn succeeded(
        &mut self,
        recovery: &Recovery,
        now: Nanos,
        probes: u32,
    ) -> Option<Change> {
        self.successes = self.successes.saturating_add(probes);
        (probes > 0 && self.successes >= recovery.successes).then(|| {
            self.ramp_since = (!recovery.ramp.duration().is_zero()).then_some(now);
            if self.ramp_since.is_none() {
                self.openings = 0;
            }
            self.change(BreakerState::Closed, BreakerCause::ProbesSucceeded)
        })
    }

    /// Is closed for good once admission has grown to all calls.
    pub(super) fn end_ramp(&mut self, recovery: &Recovery, now: Nanos) {
        let over = |since: Nanos| now >= since.saturating_add(nanos(recovery.ramp.duration()));
        if self.ramp_since.is_some_and(over) {
            self.ramp_since = None;
            self.openings = 0;
        }
    }

    /// An operator says which state it is to be in, and that everything before is forgotten.
    pub(super) fn force(&mut self, to: BreakerState) -> Option<Change> {
        if self.state == to && self.state != BreakerState::Closed {
            return None;
        }
        self.openings = 0;
        self.ramp_since = None;
        Some(self.change(to, BreakerCause::Operator))
    }

    fn change(&mut self, to: BreakerState, cause: BreakerCause) -> Change {
        let from = std::mem::replace(&mut self.state, to);
        self.epoch += 1;
        self.leases = Vec::new(); // many breakers may lie around that are not half-open
        self.successes = 0;
        if to != BreakerState::Closed {
            self.ramp_since = None;
        }
        Change {
            from,
            to,
            cause,
            rates: self.rates,
            openings: self.openings,
            wait: None,
        }
    }
}

/// What can be read of a breaker.
#[derive(Clone, Copy, Debug)]
pub(super) struct Readings {
    pub(super) state: BreakerState,
    pub(super) cause: Option<BreakerCause>,
    pub(super) lasts: Duration,
    pub(super) rates: Rates,
    pub(super) consecutive: u32,
    pub(super) openings: u32,
    pub(super) probes: usize,
    pub(super) admitted: f64,
    pub(super) retry_after: Option<Duration>,
    pub(super) late: u64,
    pub(super) ignored: u64,
    pub(super) cancelled: u64,
}

/// Returns how many bytes so many probes' places take.
#[cfg(test)]
pub(super) fn bytes_of_leases(probes: u32) -> usize {
    (probes as usize).next_power_of_two().max(4) * size_of::<Lease>()
}

pub(super) fn nanos(duration: Duration) -> Nanos {
    Nanos::try_from(duration.as_nanos()).unwrap_or(NEVER)
}
