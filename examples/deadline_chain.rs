//! Shows a deadline that travels: two axum services in a chain, less time at each hop, and a handler that stops with its caller.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::get;
use mamparo::client::ReqwestClient;
use mamparo::deadline::DeadlinePolicy;
use mamparo::rejection::{RejectionLayer, RejectionPolicy};
use mamparo::server_deadline::{ServerDeadlineLayer, ServerDeadlinePolicy};
use mamparo::stack::Stack;
use mamparo_core::{BoxError, CallContext, clock};
use tower::{ServiceBuilder, ServiceExt};

/// Serves routes within their callers' deadlines, and turns what we refuse or cut into responses.
async fn serve(routes: Router) -> Result<String, BoxError> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let layers = ServiceBuilder::new()
        .layer(RejectionLayer::default())
        .layer(ServerDeadlineLayer::http(ServerDeadlinePolicy::default()));
    tokio::spawn(axum::serve(listener, routes.layer(layers)).into_future());
    Ok(url)
}

fn left() -> Duration {
    let deadline = CallContext::current().deadline();
    deadline.map_or(Duration::MAX, |deadline| deadline.remaining(clock::now()))
}

#[derive(Clone)]
struct Stock {
    client: ReqwestClient,
    url: String,
}

/// Works for 700 ms, then asks the second service: its deadline is inherited, with no code here.
async fn order(State(stock): State<Stock>) -> axum::response::Response {
    println!("first hop:  {:?} left", left());
    tokio::time::sleep(Duration::from_millis(700)).await;
    let request = http::Request::get(&stock.url).body(reqwest::Body::default());
    let sent = stock.client.oneshot(request.unwrap_or_default()).await;
    match sent {
        Ok(answer) => answer.map(axum::body::Body::new),
        Err(error) => RejectionPolicy::default()
            .answer(&*error)
            .map(axum::body::Body::from),
    }
    .into_response()
}

async fn slow_stock() -> &'static str {
    println!("second hop: {:?} left", left());
    assert!(left() <= Duration::from_millis(1300));
    tokio::time::sleep(Duration::from_secs(60)).await;
    "never said"
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let url = serve(Router::new().route("/", get(slow_stock))).await?;
    let client = mamparo::client::reqwest(reqwest::Client::builder(), &Stack::http("stock"))?;
    let orders = Router::new()
        .route("/", get(order))
        .with_state(Stock { client, url });
    let url = serve(orders).await?;

    let stack = Stack::http("orders").deadline(DeadlinePolicy::within(Duration::from_secs(2))?);
    let stack = stack.attempt(
        mamparo::attempt_timeout::AttemptPolicy::builder()
            .no_timeout()
            .build()?,
    );
    let orders = mamparo::client::reqwest(reqwest::Client::builder(), &stack)?;
    let start = clock::now();
    let sent = orders
        .oneshot(http::Request::get(url).body(reqwest::Body::default())?)
        .await;
    let told = match sent {
        Ok(answer) => answer.status(),
        Err(_) => StatusCode::GATEWAY_TIMEOUT,
    };
    println!("caller:     {told} after {:?}", start.elapsed());
    assert!(start.elapsed() < Duration::from_millis(2_100));
    Ok(())
}
