//! The part of a context that layers lay over each other.

use std::num::NonZeroU64;
use std::time::Duration;

use super::{Cause, LayerKind};
use crate::clock::Instant;
use crate::{Deadline, Dependency, Tenant};

/// What a layer changes for all that is inside of it, and nothing outside.
///
/// Layers that join an operation have one of their own, and swap it with the operation's around every call and poll.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    pub(super) deadline: Option<Deadline>,
    /// When an attempt must be over: it leaves some of the deadline for delivering the answer.
    pub(super) attempt_deadline: Option<Deadline>,
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
        attempt_deadline: None,
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
    pub(super) fn attempt_remaining(&self, now: Instant) -> Option<Duration> {
        Some(self.attempt_deadline?.remaining(now))
    }

    #[inline]
    pub(super) const fn set_deadline(&mut self, deadline: Deadline, attempt_deadline: Deadline) {
        self.deadline = Some(deadline);
        self.attempt_deadline = Some(attempt_deadline);
    }

    #[inline]
    pub(super) const fn set_attempt(&mut self, attempt: u32, max: u32, cause: Cause) {
        self.attempt = attempt;
        self.max_attempts = max;
        self.cause = cause;
    }
}
