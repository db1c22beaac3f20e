//! The context of the running thread, and the boxes that contexts lie in.

use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;

use super::CallContext;
use crate::Deadline;
use crate::clock::Instant;

/// How many boxes a thread keeps for the operations to come.
const KEPT: usize = 64;

/// Where a context lies, or none.
pub(super) type Slot = Option<Place>;

type Place = Box<CallContext>;

thread_local! {
    // Not dropped at the thread's end, when nothing is in there: whoever has put something in has taken it out. What is
    // dropped asks at each access whether it has been.
    static CURRENT: Cell<ManuallyDrop<Slot>> = const { Cell::new(ManuallyDrop::new(None)) };
    // A context is made for each operation, and an allocation would cost more than all that is done with it.
    static FREE: RefCell<Vec<Place>> = const { RefCell::new(Vec::new()) };
    static CUTTING: Cell<bool> = const { Cell::new(false) };
    /// The clock, while a call is made.
    static NOW: Cell<Option<Instant>> = const { Cell::new(None) };
    /// When a timer inside wakes the task.
    static WAKE: Cell<Option<Deadline>> = const { Cell::new(None) };
}

/// Begins another call or poll: what was said during the last one is over.
#[inline]
pub(super) fn turn(now: Option<Instant>) {
    NOW.set(now);
    WAKE.set(None);
}

/// Ends a call: whatever comes next looks at the clock itself.
#[inline]
pub(super) fn call_is_over() {
    NOW.set(None);
}

#[inline]
pub(super) fn now() -> Option<Instant> {
    NOW.get()
}

#[inline]
pub(super) fn wake() -> Option<Deadline> {
    WAKE.get()
}

#[inline]
pub(super) fn set_wake(at: Option<Deadline>) {
    WAKE.set(at);
}

/// Makes this the current context, and returns the one that was.
#[inline]
pub(super) fn replace(context: Slot) -> Slot {
    ManuallyDrop::into_inner(CURRENT.replace(ManuallyDrop::new(context)))
}

/// Looks at the current context, and changes it; none outside of any call.
#[inline]
pub(super) fn with<R>(f: impl FnOnce(&mut CallContext) -> R) -> Option<R> {
    CURRENT.with(|current| {
        let mut context = current.replace(ManuallyDrop::new(None));
        let result = context.as_deref_mut().map(f);
        current.replace(context);
        result
    })
}

/// Returns a box for a context, with whatever was in there before.
#[inline]
pub(super) fn place() -> Place {
    let free = FREE.try_with(|free| free.borrow_mut().pop());
    free.ok().flatten().unwrap_or_default()
}

/// Keeps a box for another context.
#[inline]
pub(super) fn recycle(place: Place) {
    let _at_the_threads_end = FREE.try_with(|free| {
        let mut free = free.borrow_mut();
        if free.len() < KEPT {
            free.push(place);
        }
    });
}

/// Calls something with a mark that whatever it drops is cut.
#[cold]
pub(super) fn cut<R>(drop: impl FnOnce() -> R) -> R {
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            CUTTING.set(self.0);
        }
    }
    let _before = Before(CUTTING.replace(true));
    drop()
}

pub(super) fn is_cutting() -> bool {
    CUTTING.get()
}
