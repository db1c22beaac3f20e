//! Settings of the key.

use std::sync::Arc;

use mamparo_core::{Dependency, Observer};
use tower_layer::Layer;

use super::{IdempotencyKey, KeyPolicy};

/// Gives each operation one idempotency key; see the [module](super).
#[derive(Clone, Debug)]
pub struct IdempotencyKeyLayer {
    shared: Arc<Shared>,
}

/// What all services of a layer share.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    pub(super) policy: KeyPolicy,
    pub(super) dependency: Dependency,
    pub(super) observer: Option<Arc<dyn Observer>>,
}

impl IdempotencyKeyLayer {
    /// Gives keys by a policy.
    #[must_use]
    pub fn new(policy: KeyPolicy) -> Self {
        Self {
            shared: Arc::new(Shared {
                policy,
                dependency: Dependency::UNNAMED,
                observer: None,
            }),
        }
    }

    /// Names the dependency; needed where no layer around this one does.
    #[must_use]
    pub fn dependency(mut self, dependency: impl Into<Dependency>) -> Self {
        Arc::make_mut(&mut self.shared).dependency = dependency.into();
        self
    }

    /// Reports what happens to an observer.
    #[must_use]
    pub fn observer(self, observer: Arc<dyn Observer>) -> Self {
        self.observed(Some(observer))
    }

    pub(crate) fn observed(mut self, observer: Option<Arc<dyn Observer>>) -> Self {
        Arc::make_mut(&mut self.shared).observer = observer;
        self
    }
}

impl<S> Layer<S> for IdempotencyKeyLayer {
    type Service = IdempotencyKey<S>;

    fn layer(&self, inner: S) -> IdempotencyKey<S> {
        IdempotencyKey::new(inner, Arc::clone(&self.shared))
    }
}
