//! Shows the window on a running program: a snapshot, a breaker's events, readiness, and an operator who forces it open.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::net::SocketAddr;

use axum::Router;
use mamparo::admin::Admin;
use mamparo::policy::Policies;
use mamparo_core::BoxError;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/policies.toml");

/// From `openssl rand -base64 24`; a program has it from where it has its other secrets.
const TOKEN: &str = "x7K2v9Qm0sYb4tNf1LrGzWd8HcPe5uJa";

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let policies = Policies::load([FILE])?;
    let admin = Admin::new(&policies).ready(["catalog"]).actions(TOKEN);
    let router = Router::new().nest("/admin", admin.router()?);
    // A port of its own, where only operators come.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let window = format!("http://{}/admin", listener.local_addr()?);
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(axum::serve(listener, service).into_future());

    let client = reqwest::Client::new();
    let catalog = format!("{window}/dependencies/catalog");
    println!("{}\n", client.get(&catalog).send().await?.text().await?);

    let mut events = client.get(format!("{window}/events")).send().await?;
    let _snapshot = events.chunk().await?;
    let force = format!("{catalog}/breaker/force-open");
    let refused = client.post(&force).send().await?;
    println!("without a token: {}", refused.status());
    let done = client.post(&force).bearer_auth(TOKEN).send().await?;
    println!("with it: {}", done.text().await?);
    if let Some(event) = events.chunk().await? {
        println!("{}", String::from_utf8_lossy(&event).trim());
    }

    let ready = client.get(format!("{window}/health/ready")).send().await?;
    println!("{}: {}", ready.status(), ready.text().await?);
    Ok(())
}
