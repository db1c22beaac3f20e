//! A plan of faults, and who hears of them.

use std::fmt;
use std::sync::Arc;

use mamparo_core::Observer;
use tower_layer::Layer;

use super::handle::Shared;
use super::{FaultHandle, FaultPlan, Faulty, HttpAnswer, Protocol, Whole};

/// Spoils calls on purpose; see the [module](super).
pub struct FaultLayer<Req, P: Protocol> {
    shared: Arc<Shared<Req, P>>,
    observer: Option<Arc<dyn Observer>>,
}

impl<Req, Res: 'static> FaultLayer<Req, Whole<Res>> {
    /// Spoils calls of any service by a plan, from the first one on.
    #[must_use]
    pub fn new(plan: FaultPlan<Req, Whole<Res>>) -> Self {
        Self::by(plan)
    }
}

impl<Req> FaultLayer<Req, HttpAnswer> {
    /// Spoils HTTP requests and their answers by a plan, from the first one on.
    #[must_use]
    pub fn http(plan: FaultPlan<Req, HttpAnswer>) -> Self {
        Self::by(plan)
    }
}

impl<Req, P: Protocol> FaultLayer<Req, P> {
    fn by(plan: FaultPlan<Req, P>) -> Self {
        Self {
            shared: Arc::new(Shared::new(plan)),
            observer: None,
        }
    }

    /// Reports every fault to an observer.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Returns the switch of this layer's faults.
    #[must_use]
    pub fn handle(&self) -> FaultHandle<Req, P> {
        FaultHandle::new(Arc::clone(&self.shared))
    }
}

impl<S, Req, P: Protocol> Layer<S> for FaultLayer<Req, P> {
    type Service = Faulty<S, Req, P>;

    fn layer(&self, inner: S) -> Faulty<S, Req, P> {
        Faulty::new(inner, Arc::clone(&self.shared), self.observer.clone())
    }
}

impl<Req, P: Protocol> Clone for FaultLayer<Req, P> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            observer: self.observer.clone(),
        }
    }
}

impl<Req, P: Protocol> fmt::Debug for FaultLayer<Req, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultLayer")
            .field("handle", &self.handle())
            .finish_non_exhaustive()
    }
}
