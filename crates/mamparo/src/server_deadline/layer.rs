//! Settings and shared state of a server's deadline.

use std::sync::Arc;

use mamparo_core::Observer;
use mamparo_core::shard::Spread;
use tower_layer::Layer;

use super::{ServerDeadline, ServerDeadlinePolicy};
use crate::wire::codec::Skew;
use crate::wire::{HttpWire, NoWire};

/// Bounds a handler and its response's body by the caller's deadline; see the [module](super).
///
/// `W` says where the protocol has a place for a deadline: [`HttpWire`], which accepts `x-request-timeout-ms` and
/// `grpc-timeout` unless told otherwise, or [`NoWire`].
#[derive(Clone, Debug)]
pub struct ServerDeadlineLayer<W = HttpWire> {
    shared: Spread<Shared<W>>,
}

/// What all services of a layer share.
#[derive(Clone, Debug)]
pub(super) struct Shared<W> {
    pub(super) policy: ServerDeadlinePolicy,
    pub(super) wire: W,
    /// One rule for all routes: it counts the requests that it rejects.
    pub(super) skew: Arc<Skew>,
    pub(super) observer: Option<Arc<dyn Observer>>,
}

impl ServerDeadlineLayer<NoWire> {
    /// Bounds the handler of any service by the server's own limit.
    #[must_use]
    pub fn new(policy: ServerDeadlinePolicy) -> Self {
        Self::with_wire(policy, NoWire)
    }
}

impl ServerDeadlineLayer<HttpWire> {
    /// Bounds the handler of HTTP requests, the response's body included.
    #[must_use]
    pub fn http(policy: ServerDeadlinePolicy) -> Self {
        Self::with_wire(policy, HttpWire::default())
    }
}

impl<W: Clone> ServerDeadlineLayer<W> {
    /// Bounds the handler of a protocol's requests, or of HTTP with other headers.
    ///
    /// ```
    /// use mamparo::server_deadline::{ServerDeadlineLayer, ServerDeadlinePolicy};
    /// use mamparo::wire::{HttpWire, codec::DeadlineHeader};
    ///
    /// let wire = HttpWire::default().accepts(DeadlineHeader::connect_timeout_ms());
    /// let layer = ServerDeadlineLayer::with_wire(ServerDeadlinePolicy::default(), wire);
    /// # let _ = layer;
    /// ```
    #[must_use]
    pub fn with_wire(policy: ServerDeadlinePolicy, wire: W) -> Self {
        Self {
            shared: Spread::new(Shared {
                policy,
                wire,
                skew: Arc::default(),
                observer: None,
            }),
        }
    }

    /// Sets how far an absolute deadline that has passed is believed.
    #[must_use]
    pub fn skew(mut self, skew: Skew) -> Self {
        self.shared.change(|shared| shared.skew = Arc::new(skew));
        self
    }

    pub(crate) fn with_policy(mut self, policy: ServerDeadlinePolicy) -> Self {
        self.shared.change(|shared| shared.policy = policy);
        self
    }

    /// Reports what happens to an observer.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.shared
            .change(|shared| shared.observer = Some(observer));
        self
    }
}

impl<S, W: Clone> Layer<S> for ServerDeadlineLayer<W> {
    type Service = ServerDeadline<S, W>;

    fn layer(&self, inner: S) -> ServerDeadline<S, W> {
        ServerDeadline::new(inner, self.shared.clone())
    }
}
