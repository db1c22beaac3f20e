//! The settings of deferring, and what all services of a layer share.

use std::sync::Arc;

use tower_layer::Layer;

use super::config::DeferBuilder;
use super::{Defer, DeferKeys, DeferPolicy};
use crate::engine::Engine;
use crate::machine::Label;
use crate::web::HttpSender;

/// Turns "not now" into a row, around any HTTP client stack; see the [module](super).
#[derive(Clone, Debug)]
pub struct DeferLayer {
    shared: Arc<Shared>,
}

/// What all services of a layer share.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    pub(super) engine: Engine,
    pub(super) settings: DeferBuilder,
    pub(super) dependency: Option<Label>,
}

impl DeferLayer {
    /// Defers into an engine, which need not run in this process.
    #[must_use]
    pub fn new(engine: Engine, policy: DeferPolicy) -> Self {
        let shared = Shared {
            engine,
            settings: policy.settings,
            dependency: None,
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Names the dependency: what the engine asks its breaker about, and a part of the ids that come of callers' keys.
    #[must_use]
    pub fn dependency(mut self, dependency: impl Into<Label>) -> Self {
        Arc::make_mut(&mut self.shared).dependency = Some(dependency.into());
        self
    }

    /// Makes what the engine sends with: through a stack, judged and keyed as this layer judges and keys.
    ///
    /// Give it the stack that the layer is put around, and the engine what it returns: [`Engine::run`]. `B` is the body that the stack
    /// takes.
    #[must_use]
    pub fn sender<C, B>(&self, client: C) -> HttpSender<C, B> {
        let Shared {
            engine, settings, ..
        } = &*self.shared;
        let sender = HttpSender::new(client, settings.judge.clone());
        let sender = sender.shared_clock(Arc::clone(engine.runner().clock()));
        match settings.keys {
            DeferKeys::Bare => sender.bare_keys(),
            DeferKeys::Quoted | DeferKeys::Callers => sender,
        }
    }
}

impl<S> Layer<S> for DeferLayer {
    type Service = Defer<S>;

    fn layer(&self, inner: S) -> Defer<S> {
        Defer::new(inner, Arc::clone(&self.shared))
    }
}
