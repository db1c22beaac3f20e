//! Settings of an attempt's limit.

use std::sync::Arc;

use mamparo_core::shard::Spread;
use mamparo_core::{CallContext, Dependency, Observer};
use tower_layer::Layer;

use super::{AttemptPolicy, AttemptTimeout};
use crate::wire::{HttpWire, NoWire};

/// Bounds one attempt, and tells the next service what remains; see the [module](super).
///
/// `W` says where the protocol has a place for a deadline: [`HttpWire`] or [`NoWire`].
#[derive(Clone, Debug)]
pub struct AttemptTimeoutLayer<W> {
    shared: Spread<Shared<W>>,
}

/// What all services of a layer share.
#[derive(Clone, Debug)]
pub(super) struct Shared<W> {
    pub(super) policy: AttemptPolicy,
    pub(super) wire: W,
    pub(super) dependency: Dependency,
    pub(super) observer: Option<Arc<dyn Observer>>,
}

impl<W> Shared<W> {
    /// The dependency's name: this layer's own, or else the operation's.
    pub(super) fn name(&self, context: &CallContext) -> Dependency {
        if self.dependency == Dependency::UNNAMED {
            context.dependency()
        } else {
            self.dependency
        }
    }
}

impl AttemptTimeoutLayer<NoWire> {
    /// Bounds the attempts of any service.
    #[must_use]
    pub fn new(policy: AttemptPolicy) -> Self {
        Self::with_wire(policy, NoWire)
    }
}

impl AttemptTimeoutLayer<HttpWire> {
    /// Bounds HTTP attempts, and writes the deadline's header.
    #[must_use]
    pub fn http(policy: AttemptPolicy) -> Self {
        Self::with_wire(policy, HttpWire::default())
    }
}

impl<W: Clone> AttemptTimeoutLayer<W> {
    /// Bounds attempts of a protocol.
    #[must_use]
    pub fn with_wire(policy: AttemptPolicy, wire: W) -> Self {
        Self {
            shared: Spread::new(Shared {
                policy,
                wire,
                dependency: Dependency::UNNAMED,
                observer: None,
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

    pub(crate) fn observed(mut self, observer: Option<Arc<dyn Observer>>) -> Self {
        self.shared.change(|shared| shared.observer = observer);
        self
    }
}

impl<S, W: Clone> Layer<S> for AttemptTimeoutLayer<W> {
    type Service = AttemptTimeout<S, W>;

    fn layer(&self, inner: S) -> AttemptTimeout<S, W> {
        AttemptTimeout::new(inner, self.shared.clone())
    }
}
