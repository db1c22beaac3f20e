//! The shop: an axum service behind the server layers, whose handlers call what they need through client stacks.
//!
//! No handler says a word about deadlines: what it calls inherits what is left of its caller's.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Router, middleware};
use bytes::Bytes;
use http::{HeaderMap, Method};
use mamparo::idempotency_key::KeyPolicy;
use mamparo::rejection::{RejectionLayer, RejectionPolicy};
use mamparo::server_deadline::{ServerDeadlineLayer, ServerDeadlinePolicy};
use mamparo_core::BoxError;
use mamparo_core::http::IDEMPOTENCY_KEY;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tower::ServiceBuilder;

use super::cast::Cast;
use super::client::{
    Hyper, Reqwest, Tonic, request, rpc_stack, send, stack, via_hyper, via_reqwest, via_tonic,
};
use super::notes::{BLOCKING, Notes, QUOTES};
use super::pricing::{Item, PricesClient};
use super::traced::traced;
use crate::telemetry::Pipeline;

/// How long the shop looks for stock before it charges an order.
pub(super) const STOCK_TAKES: Duration = Duration::from_millis(200);

/// How long the handler blocks that should not.
const BLOCKS: Duration = Duration::from_millis(250);

/// How long the shop waits for anything, unless its caller has less time left.
const WAITS: Duration = Duration::from_secs(10);

/// How long it waits for one answer of a dependency that is not slow.
const ATTEMPT: Duration = Duration::from_secs(2);

/// How long it waits for one of the reviews, and for all of a page's attempts at them.
const REVIEWS_ATTEMPT: Duration = Duration::from_millis(250);
const REVIEWS_WITHIN: Duration = Duration::from_millis(450);

/// The running shop; it stops when it is dropped.
#[derive(Debug)]
pub(super) struct Shop {
    address: SocketAddr,
    serving: JoinHandle<std::io::Result<()>>,
}

/// What the handlers have.
#[derive(Clone)]
struct Clients {
    catalog: (Reqwest, String),
    reviews: (Hyper, String),
    psp: (Reqwest, String),
    pricing: PricesClient<Tonic>,
    notes: Notes,
}

impl Shop {
    pub(super) async fn open(
        telemetry: &Pipeline,
        cast: &Cast,
        notes: &Notes,
    ) -> Result<Self, BoxError> {
        let clients = clients(telemetry, cast, notes)?;
        let observer = telemetry.server_observer();
        let deadline = ServerDeadlineLayer::http(ServerDeadlinePolicy::default());
        let layers = ServiceBuilder::new()
            .layer(RejectionLayer::default().observer(Arc::clone(&observer)))
            .layer(deadline.observer(observer));
        let traces = (telemetry.tracer(), notes.clone());
        let routes = Router::new()
            .route("/pages/{item}", get(page))
            .route("/orders", post(order))
            .route(QUOTES, get(quote))
            .route("/forever", get(forever))
            .route(BLOCKING, get(blocking))
            .with_state(clients)
            .layer(layers)
            .layer(middleware::from_fn_with_state(traces, traced));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let serving = tokio::spawn(axum::serve(listener, routes).into_future());
        Ok(Self { address, serving })
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn clients(telemetry: &Pipeline, cast: &Cast, notes: &Notes) -> Result<Clients, BoxError> {
    let catalog = stack(telemetry, "catalog", WAITS, ATTEMPT)?;
    let reviews = stack(telemetry, "reviews", REVIEWS_WITHIN, REVIEWS_ATTEMPT)?;
    let psp = stack(telemetry, "psp", WAITS, ATTEMPT)?;
    let psp = psp.idempotency_key(KeyPolicy::default());
    let pricing = rpc_stack(telemetry, "pricing", WAITS, ATTEMPT)?;
    let pricing = via_tonic(&pricing, cast.pricing.origin()?);
    Ok(Clients {
        pricing: PricesClient::new(pricing),
        catalog: (via_reqwest(&catalog)?, cast.catalog.url("/items")),
        reviews: (via_hyper(&reviews), cast.reviews.url("/reviews")),
        psp: (via_reqwest(&psp)?, cast.psp.url("/charges")),
        notes: notes.clone(),
    })
}

/// An item with its reviews. It is no page without the item, but one without the reviews.
async fn page(State(shop): State<Clients>, Path(item): Path<u32>) -> Response {
    let (catalog, url) = shop.catalog;
    let item_of = async {
        let request = request(Method::GET, &format!("{url}/{item}"), None)?;
        send(catalog, request).await
    };
    let (reviews, url) = shop.reviews;
    let reviews_of = async {
        let request = request(Method::GET, &format!("{url}/{item}"), None)?;
        send(reviews, request).await
    };
    let (item, reviews) = tokio::join!(item_of, reviews_of);
    let mut answer = match item {
        Ok(answer) => answer,
        Err(error) => return refused(&error),
    };
    if answer.status().is_success() {
        let reviews = reviews.ok().filter(|answer| answer.status().is_success());
        let reviews = reviews.map_or(Bytes::from_static(b"no reviews\n"), |answer| {
            answer.into_body()
        });
        *answer.body_mut() = [answer.body().as_ref(), reviews.as_ref()].concat().into();
        answer.headers_mut().remove(http::header::CONTENT_LENGTH);
    }
    answer.map(Body::from).into_response()
}

/// Looks for stock, then charges with the order's own key.
async fn order(State(shop): State<Clients>, headers: HeaderMap) -> Response {
    tokio::time::sleep(STOCK_TAKES).await;
    let key = headers
        .get(IDEMPOTENCY_KEY)
        .and_then(|key| key.to_str().ok());
    let (psp, url) = shop.psp;
    let charged = async { send(psp, request(Method::POST, &url, key)?).await };
    match charged.await {
        Ok(answer) => answer.map(Body::from).into_response(),
        Err(error) => refused(&error),
    }
}

/// Asks over gRPC what an item costs; the generated client knows nothing of the stack that it stands on.
async fn quote(State(mut shop): State<Clients>, Path(item): Path<u32>) -> Response {
    match shop.pricing.get(Item { number: item }).await {
        Ok(price) => format!("{} cents\n", price.get_ref().cents).into_response(),
        Err(status) => refused(&status.into()),
    }
}

/// Never answers, and notes when it was stopped.
async fn forever(State(shop): State<Clients>) -> Response {
    struct Stops(Notes);
    impl Drop for Stops {
        fn drop(&mut self) {
            self.0.stopped();
        }
    }
    let _stops = Stops(shop.notes);
    std::future::pending().await
}

/// Blocks its thread, as no handler should: nobody can stop it.
async fn blocking() -> &'static str {
    std::thread::sleep(BLOCKS);
    "too late"
}

fn refused(error: &BoxError) -> Response {
    let answer = RejectionPolicy::default().answer(&**error);
    answer.map(Body::from).into_response()
}
