//! The settings of a stack: one policy per dependency.

use std::sync::Arc;

use mamparo_core::http::Http;
use mamparo_core::{Dependency, Observer};
use tower_layer::Identity;

use crate::attempt_timeout::AttemptPolicy;
use crate::connect_timeout::ConnectTimeoutLayer;
use crate::deadline::DeadlinePolicy;
use crate::idempotency_key::KeyPolicy;
use crate::retry::RetryPolicy;
use crate::wire::HttpWire;

/// The recommended stack for one dependency; a tower `Layer`, see the [module](super).
///
/// A clone shares the retry's budget, which belongs to the dependency.
#[derive(Clone, Debug)]
pub struct Stack<O = Identity, A = Identity> {
    pub(super) dependency: Dependency,
    pub(super) deadline: DeadlinePolicy,
    pub(super) key: KeyPolicy,
    pub(super) retry: RetryPolicy,
    pub(super) attempt: AttemptPolicy,
    pub(super) connect: ConnectTimeoutLayer,
    pub(super) http: Http,
    pub(super) wire: HttpWire,
    pub(super) observer: Option<Arc<dyn Observer>>,
    pub(super) operation_telemetry: O,
    pub(super) attempt_telemetry: A,
}

impl Stack {
    /// Starts from the defaults for a dependency: 10 s for an operation, 3 attempts of 2 s, no keys.
    #[must_use]
    pub fn http(dependency: impl Into<Dependency>) -> Self {
        let dependency = dependency.into();
        Self {
            dependency,
            deadline: DeadlinePolicy::default(),
            key: KeyPolicy::off(),
            retry: RetryPolicy::default(),
            attempt: AttemptPolicy::default(),
            connect: ConnectTimeoutLayer::default().dependency(dependency),
            http: Http::default(),
            wire: HttpWire::default(),
            observer: None,
            operation_telemetry: Identity::new(),
            attempt_telemetry: Identity::new(),
        }
    }
}

impl<O, A> Stack<O, A> {
    /// Sets how long an operation may take; 10 s by default.
    #[must_use]
    pub fn deadline(mut self, policy: DeadlinePolicy) -> Self {
        self.deadline = policy;
        self
    }

    /// Gives unsafe requests an idempotency key; off by default, since the dependency must honour it.
    #[must_use]
    pub fn idempotency_key(mut self, policy: KeyPolicy) -> Self {
        self.key = policy;
        self
    }

    /// Sets when and how often a failed request is sent again; 3 attempts by default.
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// Sets how long one attempt may take, and its body may stall; 2 s and 10 s by default.
    #[must_use]
    pub fn attempt(mut self, policy: AttemptPolicy) -> Self {
        self.attempt = policy;
        self
    }

    /// Sets how long a connection may take; 1 s by default.
    #[must_use]
    pub fn connect_timeout(mut self, layer: ConnectTimeoutLayer) -> Self {
        self.connect = layer.dependency(self.dependency);
        self
    }

    /// Sets which answers are failures, and which may be sent again.
    #[must_use]
    pub fn classifier(mut self, http: Http) -> Self {
        self.http = http;
        self
    }

    /// Sets the headers that carry the deadline.
    #[must_use]
    pub fn wire(mut self, wire: HttpWire) -> Self {
        self.wire = wire;
        self
    }

    /// Reports what happens in every layer to an observer.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Adds the layers that record an operation and each of its attempts: those of `mamparo-telemetry`.
    #[must_use]
    pub fn telemetry<O2, A2>(self, operation: O2, attempt: A2) -> Stack<O2, A2> {
        Stack {
            dependency: self.dependency,
            deadline: self.deadline,
            key: self.key,
            retry: self.retry,
            attempt: self.attempt,
            connect: self.connect,
            http: self.http,
            wire: self.wire,
            observer: self.observer,
            operation_telemetry: operation,
            attempt_telemetry: attempt,
        }
    }

    /// Returns the layer that stands around the client's connector.
    #[must_use]
    pub const fn connect(&self) -> ConnectTimeoutLayer {
        self.connect
    }

    /// Returns the dependency.
    #[must_use]
    pub const fn dependency(&self) -> Dependency {
        self.dependency
    }
}
