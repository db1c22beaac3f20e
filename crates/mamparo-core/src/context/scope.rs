//! A layer's part in an operation.

use std::marker::PhantomData;
use std::mem;
use std::num::NonZeroU64;
use std::time::Duration;

use super::current::{self, Slot};
use super::view::View;
use super::{CallContext, Cause, LayerKind, OperationId};
use crate::clock::Instant;
use crate::{Deadline, Dependency, Tenant};

/// What a layer holds for the time of a call, and enters around the call and every poll.
///
/// The layer that begins an operation holds its context, and makes it the current one. A layer that joins holds only
/// what it sets for those inside, and lays that over the current context; polled outside of its operation, in another
/// task say, it lays it over nothing.
///
/// ```
/// use mamparo_core::{CallContext, LayerKind, Scope};
///
/// let mut scope = Scope::join(LayerKind::Retry, "catalog".into());
/// scope.enter(|| assert_eq!(CallContext::current().dependency().as_str(), "catalog"));
/// assert!(CallContext::current().operation().is_none());
/// ```
#[derive(Debug)]
pub struct Scope(Part);

#[derive(Debug)]
enum Part {
    /// Nothing while it is entered.
    Began(Slot),
    Joined {
        operation: Option<OperationId>,
        view: View,
    },
}

impl Scope {
    /// Joins the current operation, or begins one.
    ///
    /// See the [module's text](super) for which of the two.
    #[must_use]
    #[inline]
    pub fn join(kind: LayerKind, dependency: Dependency) -> Self {
        let joined = current::with(|context| {
            let admitted = context.operation.is_some() && context.view.admits(kind, dependency);
            admitted.then(|| {
                let mut view = context.view;
                view.pass(kind, dependency);
                Part::Joined {
                    operation: context.operation,
                    view,
                }
            })
        });
        match joined.flatten() {
            Some(part) => Self(part),
            None => Self::begin(kind, dependency),
        }
    }

    #[inline]
    fn begin(kind: LayerKind, dependency: Dependency) -> Self {
        let mut place = current::place();
        *place = current::with(|outer| outer.begin()).unwrap_or(CallContext::EMPTY);
        place.name();
        place.view.pass(kind, dependency);
        Self(Part::Began(Some(place)))
    }

    /// Holds this context.
    #[must_use]
    #[inline]
    pub fn of(context: CallContext) -> Self {
        let mut place = current::place();
        *place = context;
        Self(Part::Began(Some(place)))
    }

    /// Takes it out of a future that is at its end, for the body of its answer.
    #[must_use]
    #[inline]
    pub fn take(&mut self) -> Self {
        mem::replace(self, Self(Part::Began(None)))
    }

    /// Makes this the context of whatever is called inside.
    #[inline]
    pub fn enter<R>(&mut self, f: impl FnOnce() -> R) -> R {
        let _entered = self.entered();
        f()
    }

