//! Makes transactions for tests.

use std::time::Duration;

use super::super::{
    Context, Decision, Input, Progress, Record, State, Terms, TransactionId, Utc, decide,
};
use crate::policy::{Policy, Wait};

pub(super) const HOUR: Duration = Duration::from_secs(3600);

pub(super) fn at(hours: u32) -> Utc {
    Utc::from_millis(1_700_000_000_000)
        .unwrap()
        .plus(HOUR * hours)
}

pub(super) fn id(text: &str) -> TransactionId {
    TransactionId::new(text).unwrap()
}

/// Two attempts, two postponements, no jitter; a refusal waits 2 h, a technical failure 1 h, a postponement 3 h.
pub(super) fn policy() -> Policy {
    let wait = |hours| {
        Wait::builder()
            .base(HOUR * hours)
            .cap(24 * HOUR)
            .jitter(0.0)
            .build()
            .unwrap()
    };
    Policy::builder()
        .max_attempts(2)
        .max_postponements(2)
        .business(wait(2))
        .technical(wait(1))
        .postponed(wait(3))
        .build()
        .unwrap()
}

pub(super) fn terms() -> Terms {
    Terms::new(id("t"), "payment", &policy(), at(0))
}

/// A transaction on its way: the state, current and next attempt, and the schedule's number.
pub(super) fn stands(state: State, current: u32, next: Option<u32>, seq: u32) -> Progress {
    Progress {
        state,
        attempt_current: current,
        attempt_next: next,
        schedule_seq: seq,
        next_fire_at: state.is_waiting().then(|| at(2)),
        ..Record::in_flight(terms()).progress
    }
}

/// Decides at the first hour.
pub(super) fn judge(progress: &Progress, input: &Input) -> Decision {
    judge_at(at(1), progress, input)
}

pub(super) fn judge_at(now: Utc, progress: &Progress, input: &Input) -> Decision {
    let policy = policy();
    decide(&terms(), progress, input, &Context::new(now, 0.0, &policy))
}
