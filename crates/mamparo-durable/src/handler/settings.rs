//! What a runner works with.

use std::sync::{Arc, Mutex};

use mamparo_core::clock::{SystemClock, WallClock};

use super::{Listener, Runner};
use crate::backend::Backend;
use crate::policy::{Adaptive, Policies};

/// Settings of a [`Runner`].
#[derive(Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct RunnerBuilder {
    backend: Backend,
    policies: Policies,
    adaptive: Option<Adaptive>,
    clock: Arc<dyn WallClock>,
    listener: Arc<dyn Listener>,
}

impl RunnerBuilder {
    pub(super) fn new(backend: Backend) -> Self {
        Self {
            backend,
            policies: Policies::default(),
            adaptive: None,
            clock: Arc::new(SystemClock),
            listener: Arc::new(()),
        }
    }

    /// Sets how long and how often is waited; the default policy for all by default.
    pub fn policies(mut self, policies: Policies) -> Self {
        self.policies = policies;
        self
    }

    /// Stretches the waits after refusals as retries succeed or not; off by default.
    pub fn adaptive(mut self, adaptive: Adaptive) -> Self {
        self.adaptive = Some(adaptive);
        self
    }

    /// Sets the wall clock; the machine's own by default.
    pub fn wall_clock(mut self, clock: impl WallClock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Sets who hears what happens; nobody by default.
    pub fn listener(mut self, listener: Arc<dyn Listener>) -> Self {
        self.listener = listener;
        self
    }

    /// Returns the runner.
    #[must_use]
    pub fn build(self) -> Runner {
        Runner {
            backend: self.backend,
            policies: Arc::new(self.policies),
            adaptive: self.adaptive.map(|adaptive| Arc::new(Mutex::new(adaptive))),
            clock: self.clock,
            listener: self.listener,
        }
    }
}
