//! The value itself.

use std::fmt::{self, Display};
use std::num::NonZeroU64;
use std::time::Duration;

use super::current;
use super::notes::Notes;
use super::view::View;
use super::{AttemptLimit, Scope};
use crate::clock::{self, Instant};
use crate::{Deadline, Dependency, Tenant};

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
    pub(super) view: View,
    pub(super) limit: AttemptLimit,
    pub(super) notes: Notes,
    pub(super) operation: Option<OperationId>,
    pub(super) started: Option<Instant>,
    pub(super) sends: u32,
}

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
    pub(super) const fn bit(self) -> u8 {
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
    /// The same attempt, sent once more at once: there was proof that it had never been processed (gRFC A6).
    Transparent,
}

impl CallContext {
    /// The context outside of any call.
    pub const EMPTY: Self = Self {
        view: View::EMPTY,
        limit: AttemptLimit::NONE,
        notes: Notes::NONE,
        operation: None,
        started: None,
        sends: 0,
    };

    /// Returns a copy of the context of the call that is being made or polled on this thread.
    #[must_use]
    pub fn current() -> Self {
        current::with(|context| *context).unwrap_or_default()
    }

    /// Returns the context in which a layer of that kind works, see [`Scope::join`].
    #[must_use]
    pub fn join(kind: LayerKind, dependency: Dependency) -> Self {
        Scope::join(kind, dependency).context()
    }

    /// Returns a copy of the current context as a layer reports in: under the layer's own name for the dependency, if it has one.
    #[must_use]
    pub fn current_for(dependency: Dependency) -> Self {
        let mut context = Self::current();
        if !dependency.is_unnamed() {
            context.view.dependency = dependency;
        }
        context
    }

    /// Makes this the context of whatever is called inside.
    pub fn enter<R>(&mut self, f: impl FnOnce() -> R) -> R {
        let mut scope = Scope::of(*self);
        let result = scope.enter(f);
        *self = scope.context();
        result
    }

    /// A new operation inside this one: it ends when the attempt around it must, keeps the tenant, and counts anew.
    pub(super) fn begin(&self) -> Self {
        let limits = [self.attempt_deadline(), self.attempt_cut()];
        let deadline = limits.into_iter().flatten().min();
        Self {
            view: View {
                deadline,
                attempt_deadline: deadline,
                tenant: self.view.tenant,
                upstream_attempt: self.view.upstream_attempt,
                inside_retry: self.view.is_inside_retry_of_any_kind(),
                ..View::EMPTY
            },
            ..Self::EMPTY
        }
    }

    /// Gives the operation its id; its first attempt is the original.
    #[inline]
    pub(super) fn name(&mut self) {
        let id = NonZeroU64::new(fastrand::u64(..)).unwrap_or(NonZeroU64::MAX);
        self.operation = Some(OperationId(id));
        self.view.attempt = 1;
    }

    /// Returns how many sends have been counted, if this is that operation.
    #[inline]
    pub(super) fn sends_of(&self, operation: Option<OperationId>) -> Option<u32> {
        (self.operation == operation).then_some(self.sends)
    }

    /// Returns the instant at which the current call is made, as the layers around have read it; outside of a call, now.
    ///
    /// Between two layers of one call there is nothing to wait for, so that one look at the clock is enough for all.
    #[must_use]
    #[inline]
    pub fn now() -> Instant {
        current::now().unwrap_or_else(clock::now)
    }

    /// Returns the instant that bounds the current operation, without a copy of all the rest.
    #[must_use]
    #[inline]
    pub fn current_deadline() -> Option<Deadline> {
        current::with(|context| context.view.deadline).flatten()
    }

    /// Returns when an attempt of the current operation must be over, see [`Self::attempt_deadline`].
    #[must_use]
    #[inline]
    pub fn current_attempt_deadline() -> Option<Deadline> {
        current::with(|context| context.view.attempt_deadline).flatten()
    }

    /// Promises that a timer wakes the task that polls this call at that instant, so that who waits further out needs none.
    ///
    /// Given anew at every poll, and taken back with [`Self::break_promise`] when the timer is dropped.
    #[inline]
    pub fn promise_wake(at: Deadline) {
        current::set_wake(Some(at));
    }

    /// Takes back what [`Self::promise_wake`] promised.
    #[inline]
    pub fn break_promise() {
        current::set_wake(None);
    }

    /// Returns when a timer inside has promised to wake the task, see [`Self::promise_wake`].
    #[must_use]
    #[inline]
    pub fn promised_wake() -> Option<Deadline> {
        current::wake()
    }

    /// Counts one physical send, and returns how many came before it: its `resend_count`.
    ///
    /// Called by whatever stands right before the transport, once per send. A send for another dependency
    /// than the current operation's, or outside of any operation, counts for itself and returns 0.
    #[inline]
    pub fn count_send(dependency: Dependency) -> u32 {
        let counted = current::with(|context| {
            if context.operation.is_none() || !context.view.dependency.may_be(dependency) {
                return 0;
            }
            let before = context.sends;
            context.sends = before.saturating_add(1);
            before
        });
        counted.unwrap_or(0)
    }

