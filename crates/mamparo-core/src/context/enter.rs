//! Making a context the current one.

use std::marker::PhantomData;

use super::CallContext;
use super::call::CURRENT;

impl CallContext {
    /// Makes this the current context while `f` runs.
    ///
    /// What is counted inside comes back: the number of sends, and whether anything inside has resent.
    #[inline]
    pub fn enter<R>(&mut self, f: impl FnOnce() -> R) -> R {
        let _entered = self.entered();
        f()
    }

    /// Makes this the current context until the guard is dropped; never hold it over an await.
    ///
    /// The same as [`Self::enter`], for what is dear to move into a closure. The guard stays on its thread:
    ///
    /// ```compile_fail
    /// fn spawnable(_: impl Send) {}
    /// spawnable(mamparo_core::CallContext::EMPTY.entered());
    /// ```
    #[inline]
    pub fn entered(&mut self) -> Entered<'_> {
        let outer = CURRENT.with(|current| {
            let outer = current.get();
            if outer.operation == self.operation {
                // Attempts that run side by side count on from each other.
                self.sends = self.sends.max(outer.sends);
            }
            current.set(*self);
            outer
        });
        Entered {
            outer,
            context: self,
            _on_one_thread: PhantomData,
        }
    }
}

/// A context is the current one as long as this lives; made by [`CallContext::entered`].
#[must_use = "dropped at once, it enters nothing"]
#[derive(Debug)]
pub struct Entered<'a> {
    outer: CallContext,
    context: &'a mut CallContext,
    _on_one_thread: PhantomData<*const ()>,
}

impl Drop for Entered<'_> {
    #[inline]
    fn drop(&mut self) {
        CURRENT.with(|current| {
            let inside = current.get();
            // Told once, when it happened: a body is still polled in its context when it is read inside of another call.
            let resent = inside.resent_inside && !self.context.resent_inside;
            self.context.sends = inside.sends;
            self.context.resent_inside = inside.resent_inside;
            if self.outer.operation == self.context.operation {
                self.outer.sends = inside.sends;
            }
            self.outer.resent_inside |= resent && self.outer.operation.is_some();
            current.set(self.outer);
        });
    }
}