    /// Makes this the current context until what is returned is dropped.
    #[inline]
    pub fn entered(&mut self) -> Entered<'_> {
        self.entered_with(None)
    }

    /// Enters a call that is made now: layers inside need not ask the clock again, see [`CallContext::now`].
    #[inline]
    pub fn entered_at(&mut self, now: Instant) -> Entered<'_> {
        self.entered_with(Some(now))
    }

    #[inline]
    fn entered_with(&mut self, now: Option<Instant>) -> Entered<'_> {
        let (outer, resent) = self.0.lay(now);
        Entered {
            part: &mut self.0,
            outer,
            resent,
            _on_one_thread: PhantomData,
        }
    }

    /// Returns the context that those inside see.
    #[must_use]
    pub fn context(&self) -> CallContext {
        match &self.0 {
            Part::Began(context) => context.as_deref().copied().unwrap_or_default(),
            Part::Joined { operation, view } => {
                let current = CallContext::current();
                let mut context = if current.operation == *operation {
                    current
                } else {
                    CallContext {
                        operation: *operation,
                        ..CallContext::EMPTY
                    }
                };
                context.view = *view;
                context
            }
        }
    }

    #[inline]
    fn view(&self) -> &View {
        const NOTHING: &View = &View::EMPTY;
        match &self.0 {
            Part::Began(context) => context.as_deref().map_or(NOTHING, |c| &c.view),
            Part::Joined { view, .. } => view,
        }
    }

    #[inline]
    fn change(&mut self, change: impl FnOnce(&mut View)) {
        match &mut self.0 {
            Part::Began(context) => {
                if let Some(context) = context.as_deref_mut() {
                    change(&mut context.view);
                }
            }
            Part::Joined { view, .. } => change(view),
        }
    }

    /// Returns the operation's id.
    #[must_use]
    pub fn operation(&self) -> Option<OperationId> {
        match &self.0 {
            Part::Began(context) => context.as_deref()?.operation,
            Part::Joined { operation, .. } => *operation,
        }
    }

    /// Returns the deadline of the operation.
    #[must_use]
    #[inline]
    pub fn deadline(&self) -> Option<Deadline> {
        self.view().deadline
    }

    /// Returns what remains for an attempt: until the deadline, less the reserve.
    #[must_use]
    #[inline]
    pub fn attempt_remaining(&self, now: Instant) -> Option<Duration> {
        self.view().attempt_remaining(now)
    }

    /// Returns the dependency that is called.
    #[must_use]
    #[inline]
    pub fn dependency(&self) -> Dependency {
        self.view().dependency
    }

    /// Returns who the operation is done for.
    #[must_use]
    #[inline]
    pub fn tenant(&self) -> Option<Tenant> {
        self.view().tenant
    }

    /// Returns the number of the attempt.
    #[must_use]
    #[inline]
    pub fn attempt(&self) -> u32 {
        self.view().attempt
    }

    /// Tells whether a retry of another operation, or one further out, owns the resends already.
    #[must_use]
    #[inline]
    pub fn is_inside_retry(&self) -> bool {
        self.view().inside_retry
    }

    /// Tells whether a retry inside has resent.
    #[must_use]
    #[inline]
    pub fn has_resent_inside(&self) -> bool {
        self.view().resent_inside
    }

    /// Returns the number of the caller's attempt that this one serves; 0 if it is not known.
    #[must_use]
    #[inline]
    pub fn upstream_attempt(&self) -> u32 {
        self.view().upstream_attempt
    }

    /// Returns how many physical sends the operation has made so far.
    #[must_use]
    #[inline]
    pub fn sends(&self) -> u32 {
        self.look(|context| context.sends).unwrap_or(0)
    }

    /// Returns when the operation began, where a layer that reads the clock has said it.
    #[must_use]
    pub fn started(&self) -> Option<Instant> {
        self.look(|context| context.started).flatten()
    }

    /// Looks at what all layers of the operation share; one that has joined must be called or polled inside of it.
    #[inline]
    fn look<R>(&self, look: impl FnOnce(&CallContext) -> R) -> Option<R> {
        match &self.0 {
            Part::Began(context) => context.as_deref().map(look),
            Part::Joined { operation, .. } => {
                let found = |context: &mut CallContext| {
                    (context.operation == *operation).then(|| look(context))
                };
                current::with(found).flatten()
            }
        }
    }

    /// Sets the deadline of the operation, and when an attempt must be over so that some of it is left.
    #[inline]
    pub fn set_deadline(&mut self, deadline: Deadline, attempt_deadline: Deadline) {
        self.change(|view| view.set_deadline(deadline, attempt_deadline));
    }

    /// Sets the attempt's number, the most that may follow, and what led to it.
    #[inline]
    pub fn set_attempt(&mut self, attempt: u32, max: u32, cause: Cause) {
        self.change(|view| view.set_attempt(attempt, max, cause));
    }

    /// Sets the short hash of the operation's idempotency key.
    #[inline]
    pub fn set_key_hash(&mut self, hash: Option<NonZeroU64>) {
        self.change(|view| view.key_hash = hash);
    }

    /// Sets when the operation began, unless that is known.
    #[inline]
    pub fn set_started(&mut self, now: Instant) {
        match &mut self.0 {
            Part::Began(context) => {
                if let Some(context) = context.as_deref_mut() {
                    context.set_started(now);
                }
            }
            Part::Joined { .. } => {
                current::with(|context| context.set_started(now));
            }
        }
    }
}

impl Part {
    /// Makes it current; returns the context that was, and whether a retry inside has been heard of.
    #[inline]
    fn lay(&mut self, now: Option<Instant>) -> (Slot, bool) {
        current::turn(now);
        match self {
            Self::Began(own) => {
                let outer = current::replace(own.take());
                let resent = outer.as_deref().is_some_and(go_on_from);
                (outer, resent)
            }
            Self::Joined { operation, view } => {
                let resent = view.resent_inside;
                current::with(|context| {
                    if context.operation == *operation {
                        mem::swap(&mut context.view, view);
                    }
                });
                (None, resent)
            }
        }
    }

    #[inline]
    fn lift(&mut self, outer: Slot, had_resent: bool) {
        current::call_is_over();
        match self {
            Self::Began(own) => {
                let nested = outer.is_some();
                *own = current::replace(outer);
                if let (true, Some(inside)) = (nested, own.as_deref()) {
                    report_to_outer(inside, had_resent);
                }
            }
            Self::Joined { operation, view } => {
                current::with(|context| {
                    if context.operation == *operation {
                        mem::swap(&mut context.view, view);
                        context.view.resent_inside |= view.resent_inside && !had_resent;
                    }
                });
            }
        }
    }
}

/// Attempts that run side by side count on from each other. Returns whether a retry inside had been heard of before.
#[cold]
fn go_on_from(outer: &CallContext) -> bool {
    let resent = current::with(|context| {
        if let Some(sends) = outer.sends_of(context.operation) {
            context.sends = context.sends.max(sends);
        }
        context.view.resent_inside
    });
    resent.unwrap_or_default()
}

/// Tells the context around what happened inside: once, since a body is still polled in its context when it is read
/// inside of another call.
#[cold]
fn report_to_outer(inside: &CallContext, had_resent: bool) {
    let resent = inside.view.resent_inside && !had_resent;
    current::with(|outer| {
        outer.view.resent_inside |= resent && outer.operation.is_some();
        if outer.sends_of(inside.operation).is_some() {
            outer.sends = inside.sends;
        }
    });
}

impl Drop for Scope {
    #[inline]
    fn drop(&mut self) {
        if let Part::Began(own) = &mut self.0
            && let Some(place) = own.take()
        {
            current::recycle(place);
        }
    }
}

/// The context that was current before; dropped, it is again.
#[must_use = "dropped at once, it enters nothing"]
#[derive(Debug)]
pub struct Entered<'a> {
    part: &'a mut Part,
    outer: Slot,
    resent: bool,
    _on_one_thread: PhantomData<*const ()>,
}

impl Drop for Entered<'_> {
    #[inline]
    fn drop(&mut self) {
        self.part.lift(self.outer.take(), self.resent);
    }
}
