//! The value itself, and the thread-local that it is swapped into.

use std::cell::Cell;
use std::fmt::{self, Display};
use std::num::NonZeroU64;
use std::time::Duration;

use super::{AttemptLimit, nanos::Nanos};
use crate::clock::Instant;
use crate::{Deadline, Dependency, Tenant};

thread_local!(pub(super) static CURRENT: Cell<CallContext> = const { Cell::new(CallContext::EMPTY) });

/// What travels with a call: the deadline, the operation, the attempt.
///
/// ```
/// use mamparo_core::{CallContext, Deadline, clock};
/// use std::time::Duration;
///
/// assert_eq!(CallContext::current().deadline(), None);
/// let deadline = Deadline::after(clock::now(), Duration::from_secs(1));
/// let mut context = CallContext::current().with_deadline(deadline);
/// context.enter(|| assert_eq!(CallContext::current().deadline(), Some(deadline)));
/// assert_eq!(CallContext::current().deadline(), None);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct CallContext {
    deadline: Option<Deadline>,
    started: Option<Instant>,
    pub(super) limit: AttemptLimit,
    reserve: Nanos,
    dependency: Dependency,
    pub(super) operation: Option<OperationId>,
    key_hash: Option<NonZeroU64>,
    tenant: Option<Tenant>,
    attempt: u32,
    max_attempts: u32,
    pub(super) sends: u32,
    upstream_attempt: u32,
    passed: u8,
    cause: Cause,
    inside_retry: bool,
    pub(super) resent_inside: bool,
    cutting: bool,
}

/// Every layer copies the context, and up to here a copy is a few moves in place instead of a call.
const CHEAP_TO_COPY: usize = 128;

const _: () = assert!(size_of::<CallContext>() <= CHEAP_TO_COPY);

/// Names one operation in logs and spans: random, 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OperationId(NonZeroU64);

impl Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The layers that a call can pass on its way out, for telling an operation's own layers from a nested call's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LayerKind {
    /// The record of one operation.
    Operation,
    /// The bound of the whole operation.
    Deadline,
    /// One key per operation.
    IdempotencyKey,
    /// The owner of resends.
    Retry,
}

impl LayerKind {
    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// What led to an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Cause {
    /// The caller asked: the first attempt.
    #[default]
    Original,
    /// The attempt before it failed.
    Retry,
    /// The attempts before it took long, or one of them failed: this one runs beside them.
    Hedge,
    /// The dependency sent us elsewhere.
    Redirect,
}

impl CallContext {
    /// The context outside of any call.
    pub const EMPTY: Self = Self {
        deadline: None,
        started: None,
        limit: AttemptLimit::NONE,
        reserve: Nanos::ZERO,
        dependency: Dependency::UNNAMED,
        operation: None,
        key_hash: None,
        tenant: None,
        attempt: 0,
        max_attempts: 0,
        sends: 0,
        upstream_attempt: 0,
        passed: 0,
        cause: Cause::Original,
        inside_retry: false,
        resent_inside: false,
        cutting: false,
    };

    /// Returns the context of the call that is being made or polled on this thread.
    #[must_use]
    #[inline]
    pub fn current() -> Self {
        CURRENT.get()
    }

    /// Returns the context in which a layer of that kind works: it joins the current operation or begins one.
    ///
    /// See the [module's text](super) for which of the two.
    #[must_use]
    #[inline]
    pub fn join(kind: LayerKind, dependency: Dependency) -> Self {
        let mut context = Self::current();
        let joins = context.operation.is_some()
            && context.passed & kind.bit() == 0
            && context.dependency.may_be(dependency);
        if !joins {
            context = context.begin();
        }
        // What an earlier call of the operation has resent is not inside of this one.
        context.resent_inside = false;
        if !dependency.is_unnamed() {
            context.dependency = dependency;
        }
        context.passed |= kind.bit();
        context
    }