    /// Tells every retry around the current call that a resend has been made inside it.
    pub fn report_resend() {
        current::with(|context| context.view.resent_inside |= context.operation.is_some());
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
        current::cut(drop)
    }

    /// Tells whether what is dropped now was cut by us: a failure, where a caller that goes away is none.
    #[must_use]
    pub fn is_cutting() -> bool {
        current::is_cutting()
    }

    /// Returns the instant that bounds the current operation.
    #[must_use]
    pub const fn deadline(&self) -> Option<Deadline> {
        self.view.deadline
    }

    /// Returns the instant at which an attempt must be over: the deadline less the reserve.
    #[must_use]
    #[inline]
    pub const fn attempt_deadline(&self) -> Option<Deadline> {
        self.view.attempt_deadline
    }

    /// Returns how long there is from `now` until an attempt must be over, see [`Self::attempt_deadline`].
    #[must_use]
    #[inline]
    pub fn attempt_remaining(&self, now: Instant) -> Option<Duration> {
        self.view.attempt_remaining(now)
    }

    /// Returns the operation's id, if an operation has begun.
    #[must_use]
    pub const fn operation(&self) -> Option<OperationId> {
        self.operation
    }

    /// Returns the dependency that the operation calls.
    #[must_use]
    pub const fn dependency(&self) -> Dependency {
        self.view.dependency
    }

    /// Returns the instant at which the operation began, where a layer that reads the clock has said it.
    #[must_use]
    pub const fn started(&self) -> Option<Instant> {
        self.started
    }

    /// Returns the number of the current attempt: 1 is the original, 0 means no operation.
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        self.view.attempt
    }

    /// Returns how many attempts the operation may make, 0 when no layer has said so.
    #[must_use]
    pub const fn max_attempts(&self) -> u32 {
        self.view.max_attempts
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
        self.view.cause
    }

    /// Returns a short hash of the operation's idempotency key: the key itself is never kept here.
    #[must_use]
    pub const fn key_hash(&self) -> Option<NonZeroU64> {
        self.view.key_hash
    }

    /// Returns the tenant on whose behalf the call is made.
    #[must_use]
    pub const fn tenant(&self) -> Option<Tenant> {
        self.view.tenant
    }

    /// Returns the attempt number that the caller of this server sent, 0 when it sent none.
    #[must_use]
    pub const fn upstream_attempt(&self) -> u32 {
        self.view.upstream_attempt
    }

    /// Tells whether the operation is nested in an outer retry of this process.
    #[must_use]
    pub const fn is_inside_retry(&self) -> bool {
        self.view.inside_retry
    }

    /// Tells whether a retry nested in this operation has resent.
    #[must_use]
    pub const fn has_resent_inside(&self) -> bool {
        self.view.resent_inside
    }

    /// Bounds the call by the smaller of its deadline and this one.
    #[must_use]
    #[inline]
    pub fn with_deadline(mut self, deadline: Deadline) -> Self {
        let earlier = |own: Option<Deadline>| Some(own.map_or(deadline, |own| own.min(deadline)));
        self.view.deadline = earlier(self.view.deadline);
        self.view.attempt_deadline = earlier(self.view.attempt_deadline);
        self
    }

    /// Keeps time back from the deadline, see [`Self::attempt_deadline`].
    #[must_use]
    pub fn with_reserve(mut self, reserve: Duration) -> Self {
        self.view.attempt_deadline = self.view.deadline.map(|deadline| deadline.less(reserve));
        self
    }

    /// Notes when the operation began, unless that is known.
    #[must_use]
    #[inline]
    pub fn started_at(mut self, now: Instant) -> Self {
        self.set_started(now);
        self
    }

    #[inline]
    pub(super) fn set_started(&mut self, now: Instant) {
        self.started = self.started.or(Some(now));
    }

    /// Numbers the attempt, out of `max`, and says what led to it.
    #[must_use]
    #[inline]
    pub const fn with_attempt(mut self, attempt: u32, max: u32, cause: Cause) -> Self {
        self.view.set_attempt(attempt, max, cause);
        self
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
        self.view.key_hash = hash;
        self
    }

    /// Notes the tenant on whose behalf the call is made.
    #[must_use]
    pub const fn with_tenant(mut self, tenant: Option<Tenant>) -> Self {
        self.view.tenant = tenant;
        self
    }

    /// Notes the attempt number that the caller of this server sent.
    #[must_use]
    pub const fn with_upstream_attempt(mut self, attempt: u32) -> Self {
        self.view.upstream_attempt = attempt;
        self
    }
}

impl Default for CallContext {
    fn default() -> Self {
        Self::EMPTY
    }
}
