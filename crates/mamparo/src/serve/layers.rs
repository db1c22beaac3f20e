//! The layers of a server, and their order.

use std::sync::Arc;

use mamparo_core::grpc::Grpc;
use mamparo_core::http::{Http, QuotaPolicy};
use mamparo_core::shard::Spread;
use mamparo_core::{InvalidSetting, Observer};
use tower_layer::{Identity, Layer};

use super::{Closing, Readiness};
use crate::bulkhead::{Bulkhead, BulkheadLayer, BulkheadPolicy};
use crate::caller::CallerKey;
use crate::catch_panic::{CatchPanic, CatchPanicLayer};
use crate::load_shed::{AllEqual, LoadShed, LoadShedLayer, LoadShedPolicy};
use crate::rate_limit::{
    LimitStore, RateLimit, RateLimitLayer, RateLimitPolicy, Replicas, ServerLimits,
};
use crate::rejection::{RejectionLayer, RejectionPolicy, RejectionService};
use crate::server_deadline::{ServerDeadline, ServerDeadlineLayer, ServerDeadlinePolicy};
use crate::wire::HttpWire;

/// The recommended layers around a server of gRPC's, such as tonic's.
#[must_use]
pub fn grpc() -> ServerLayers<Grpc> {
    ServerLayers::new(Grpc, HttpWire::grpc())
}

/// The recommended layers around a server of HTTP's, such as axum's.
///
/// A gRPC request is answered in gRPC's words here too, for a router that serves both.
///
/// ```
/// use axum::Router;
/// use axum::routing::get;
///
/// let routes: Router = Router::new()
///     .route("/", get(async || "fine"))
///     .layer(mamparo::serve::http());
/// # let _ = routes;
/// ```
#[must_use]
pub fn http() -> ServerLayers<Http> {
    ServerLayers::new(Http::default(), HttpWire::default())
}

/// The recommended layers around a server; see the [module](super).
///
/// `P` is the protocol, by which an answer is judged: [`Grpc`] or [`Http`]. `T` is the layer of telemetry, and `K` what keeps
/// idempotency keys: none of either, unless told otherwise.
#[derive(Clone, Debug)]
pub struct ServerLayers<P, T = Identity, K = Identity> {
    telemetry: T,
    readiness: Spread<Option<Readiness>>,
    rejection: RejectionLayer,
    deadline: ServerDeadlineLayer<HttpWire>,
    rate_limit: RateLimitLayer<CallerKey, ServerLimits>,
    load_shed: LoadShedLayer<P>,
    bulkhead: BulkheadLayer<P>,
    idempotency: K,
    protocol: P,
    observer: Option<Arc<dyn Observer>>,
}

impl<P: Clone> ServerLayers<P> {
    fn new(protocol: P, wire: HttpWire) -> Self {
        let no_limit = RateLimitLayer::server(RateLimitPolicy::off());
        Self {
            telemetry: Identity::new(),
            readiness: Spread::new(None),
            rejection: RejectionLayer::default(),
            deadline: ServerDeadlineLayer::with_wire(ServerDeadlinePolicy::default(), wire),
            rate_limit: no_limit.keyed(CallerKey::nothing()),
            load_shed: LoadShedLayer::new(LoadShedPolicy::off(), protocol.clone()),
            bulkhead: BulkheadLayer::new(BulkheadPolicy::off(), protocol.clone()),
            idempotency: Identity::new(),
            protocol,
            observer: None,
        }
    }
}

impl<P: Clone, T, K> ServerLayers<P, T, K> {
    /// Sets how long the server works on a request, whatever its caller asks for.
    #[must_use]
    pub fn deadline(mut self, policy: ServerDeadlinePolicy) -> Self {
        self.deadline = self.deadline.with_policy(policy);
        self
    }

    /// Sets how errors are answered.
    #[must_use]
    pub fn rejection(mut self, policy: RejectionPolicy) -> Self {
        self.rejection = self.rejection.with_policy(policy);
        self
    }

    /// Limits how often each caller may ask, or all of them together ([`CallerKey::nothing`]).
    ///
    /// Callers are told what is left, as `rate-limit`; see [`Self::rate_limit_told_as`].
    #[must_use]
    pub fn rate_limit(mut self, policy: RateLimitPolicy, key: CallerKey) -> Self {
        let limit = RateLimitLayer::server(policy).keyed(key);
        self.rate_limit = limit.observed(self.observer.clone());
        self
    }