    /// A new operation inside this one: it ends when the attempt around it must, keeps the tenant, and counts anew.
    fn begin(self) -> Self {
        let limits = [self.attempt_deadline(), self.attempt_cut()];
        Self {
            deadline: limits.into_iter().flatten().min(),
            tenant: self.tenant,
            upstream_attempt: self.upstream_attempt,
            operation: Some(OperationId(
                NonZeroU64::new(fastrand::u64(..)).unwrap_or(NonZeroU64::MAX),
            )),
            attempt: 1,
            inside_retry: self.inside_retry || self.passed & LayerKind::Retry.bit() != 0,
            ..Self::EMPTY
        }
    }

    /// Counts one physical send, and returns how many came before it: its `resend_count`.
    ///
    /// Called by whatever stands right before the transport, once per send. A send for another dependency
    /// than the current operation's, or outside of any operation, counts for itself and returns 0.
    #[inline]
    pub fn count_send(dependency: Dependency) -> u32 {
        let mut context = CURRENT.get();
        if context.operation.is_none() || !context.dependency.may_be(dependency) {
            return 0;
        }
        let before = context.sends;
        context.sends = before.saturating_add(1);
        CURRENT.set(context);
        before
    }

    /// Tells every retry around the current call that a resend has been made inside it.
    pub fn report_resend() {
        let mut context = CURRENT.get();
        context.resent_inside = context.operation.is_some();
        CURRENT.set(context);
    }

    /// Runs `drop`, which gives up what has reached a limit: what is dropped in there was cut, and not cancelled.
    ///
    /// ```
    /// use mamparo_core::CallContext;
    /// assert!(CallContext::cut(CallContext::is_cutting));
    /// assert!(!CallContext::is_cutting());
    /// ```
    #[cold]
    pub fn cut<R>(drop: impl FnOnce() -> R) -> R {
        let mut cutting = CURRENT.get();
        cutting.cutting = true;
        cutting.enter(drop)
    }

    /// Tells whether what is dropped now was cut by us: a failure, where a caller that goes away is none.
    #[must_use]
    pub fn is_cutting() -> bool {
        CURRENT.get().cutting
    }

    /// Returns the instant that bounds the current operation.
    #[must_use]
    pub const fn deadline(&self) -> Option<Deadline> {
        self.deadline
    }

    /// Returns the instant at which an attempt must be over: the deadline less the reserve.
    #[must_use]
    #[inline]
    pub fn attempt_deadline(&self) -> Option<Deadline> {
        self.deadline
            .map(|deadline| deadline.less(self.reserve.duration()))
    }

    /// Returns how long there is from `now` until an attempt must be over, see [`Self::attempt_deadline`].
    #[must_use]
    #[inline]
    pub fn attempt_remaining(&self, now: Instant) -> Option<Duration> {
        let remaining = self.deadline?.remaining(now);
        Some(remaining.saturating_sub(self.reserve.duration()))
    }

    /// Returns the operation's id, if an operation has begun.
    #[must_use]
    pub const fn operation(&self) -> Option<OperationId> {
        self.operation
    }

    /// Returns the dependency that the operation calls.
    #[must_use]
    pub const fn dependency(&self) -> Dependency {
        self.dependency
    }

    /// Returns the instant at which the operation began, where a layer that reads the clock has said it.
    #[must_use]
    pub const fn started(&self) -> Option<Instant> {
        self.started
    }

    /// Returns the number of the current attempt: 1 is the original, 0 means no operation.
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Returns how many attempts the operation may make, 0 when no layer has said so.
    #[must_use]
    pub const fn max_attempts(&self) -> u32 {
        self.max_attempts
    }

    /// Returns how many physical sends the operation has made so far.
    #[must_use]
    pub const fn sends(&self) -> u32 {
        self.sends
    }

    /// Returns how long the current attempt may take until its head is there, zero when nothing bounds it.
    #[must_use]
    pub const fn attempt_timeout(&self) -> Duration {
        self.limit.timeout.duration()
    }

