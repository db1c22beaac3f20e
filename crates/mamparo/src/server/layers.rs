//! The layers of a server, and their order.

use std::sync::Arc;

use mamparo_core::Observer;
use mamparo_core::grpc::Grpc;
use mamparo_core::http::Http;
use tower_layer::Layer;

use crate::load_shed::{AllEqual, LoadShed, LoadShedLayer, LoadShedPolicy};
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
///     .layer(mamparo::server::http());
/// # let _ = routes;
/// ```
#[must_use]
pub fn http() -> ServerLayers<Http> {
    ServerLayers::new(Http::default(), HttpWire::default())
}

/// The recommended layers around a server; see the [module](super).
///
/// `P` is the protocol, by which an answer is judged: [`Grpc`] or [`Http`].
#[derive(Clone, Debug)]
pub struct ServerLayers<P> {
    rejection: RejectionLayer,
    deadline: ServerDeadlineLayer<HttpWire>,
    load_shed: LoadShedLayer<P>,
}

impl<P: Clone> ServerLayers<P> {
    fn new(protocol: P, wire: HttpWire) -> Self {
        Self {
            rejection: RejectionLayer::default(),
            deadline: ServerDeadlineLayer::with_wire(ServerDeadlinePolicy::default(), wire),
            load_shed: LoadShedLayer::new(LoadShedPolicy::off(), protocol),
        }
    }

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

    /// Sheds requests while the load is too high.
    #[must_use]
    pub fn load_shed(mut self, policy: LoadShedPolicy) -> Self {
        self.load_shed = self.load_shed.with_policy(policy);
        self
    }

    /// Reports what happens to an observer.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.rejection = self.rejection.observer(Arc::clone(&observer));
        self.deadline = self.deadline.observer(Arc::clone(&observer));
        self.load_shed = self.load_shed.observer(observer);
        self
    }
}

impl<S, P: Clone> Layer<S> for ServerLayers<P> {
    type Service = RejectionService<ServerDeadline<LoadShed<S, P, AllEqual>, HttpWire>>;

    // Innermost first.
    fn layer(&self, handler: S) -> Self::Service {
        // Opt-in: what is shed has cost nothing yet.
        let service = self.load_shed.layer(handler);
        // Its clock starts before any wait.
        let service = self.deadline.layer(service);
        // Turns every error into an answer: nobody further out would.
        self.rejection.layer(service)
    }
}