    /// Keeps that rate limit in a store, so that several replicas share it; see [`RateLimitLayer::shared`].
    ///
    /// # Errors
    ///
    /// Refuses what [`RateLimitLayer::shared`] refuses.
    pub fn rate_limit_shared(
        mut self,
        store: impl LimitStore,
        replicas: Replicas,
    ) -> Result<Self, InvalidSetting> {
        self.rate_limit = self.rate_limit.shared(store, replicas)?;
        Ok(self)
    }

    /// Tells callers of the rate limit by another name, or by the legacy fields; none tells them nothing.
    #[must_use]
    pub fn rate_limit_told_as(mut self, quota: impl Into<Option<QuotaPolicy>>) -> Self {
        self.rate_limit = self.rate_limit.told_as(quota);
        self
    }

    /// Sheds requests while the load is too high.
    #[must_use]
    pub fn load_shed(mut self, policy: LoadShedPolicy) -> Self {
        self.load_shed = self.load_shed.with_policy(policy);
        self
    }

    /// Bounds how many requests run at once, and lets a few wait.
    #[must_use]
    pub fn bulkhead(mut self, policy: BulkheadPolicy) -> Self {
        let bulkhead = BulkheadLayer::new(policy, self.protocol.clone());
        self.bulkhead = bulkhead.observed(self.observer.clone());
        self
    }

    /// Lets connections close one by one while the server stops, instead of all at once: see [`Graceful`](super::Graceful).
    #[must_use]
    pub fn readiness(mut self, readiness: Readiness) -> Self {
        self.readiness = Spread::new(Some(readiness));
        self
    }

    /// Records requests with a layer of telemetry, which sees what the caller gets.
    #[must_use]
    pub fn telemetry<L>(self, layer: L) -> ServerLayers<P, L, K> {
        ServerLayers {
            telemetry: layer,
            readiness: self.readiness,
            rejection: self.rejection,
            deadline: self.deadline,
            rate_limit: self.rate_limit,
            load_shed: self.load_shed,
            bulkhead: self.bulkhead,
            idempotency: self.idempotency,
            protocol: self.protocol,
            observer: self.observer,
        }
    }

    /// Recognises requests by their keys: what was refused further out has used none.
    #[must_use]
    pub fn idempotency<L>(self, layer: L) -> ServerLayers<P, T, L> {
        ServerLayers {
            telemetry: self.telemetry,
            readiness: self.readiness,
            rejection: self.rejection,
            deadline: self.deadline,
            rate_limit: self.rate_limit,
            load_shed: self.load_shed,
            bulkhead: self.bulkhead,
            idempotency: layer,
            protocol: self.protocol,
            observer: self.observer,
        }
    }

    /// Reports what happens to an observer.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.rejection = self.rejection.observer(Arc::clone(&observer));
        self.deadline = self.deadline.observer(Arc::clone(&observer));
        self.rate_limit = self.rate_limit.observer(Arc::clone(&observer));
        self.load_shed = self.load_shed.observer(Arc::clone(&observer));
        self.bulkhead = self.bulkhead.observer(Arc::clone(&observer));
        self.observer = Some(observer);
        self
    }
}

/// What stands inside of the answer to errors: a deadline, and what refuses.
type Guarded<S, P> = ServerDeadline<
    RateLimit<LoadShed<Bulkhead<S, P>, P, AllEqual>, CallerKey, ServerLimits>,
    HttpWire,
>;

/// A handler with all layers but telemetry around it.
type Answering<S, P> = Closing<RejectionService<Guarded<S, P>>>;

impl<S, P, T, K> Layer<S> for ServerLayers<P, T, K>
where
    P: Clone,
    K: Layer<CatchPanic<S>>,
    T: Layer<Answering<K::Service, P>>,
{
    type Service = T::Service;

    // Innermost first.
    fn layer(&self, handler: S) -> Self::Service {
        // A bug in a handler is one request's, and an error to all that follow.
        let service = CatchPanicLayer::new().layer(handler);
        // A key that was begun belongs to a request that runs: nothing further in refuses it.
        let service = self.idempotency.layer(service);
        // Opt-in: a place in which to work; a few wait for one.
        let service = self.bulkhead.layer(service);
        // Opt-in: what is shed has cost nothing yet, and has waited nowhere.
        let service = self.load_shed.layer(service);
        // Opt-in: one caller's excess is no load at all.
        let service = self.rate_limit.layer(service);
        // Its clock starts before any wait.
        let service = self.deadline.layer(service);
        // Turns every error into an answer: nobody further out would.
        let service = self.rejection.layer(service);
        // Of answers and refusals alike, the last on a connection says so.
        let service = Closing::new(service, self.readiness.clone());
        // Sees what the caller gets.
        self.telemetry.layer(service)
    }
}