    /// Returns the instant at which the current attempt is cut, if its head is not there by then.
    ///
    /// What is dropped at or after it was cut by us, and not cancelled by the caller.
    #[must_use]
    pub const fn attempt_cut(&self) -> Option<Deadline> {
        self.limit.cut
    }

    /// Returns what led to the current attempt.
    #[must_use]
    pub const fn cause(&self) -> Cause {
        self.cause
    }

    /// Returns a short hash of the operation's idempotency key: the key itself is never kept here.
    #[must_use]
    pub const fn key_hash(&self) -> Option<NonZeroU64> {
        self.key_hash
    }

    /// Returns the tenant on whose behalf the call is made.
    #[must_use]
    pub const fn tenant(&self) -> Option<Tenant> {
        self.tenant
    }

    /// Returns the attempt number that the caller of this server sent, 0 when it sent none.
    #[must_use]
    pub const fn upstream_attempt(&self) -> u32 {
        self.upstream_attempt
    }

    /// Tells whether the operation is nested in an outer retry of this process.
    #[must_use]
    pub const fn is_inside_retry(&self) -> bool {
        self.inside_retry
    }

    /// Tells whether a retry nested in this operation has resent.
    #[must_use]
    pub const fn has_resent_inside(&self) -> bool {
        self.resent_inside
    }

    /// Bounds the call by the smaller of its deadline and this one.
    #[must_use]
    #[inline]
    pub fn with_deadline(mut self, deadline: Deadline) -> Self {
        self.deadline = Some(self.deadline.map_or(deadline, |own| own.min(deadline)));
        self
    }

    /// Keeps time back from the deadline, see [`Self::attempt_deadline`].
    #[must_use]
    pub const fn with_reserve(mut self, reserve: Duration) -> Self {
        self.reserve = Nanos::of(reserve);
        self
    }

    /// Ends the call at `deadline`, in place, and keeps `reserve` back from it.
    #[inline]
    pub const fn set_deadline(&mut self, deadline: Deadline, reserve: Duration) {
        self.deadline = Some(deadline);
        self.reserve = Nanos::of(reserve);
    }

    /// Notes when the operation began, unless that is known.
    #[must_use]
    #[inline]
    pub fn started_at(mut self, now: Instant) -> Self {
        self.set_started(now);
        self
    }

    /// Notes when the operation began, in place, unless that is known.
    #[inline]
    pub fn set_started(&mut self, now: Instant) {
        self.started = self.started.or(Some(now));
    }

    /// Numbers the attempt, out of `max`, and says what led to it.
    #[must_use]
    #[inline]
    pub const fn with_attempt(mut self, attempt: u32, max: u32, cause: Cause) -> Self {
        self.set_attempt(attempt, max, cause);
        self
    }

    /// Numbers the attempt in place, see [`Self::with_attempt`].
    #[inline]
    pub const fn set_attempt(&mut self, attempt: u32, max: u32, cause: Cause) {
        self.attempt = attempt;
        self.max_attempts = max;
        self.cause = cause;
    }

    /// Notes how long the attempt that begins `now` may take until its head is there.
    #[must_use]
    #[inline]
    pub fn with_attempt_timeout(mut self, now: Instant, timeout: Duration) -> Self {
        self.limit = AttemptLimit::new(now, timeout);
        self
    }

    /// Notes the short hash of the operation's idempotency key.
    #[must_use]
    pub const fn with_key_hash(mut self, hash: Option<NonZeroU64>) -> Self {
        self.key_hash = hash;
        self
    }

    /// Notes the tenant on whose behalf the call is made.
    #[must_use]
    pub const fn with_tenant(mut self, tenant: Option<Tenant>) -> Self {
        self.tenant = tenant;
        self
    }

    /// Notes the attempt number that the caller of this server sent.
    #[must_use]
    pub const fn with_upstream_attempt(mut self, attempt: u32) -> Self {
        self.upstream_attempt = attempt;
        self
    }
}

impl Default for CallContext {
    fn default() -> Self {
        Self::EMPTY
    }
}
