//! Shows a charge whose answer is lost after the commit: one effect, two attempts, one answer.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::post;
use mamparo::attempt_timeout::AttemptPolicy;
use mamparo::idempotency_key::KeyPolicy;
use mamparo::retry::Ending;
use mamparo::stack::Stack;
use mamparo_core::BoxError;
use tower::ServiceExt;

type Charges = Arc<Mutex<HashMap<String, u32>>>;

/// Commits the charge once per key, and loses the first answer.
async fn charge(State(charges): State<Charges>, headers: HeaderMap) -> String {
    let key = headers["idempotency-key"]
        .to_str()
        .unwrap_or_default()
        .to_owned();
    let (first, number) = {
        let mut charges = charges.lock().unwrap_or_else(PoisonError::into_inner);
        let next = u32::try_from(charges.len()).unwrap_or(u32::MAX) + 1;
        let first = !charges.contains_key(&key);
        (first, *charges.entry(key).or_insert(next))
    };
    if first {
        std::future::pending::<()>().await;
    }
    format!("charge {number}")
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/charges", listener.local_addr()?);
    let charges = Charges::default();
    let routes = Router::new()
        .route("/charges", post(charge))
        .with_state(charges.clone());
    tokio::spawn(axum::serve(listener, routes).into_future());

    let stack = Stack::http("psp")
        .idempotency_key(KeyPolicy::default())
        .attempt(
            AttemptPolicy::builder()
                .timeout(Duration::from_millis(300))
                .build()?,
        );
    let psp = mamparo::client::reqwest(reqwest::Client::builder(), &stack)?;
    let request = http::Request::post(url).body(reqwest::Body::from("5 EUR"))?;
    let answer = psp.oneshot(request).await?;

    let attempts = Ending::of(&answer).map_or(1, Ending::attempts);
    let answer = reqwest::Response::from(answer.map(reqwest::Body::wrap));
    let effects = charges.lock().unwrap_or_else(PoisonError::into_inner).len();
    println!(
        "{} after {attempts} attempts, {effects} effect",
        answer.text().await?
    );
    assert_eq!((attempts, effects), (2, 1));
    Ok(())
}
