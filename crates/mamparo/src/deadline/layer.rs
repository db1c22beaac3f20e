//! Settings of a client's deadline.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use mamparo_core::shard::Spread;
use mamparo_core::{Dependency, Observer};
use tower_layer::Layer;

use super::{DeadlinePolicy, DeadlineService};
use crate::wire::{HttpWire, NoWire};

/// Bounds a whole operation, its answer's body included; see the [module](super).
///
/// `W` says where the protocol has a place for a deadline: [`HttpWire`] or [`NoWire`].
#[derive(Clone, Debug)]
pub struct DeadlineLayer<W> {
    shared: Spread<Shared<W>>,
}

/// What all services of a layer share.
#[derive(Clone, Debug)]
pub(super) struct Shared<W> {
    pub(super) policy: DeadlinePolicy,
    pub(super) wire: W,
    pub(super) dependency: Dependency,
    pub(super) observer: Option<Arc<dyn Observer>>,
    /// How many operations ended late, where somebody counts them.
    pub(super) late: Option<Arc<AtomicU64>>,
}

impl DeadlineLayer<NoWire> {
    /// Bounds the operations of any service.
    #[must_use]
    pub fn new(policy: DeadlinePolicy) -> Self {
        Self::with_wire(policy, NoWire)
    }
}

impl DeadlineLayer<HttpWire> {
    /// Bounds HTTP operations, the response's body included.
    #[must_use]
    pub fn http(policy: DeadlinePolicy) -> Self {
        Self::with_wire(policy, HttpWire::default())
    }
}

impl<W: Clone> DeadlineLayer<W> {
    /// Bounds operations of a protocol.
    #[must_use]
    pub fn with_wire(policy: DeadlinePolicy, wire: W) -> Self {
        Self {
            shared: Spread::new(Shared {
                policy,
                wire,
                dependency: Dependency::UNNAMED,
                observer: None,
                late: None,
            }),
        }
    }

    /// Names the dependency; needed where no layer around this one does.
    #[must_use]
    pub fn dependency(mut self, dependency: impl Into<Dependency>) -> Self {
        self.shared
            .change(|shared| shared.dependency = dependency.into());
        self
    }

    /// Reports what happens to an observer.
    #[must_use]
    pub fn observer(self, observer: Arc<dyn Observer>) -> Self {
        self.observed(Some(observer))
    }

    /// Counts what ended late.
    pub(crate) fn counting_late(mut self, late: Arc<AtomicU64>) -> Self {
        self.shared.change(|shared| shared.late = Some(late));
        self
    }

    pub(crate) fn observed(mut self, observer: Option<Arc<dyn Observer>>) -> Self {
        self.shared.change(|shared| shared.observer = observer);
        self
    }
}

impl<S, W: Clone> Layer<S> for DeadlineLayer<W> {
    type Service = DeadlineService<S, W>;

    fn layer(&self, inner: S) -> DeadlineService<S, W> {
        DeadlineService::new(inner, self.shared.clone())
    }
}
