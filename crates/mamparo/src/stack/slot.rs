//! The place of a fallback.

use std::sync::Arc;

use mamparo_core::Observer;
use tower_layer::Identity;

use crate::fallback::FallbackLayer;

/// What stands in a stack where a fallback may: one, or [`Identity`] for none.
///
/// What a fallback answers with is code, and the type of its answer is in the type of the stack's: it can't be chosen at
/// run time, as whether the other layers are on can.
pub trait FallbackSlot<P>: Clone {
    /// Whether a fallback stands here.
    const TAKEN: bool;

    /// The same, which judges and reports as the stack does.
    #[must_use]
    fn fitted(&self, protocol: &P, observer: Option<&Arc<dyn Observer>>) -> Self;
}

impl<P> FallbackSlot<P> for Identity {
    const TAKEN: bool = false;

    fn fitted(&self, _: &P, _: Option<&Arc<dyn Observer>>) -> Self {
        self.clone()
    }
}

impl<P: Clone, F> FallbackSlot<P> for FallbackLayer<P, F> {
    const TAKEN: bool = true;

    fn fitted(&self, protocol: &P, observer: Option<&Arc<dyn Observer>>) -> Self {
        let layer = self.clone().judged_by(protocol.clone());
        layer.observed(observer.cloned())
    }
}
