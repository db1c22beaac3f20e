//! Settings of a server's answers to errors.

use std::sync::Arc;

use mamparo_core::Observer;
use mamparo_core::shard::Spread;
use tower_layer::Layer;

use super::{RejectionPolicy, RejectionService};

/// Turns every error into a response; see the [module](super).
#[derive(Clone, Debug)]
pub struct RejectionLayer {
    shared: Spread<Shared>,
}

/// What all services of a layer share.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    pub(super) policy: RejectionPolicy,
    pub(super) observer: Option<Arc<dyn Observer>>,
}

impl RejectionLayer {
    /// Answers errors by a policy.
    #[must_use]
    pub fn new(policy: RejectionPolicy) -> Self {
        Self {
            shared: Spread::new(Shared {
                policy,
                observer: None,
            }),
        }
    }

    pub(crate) fn with_policy(mut self, policy: RejectionPolicy) -> Self {
        self.shared.change(|shared| shared.policy = policy);
        self
    }

    /// Reports the errors that are answered to an observer.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.shared
            .change(|shared| shared.observer = Some(observer));
        self
    }
}

impl Default for RejectionLayer {
    fn default() -> Self {
        Self::new(RejectionPolicy::default())
    }
}

impl<S> Layer<S> for RejectionLayer {
    type Service = RejectionService<S>;

    fn layer(&self, inner: S) -> RejectionService<S> {
        RejectionService::new(inner, self.shared.clone())
    }
}
