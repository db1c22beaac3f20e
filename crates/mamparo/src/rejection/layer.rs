//! Settings of a server's answers to errors.

use std::sync::Arc;

use mamparo_core::Observer;
use tower_layer::Layer;

use super::{RejectionPolicy, RejectionService};

/// Turns every error into a response; see the [module](super).
#[derive(Clone, Debug, Default)]
pub struct RejectionLayer {
    shared: Arc<Shared>,
}

/// What all services of a layer share.
#[derive(Clone, Debug, Default)]
pub(super) struct Shared {
    pub(super) policy: RejectionPolicy,
    pub(super) observer: Option<Arc<dyn Observer>>,
}

impl RejectionLayer {
    /// Answers errors by a policy.
    #[must_use]
    pub fn new(policy: RejectionPolicy) -> Self {
        Self {
            shared: Arc::new(Shared {
                policy,
                observer: None,
            }),
        }
    }

    /// Reports the errors that are answered to an observer.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        Arc::make_mut(&mut self.shared).observer = Some(observer);
        self
    }
}

impl<S> Layer<S> for RejectionLayer {
    type Service = RejectionService<S>;

    fn layer(&self, inner: S) -> RejectionService<S> {
        RejectionService::new(inner, Arc::clone(&self.shared))
    }
}
