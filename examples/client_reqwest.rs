//! Shows the recommended stack around reqwest: a flaky peer is asked again, a deadline bounds it all.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use mamparo::attempt_timeout::AttemptPolicy;
use mamparo::deadline::DeadlinePolicy;
use mamparo::retry::{Ending, RetryPolicy};
use mamparo::stack::Stack;
use mamparo_core::BoxError;
use tower::ServiceExt;

/// Fails twice, then answers with the time that it was given.
async fn book(headers: HeaderMap) -> (StatusCode, String) {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    if CALLS.fetch_add(1, Ordering::Relaxed) < 2 {
        return (StatusCode::SERVICE_UNAVAILABLE, "busy".into());
    }
    let remaining = headers["x-request-timeout-ms"].to_str().unwrap_or_default();
    (StatusCode::OK, format!("answered with {remaining} ms left"))
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/book/1", listener.local_addr()?);
    let server = axum::serve(listener, Router::new().route("/book/{id}", get(book)));
    tokio::spawn(server.into_future());

    let stack = Stack::http("catalog")
        .deadline(DeadlinePolicy::within(Duration::from_secs(2))?)
        .retry(RetryPolicy::builder().max_attempts(3).build()?)
        .attempt(
            AttemptPolicy::builder()
                .timeout(Duration::from_millis(500))
                .build()?,
        );
    let catalog = mamparo::client::reqwest(reqwest::Client::builder(), &stack)?;

    let request = http::Request::get(url).body(reqwest::Body::default())?;
    let answer = catalog.oneshot(request).await?;
    let attempts = Ending::of(&answer).map_or(1, Ending::attempts);
    println!("{} after {attempts} attempts", answer.status());
    assert_eq!(attempts, 3);

    // Back to reqwest's own type, for its methods; the deadline still binds the body.
    let answer = reqwest::Response::from(answer.map(reqwest::Body::wrap));
    println!("{}", answer.text().await?);
    Ok(())
}
