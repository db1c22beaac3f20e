//! The arithmetic of a deadline: how many attempts, with their waits, fit into it.

use std::time::Duration;

use mamparo_core::Backoff;

use crate::policy::build;
use crate::policy::view::View;

/// What an operation may take at most, if nothing cuts it.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::policy) struct Plan {
    pub(in crate::policy) attempts: u32,
    /// None where an attempt has no timeout of its own.
    pub(in crate::policy) attempt: Option<Duration>,
    pub(in crate::policy) deadline: Option<Duration>,
    /// None where attempts run side by side.
    backoff: Option<Backoff>,
}

/// A part of an operation's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::policy) enum Segment {
    Attempt(Duration),
    Wait(Duration),
    /// What the deadline leaves.
    Left(Duration),
}

impl Plan {
    pub(in crate::policy) fn of(view: &View) -> Self {
        let hedged = view.is_on("hedge", false);
        Self {
            attempts: build::max_attempts(view),
            attempt: build::attempt_timeout(view),
            deadline: view.limit_or("deadline", build::DEADLINE),
            backoff: (!hedged).then(|| build::backoff(view).unwrap_or_default()),
        }
    }

    /// All waits together, each as long as it may be.
    pub(in crate::policy) fn waits(&self) -> Duration {
        let waits = (1..self.attempts).map(|resend| self.wait(resend));
        waits.fold(Duration::ZERO, Duration::saturating_add)
    }

    fn wait(&self, resend: u32) -> Duration {
        let backoff = self.backoff.as_ref();
        backoff.map_or(Duration::ZERO, |backoff| backoff.ceiling(resend))
    }

    /// Attempts and waits together.
    pub(in crate::policy) fn potential(&self) -> Option<Duration> {
        let attempts = self.attempt?.saturating_mul(self.attempts);
        Some(attempts.saturating_add(self.waits()))
    }

    /// How many attempts fit into the deadline, each as long as it may be.
    pub(in crate::policy) fn fitting(&self) -> Option<u32> {
        let segments = self.segments()?;
        let whole = |segment: &&Segment| matches!(segment, Segment::Attempt(time) if Some(*time) == self.attempt);
        u32::try_from(segments.iter().filter(whole).count()).ok()
    }

    /// How the deadline is spent, attempt by attempt; the last of them may be cut by it.
    pub(in crate::policy) fn segments(&self) -> Option<Vec<Segment>> {
        let (attempt, deadline) = (self.attempt?, self.deadline?);
        let mut left = deadline;
        let mut segments = Vec::new();
        for number in 1..=self.attempts {
            if number > 1 {
                let wait = self.wait(number - 1);
                // No wait is begun after which nothing could be sent.
                if wait >= left {
                    break;
                }
                if !wait.is_zero() {
                    segments.push(Segment::Wait(wait));
                    left = left.saturating_sub(wait);
                }
            }
            let time = attempt.min(left);
            segments.push(Segment::Attempt(time));
            left = left.saturating_sub(time);
            if left.is_zero() {
                break;
            }
        }
        if !left.is_zero() {
            segments.push(Segment::Left(left));
        }
        Some(segments)
    }
}
