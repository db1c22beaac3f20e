//! Shows the layers put together by hand in a `ServiceBuilder`, around hyper's client.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::time::Duration;

use axum::Router;
use axum::routing::get;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use mamparo::attempt_timeout::{AttemptPolicy, AttemptTimeoutLayer};
use mamparo::client::HyperTransport;
use mamparo::connect_timeout::ConnectTimeoutLayer;
use mamparo::deadline::{DeadlineLayer, DeadlinePolicy};
use mamparo::replay::ReplayBody;
use mamparo::retry::{RetryLayer, RetryPolicy};
use mamparo_core::{BoxError, Rejection};
use tower::{Layer, ServiceBuilder, ServiceExt};

async fn slow() -> &'static str {
    tokio::time::sleep(Duration::from_secs(5)).await;
    "too late"
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let routes = Router::new()
        .route("/", get(async || "in time"))
        .route("/slow", get(slow));
    tokio::spawn(axum::serve(listener, routes).into_future());

    let connector = ConnectTimeoutLayer::default().layer(HttpConnector::new());
    let client =
        Client::builder(TokioExecutor::new()).build::<_, ReplayBody<Full<Bytes>>>(connector);
    let deadline = DeadlinePolicy::within(Duration::from_millis(800))?;
    let attempt = AttemptPolicy::builder()
        .timeout(Duration::from_millis(300))
        .build()?;
    let catalog = ServiceBuilder::new()
        .layer(DeadlineLayer::http(deadline).dependency("catalog"))
        .layer(RetryLayer::http(RetryPolicy::default()))
        .layer(AttemptTimeoutLayer::http(attempt))
        .service(HyperTransport::new(client));

    let get =
        |path: &str| http::Request::get(format!("http://{address}{path}")).body(Full::default());
    let answer = catalog.clone().oneshot(get("/")?).await?;
    let body = answer.into_body().collect().await?.to_bytes();
    println!("{}", String::from_utf8_lossy(&body));

    let start = mamparo_core::clock::now();
    let Err(error) = catalog.oneshot(get("/slow")?).await else {
        return Err("the slow answer came in time".into());
    };
    println!("after {:?}: {error}", start.elapsed());
    assert!(Rejection::of(&*error).is_some_and(Rejection::sent));
    Ok(())
}
