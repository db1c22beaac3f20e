//! The arithmetic of a deadline: how many attempts, with their waits, fit into it.

use std::time::Duration;

use mamparo_core::Backoff;

use crate::policy::build;
use crate::policy::view::View;

/// What an operation may take at most, if nothing cuts it: its attempts, its waits, and how the deadline is spent on them.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    attempts: u32,
    attempt: Option<Duration>,
    deadline: Option<Duration>,
    /// None where attempts run side by side.
    backoff: Option<Backoff>,
}

/// A part of an operation's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Segment {
    /// An attempt, as long as it may be.
    Attempt(Duration),
    /// A wait before the next attempt, as long as it may be.
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

    /// Returns how many attempts an operation makes at most, the original included.
    #[must_use]
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Returns how long one attempt may take; none where it has no timeout of its own.
    #[must_use]
    pub const fn attempt_timeout(&self) -> Option<Duration> {
        self.attempt
    }

    /// Returns how long an operation may take, with all its attempts and waits.
    #[must_use]
    pub const fn deadline(&self) -> Option<Duration> {
        self.deadline
    }

    /// Tells whether attempts run side by side.
    #[must_use]
    pub const fn is_hedged(&self) -> bool {
        self.backoff.is_none()
    }

    /// Returns all waits together, each as long as it may be.
    #[must_use]
    pub fn waits(&self) -> Duration {
        let waits = (1..self.attempts).map(|resend| self.wait(resend));
        waits.fold(Duration::ZERO, Duration::saturating_add)
    }

    fn wait(&self, resend: u32) -> Duration {
        let backoff = self.backoff.as_ref();
        backoff.map_or(Duration::ZERO, |backoff| backoff.ceiling(resend))
    }

    /// Returns attempts and waits together; none where an attempt may take for ever, or attempts run side by side.
    #[must_use]
    pub fn potential(&self) -> Option<Duration> {
        self.backoff.as_ref()?;
        let attempts = self.attempt?.saturating_mul(self.attempts);
        Some(attempts.saturating_add(self.waits()))
    }

    /// Returns how many attempts fit into the deadline, each as long as it may be.
    #[must_use]
    pub fn fitting(&self) -> Option<u32> {
        let segments = self.segments()?;
        let whole = |segment: &&Segment| matches!(segment, Segment::Attempt(time) if Some(*time) == self.attempt);
        u32::try_from(segments.iter().filter(whole).count()).ok()
    }

    /// Returns how the deadline is spent, attempt by attempt; the last of them may be cut by it.
    ///
    /// None where there is no deadline, an attempt may take for ever, or attempts run side by side.
    #[must_use]
    pub fn segments(&self) -> Option<Vec<Segment>> {
        self.backoff.as_ref()?;
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
