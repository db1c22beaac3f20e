//! Shows policies from a file: a client by its dependency's name, a value from the environment, and a file that is refused.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::sync::atomic::{AtomicU32, Ordering};

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use mamparo::policy::{Format, Policies};
use mamparo::retry::Ending;
use mamparo_core::BoxError;
use tower::ServiceExt;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/policies.toml");

/// Four attempts of a second do not fit two seconds.
const CONTRADICTION: &str = r#"
[dependency.catalog]
deadline = "2s"
retry = { max_attempts = 4, attempt_timeout = "1s" }
"#;

/// Fails twice, then answers.
async fn book() -> (StatusCode, &'static str) {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    match CALLS.fetch_add(1, Ordering::Relaxed) {
        0 | 1 => (StatusCode::SERVICE_UNAVAILABLE, "busy"),
        _ => (StatusCode::OK, "a book"),
    }
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/book/1", listener.local_addr()?);
    let server = axum::serve(listener, Router::new().route("/book/{id}", get(book)));
    tokio::spawn(server.into_future());

    // `Policies::load([FILE])` does the same with the program's own environment.
    let variable = ("MAMPARO__CATALOG__RETRY__MAX_ATTEMPTS", "3");
    let environment = [(variable.0.to_owned(), variable.1.to_owned())];
    let loader = Policies::loader().file(FILE).environment(environment);
    let policies = loader.load()?;
    let catalog = policies.dependency("catalog")?;
    println!("{}", catalog.describe());

    let client = mamparo::client::reqwest(reqwest::Client::builder(), &catalog.http()?)?;
    let request = http::Request::get(url).body(reqwest::Body::default())?;
    let answer = client.oneshot(request).await?;
    let attempts = Ending::of(&answer).map_or(1, Ending::attempts);
    println!("{} after {attempts} attempts\n", answer.status());
    assert_eq!(attempts, 3);

    let greedy = Policies::loader().text("greedy.toml", CONTRADICTION, Format::Toml);
    if let Err(refused) = greedy.load() {
        println!("{refused}");
    }
    Ok(())
}
