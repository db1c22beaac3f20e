//! Shows a server's life: it waits for what it needs, tells callers what is left and whose fault it is, and stops when told to.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::future::ready;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use http::Request;
use hyper_util::client::legacy::connect::HttpConnector;
use mamparo::caller::{CallerKey, TrustedProxies};
use mamparo::client::HyperClient;
use mamparo::problem::Problem;
use mamparo::rate_limit::RateLimitPolicy;
use mamparo::serve::{self, Graceful, Readiness, StopPolicy};
use mamparo::stack::Stack;
use mamparo_core::BoxError;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tower::ServiceExt;

type Psp = HyperClient<HttpConnector, String>;

/// Nobody listens there: any error of the call becomes an answer that names the dependency.
async fn charge(State(psp): State<Psp>) -> Result<&'static str, Problem> {
    let request = Request::post("http://127.0.0.1:1/charges").body(String::new());
    let answer = psp.oneshot(request.map_err(BoxError::from)?).await?;
    Problem::check("psp", answer)?;
    Ok("charged")
}

/// A database that is there at the third look.
fn database() -> Result<(), BoxError> {
    static LOOKS: AtomicU32 = AtomicU32::new(0);
    match LOOKS.fetch_add(1, Ordering::Relaxed) {
        0 | 1 => Err("connection refused".into()),
        _ => Ok(()),
    }
}

async fn show(client: &reqwest::Client, address: SocketAddr, path: &str) -> Result<u16, BoxError> {
    let url = format!("http://{address}{path}");
    let answer = client.get(url).send().await?;
    let status = answer.status().as_u16();
    let header = |name: &str| {
        let value = answer.headers().get(name)?;
        value
            .to_str()
            .ok()
            .map(|value| format!("  {name}: {value}"))
    };
    let names = ["ratelimit", "retry-after", "x-mamparo-retry"];
    let told: String = names.into_iter().filter_map(header).collect();
    println!("{path:<14} {status}{told}");
    if status >= 400 {
        println!("               {}", answer.text().await?);
    }
    Ok(status)
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let readiness = Readiness::builder()
        .check("database", || ready(database()))
        .build()?;
    let limit = RateLimitPolicy::per(Duration::from_secs(60), 2).build()?;
    let layers = serve::http()
        .rate_limit(limit, CallerKey::address(TrustedProxies::none()))
        .readiness(readiness.clone());
    let routes = Router::new()
        .route("/charge", get(charge))
        .with_state(mamparo::client::hyper(
            HttpConnector::new(),
            &Stack::http("psp"),
        ))
        .layer(layers)
        .route_service("/health/ready", readiness.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let service = routes.into_make_service_with_connect_info::<SocketAddr>();

    // In earnest `serve::termination()?`, which hears SIGTERM and ctrl-c.
    let (stop, told) = oneshot::channel::<()>();
    let policy = StopPolicy::builder()
        .grace(Duration::from_secs(5))
        .build()?;
    let graceful =
        Graceful::new(readiness, policy).flush(async || println!("telemetry is flushed"));
    let server = tokio::spawn(graceful.run(async { drop(told.await) }, |stop| {
        let serving = axum::serve(listener, service);
        serving.with_graceful_shutdown(stop)
    }));

    let client = reqwest::Client::new();
    while show(&client, address, "/health/ready").await? != 200 {
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
    for status in [503, 503, 429] {
        assert_eq!(show(&client, address, "/charge").await?, status);
    }
    drop(stop);
    println!("stopped: {:?}", server.await??);
    Ok(())
}
