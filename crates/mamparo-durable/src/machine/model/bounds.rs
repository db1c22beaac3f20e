//! How much may go wrong.

use std::time::Duration;

use super::super::{Context, Guard, Terms, TransactionId, Utc};
use crate::policy::{Policy, Wait};

/// How a dependency that honours keys answers the second request with the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    /// As it answered the first.
    Answers,
    /// Not at all.
    Silent,
    /// Not at all, and the call times out.
    TimesOut,
}

/// When the reconciler looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Looks {
    Never,
    /// When nothing else happens: its thresholds are longer than every latency.
    WhenCalm,
    /// At any moment, so often, and when nothing else happens.
    Anytime(u8),
}

/// A rule that is taken away: what stands here is no longer so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Without {
    /// One of the machine's.
    Guard(Guard),
    /// Writes are conditional on the next attempt and the schedule's number, besides state and current attempt.
    Fence,
    /// Writes are conditional on the schedule's number.
    FenceOfSeq,
    /// Schedules are named with their number.
    SeqInNames,
    /// The reconciler's writes are conditional.
    ReconcilersFence,
    /// There is a reconciler.
    Reconciler,
}

/// A search: what it begins with, and how much may happen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) attempts: u32,
    pub(super) postponements: u32,
    /// Handlers of each kind.
    pub(super) parallel: usize,
    pub(super) crashes: u8,
    pub(super) duplicates: u8,
    pub(super) losses: u8,
    pub(super) technical: u8,
    pub(super) breaker: u8,
    /// Cancellations, resolutions, moves, postponements without a fire.
    pub(super) operators: u8,
    pub(super) repeat: Repeat,
    pub(super) looks: Looks,
    /// Schedules that have fired are gone, so that they can be made again.
    pub(super) purge: bool,
    /// Whole steps are one transaction.
    pub(super) outbox: bool,
    /// It begins in SENDING: the engine sends the original.
    pub(super) sends_original: bool,
    pub(super) without: Option<Without>,
}

impl Bounds {
    /// Two attempts, one handler of each kind, no fault at all.
    pub(super) const fn none() -> Self {
        Self {
            attempts: 2,
            postponements: 2,
            parallel: 1,
            crashes: 0,
            duplicates: 0,
            losses: 0,
            technical: 0,
            breaker: 0,
            operators: 0,
            repeat: Repeat::Answers,
            looks: Looks::Never,
            purge: false,
            outbox: false,
            sends_original: false,
            without: None,
        }
    }

    pub(super) fn lacks(&self, without: Without) -> bool {
        self.without == Some(without)
    }
}

const HOUR: Duration = Duration::from_secs(3600);

/// What the machine is given: the terms, the policy and the hours.
#[derive(Debug)]
pub(super) struct Setting {
    pub(super) terms: Terms,
    policy: Policy,
    without: Option<Guard>,
}

impl Setting {
    pub(super) fn new(bounds: &Bounds) -> Self {
        let wait = |hours| {
            Wait::builder()
                .base(HOUR * hours)
                .jitter(0.0)
                .build()
                .unwrap()
        };
        let policy = Policy::builder()
            .max_attempts(bounds.attempts)
            .max_postponements(bounds.postponements)
            .give_up_after(HOUR * 1_000)
            .business(wait(2))
            .technical(wait(1))
            .postponed(wait(3))
            .build()
            .unwrap();
        let without = match bounds.without {
            Some(Without::Guard(guard)) => Some(guard),
            _ => None,
        };
        let terms = Terms::new(TransactionId::new("t").unwrap(), "kind", &policy, hour(0));
        Self {
            terms,
            policy,
            without,
        }
    }

    /// What a decision in that hour depends on. Time passes with each crash, so that an instant drawn again is another one.
    pub(super) fn context(&self, hours: u32) -> Context<'_> {
        let mut context = Context::new(hour(hours), 0.0, &self.policy);
        context.without = self.without;
        context
    }
}

pub(super) fn hour(hours: u32) -> Utc {
    Utc::MIN.plus(HOUR * hours)
}

/// When every wait is over, but not yet the end of all patience.
pub(super) const LATER: u32 = 500;

/// After `give_up_at`.
pub(super) const TOO_LATE: u32 = 2_000;
