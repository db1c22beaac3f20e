//! The part of a context that layers lay over each other.

use std::num::NonZeroU64;
use std::time::Duration;

use super::{Cause, LayerKind, nanos::Nanos};
use crate::clock::Instant;
use crate::{Deadline, Dependency, Tenant};

/// What a layer changes for all that is inside of it, and nothing outside.
///
/// Layers that join an operation have one of their own, and swap it with the operation's around every call and poll.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    pub(super) deadline: Option<Deadline>,
    /// What an attempt leaves of the deadline, for delivering the answer.
    pub(super) reserve: Nanos,
    pub(super) dependency: Dependency,
    pub(super) key_hash: Option<NonZeroU64>,
    pub(super) tenant: Option<Tenant>,
    pub(super) attempt: u32,
    pub(super) max_attempts: u32,
    pub(super) upstream_attempt: u32,
    pub(super) passed: u8,
    pub(super) cause: Cause,
    pub(super) inside_retry: bool,
    pub(super) resent_inside: bool,
}

impl View {
    pub(super) const EMPTY: Self = Self {
        deadline: None,
        reserve: Nanos::ZERO,
        dependency: Dependency::UNNAMED,
        key_hash: None,
        tenant: None,
        attempt: 0,
        max_attempts: 0,
        upstream_attempt: 0,
        passed: 0,
        cause: Cause::Original,
        inside_retry: false,
        resent_inside: false,
    };

    /// Tells whether a layer of that kind works in this operation, or begins one of its own.
    #[inline]
    pub(super) fn admits(&self, kind: LayerKind, dependency: Dependency) -> bool {
        self.passed & kind.bit() == 0 && self.dependency.may_be(dependency)
    }

    /// Notes that a layer is passed.
    #[inline]
    pub(super) fn pass(&mut self, kind: LayerKind, dependency: Dependency) {
        // What an earlier call of the operation has resent is not inside of this one.
        self.resent_inside = false;
        if !dependency.is_unnamed() {
            self.dependency = dependency;
        }
        self.passed |= kind.bit();
    }

    /// Tells whether a retry has been passed, in this operation or around it.
    pub(super) const fn is_inside_retry_of_any_kind(&self) -> bool {
        self.inside_retry || self.passed & LayerKind::Retry.bit() != 0
    }

    #[inline]
    pub(super) fn attempt_deadline(&self) -> Option<Deadline> {
        self.deadline
            .map(|deadline| deadline.less(self.reserve.duration()))
    }

    #[inline]
    pub(super) fn attempt_remaining(&self, now: Instant) -> Option<Duration> {
        let remaining = self.deadline?.remaining(now);
        Some(remaining.saturating_sub(self.reserve.duration()))
    }

    #[inline]
    pub(super) const fn set_deadline(&mut self, deadline: Deadline, reserve: Duration) {
        self.deadline = Some(deadline);
        self.reserve = Nanos::of(reserve);
    }

    #[inline]
    pub(super) const fn set_attempt(&mut self, attempt: u32, max: u32, cause: Cause) {
        self.attempt = attempt;
        self.max_attempts = max;
        self.cause = cause;
    }
}
