//! Lets clients in: 5 s for all of it, 300 requests a minute for each, and what orders says is what they hear.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::routing::any;
use http::{Response, StatusCode};
use mamparo::problem::Problem;
use mamparo::serve::Readiness;
use mamparo_core::BoxError;

use crate::common::client::Dependency;
use crate::common::serve::{Server, layers};
use crate::common::settings::{Place, policies};

/// No order is longer.
const LARGEST_BODY: usize = 64 * 1024;

/// What of a request is meant for orders.
const FORWARDED: [&str; 2] = ["content-type", "idempotency-key"];

pub(super) async fn run(place: Place) -> Result<(), BoxError> {
    let server = Server::open(&place)?;
    let policies = policies(&place)?;
    let orders = Dependency::open(&policies, "orders")?;
    let readiness = Readiness::builder().build()?;
    let routes = Router::new()
        .route("/orders", any(forward))
        .route("/orders/{id}", any(forward))
        .with_state(orders)
        .layer(layers(policies.server().http(), &readiness));
    server.run(routes, readiness, async { Ok(()) }).await
}

async fn forward(
    State(orders): State<Dependency>,
    request: Request,
) -> Result<Response<Body>, Problem> {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, LARGEST_BODY).await;
    let body =
        body.map_err(|error| Problem::blank(StatusCode::PAYLOAD_TOO_LARGE).because(error))?;
    let mut forwarded = http::Request::builder().method(head.method).uri(head.uri);
    for name in FORWARDED {
        if let Some(value) = head.headers.get(name) {
            forwarded = forwarded.header(name, value);
        }
    }
    let answer = orders
        .send(forwarded.body(body).map_err(BoxError::from)?)
        .await?;
    Ok(answer.map(Body::new))
}
