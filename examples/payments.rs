//! Shows a server that pays once for each key, whatever is lost: axum and SQLite, payment and answer in one transaction.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::path::Path;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use axum::routing::post;
use axum::{Extension, Router};
use bytes::Bytes;
use mamparo::attempt_timeout::AttemptPolicy;
use mamparo::idempotency::{IdempotencyLayer, IdempotencyPolicy, IdempotencyTx, OnExpiry};
use mamparo::idempotency_key::KeyPolicy;
use mamparo::retry::Ending;
use mamparo::stack::Stack;
use mamparo_core::BoxError;
use mamparo_sqlite::{SqliteIdempotency, TransactionError, complete};
use tower::ServiceExt;

/// Pays, slowly: longer than its caller waits.
async fn pay(
    State(store): State<SqliteIdempotency>,
    Extension(key): Extension<IdempotencyTx>,
    cents: String,
) -> Result<Response<Body>, StatusCode> {
    tokio::time::sleep(Duration::from_millis(400)).await;
    let paid = store.transaction(move |tx| {
        let cents: i64 = cents.parse().map_err(TransactionError::work)?;
        tx.execute("INSERT INTO payments (cents) VALUES (?1)", [cents])?;
        let text = format!("payment {} of {cents} cents", tx.last_insert_rowid());
        let answer = Response::new(Bytes::from(text));
        // Committed together with the payment, or not at all.
        complete(tx, &key, &answer)?;
        Ok::<_, TransactionError>(answer)
    });
    let paid = paid.await.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok(paid.map(Body::from))
}

async fn server(file: &Path) -> Result<(Router, SqliteIdempotency), BoxError> {
    let store = SqliteIdempotency::open(file)?;
    let table = "CREATE TABLE IF NOT EXISTS payments (cents INTEGER NOT NULL)";
    store
        .transaction(move |tx| tx.execute_batch(table).map_err(TransactionError::from))
        .await?;
    let policy = IdempotencyPolicy::for_all_callers()
        .required()
        // Right, since payment and key are one transaction: a run that broke off has done nothing.
        .on_expiry(OnExpiry::RunAgain)
        .build()?;
    println!("{}\n", policy.describe());
    let keys = IdempotencyLayer::new(store.clone(), policy);
    let layers = mamparo::serve::http().idempotency(keys);
    let routes = Router::new().route("/payments", post(pay));
    Ok((routes.with_state(store.clone()).layer(layers), store))
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let folder = tempfile::tempdir()?;
    let (routes, store) = server(&folder.path().join("payments.db")).await?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/payments", listener.local_addr()?);
    tokio::spawn(axum::serve(listener, routes).into_future());

    // Its first attempt gets no answer in time, its second hears that the first is being processed, its third gets the answer of the first.
    let attempt = AttemptPolicy::builder().timeout(Duration::from_millis(150));
    let stack = Stack::http("payments")
        .idempotency_key(KeyPolicy::default())
        .attempt(attempt.build()?);
    let payments = mamparo::client::reqwest(reqwest::Client::builder(), &stack)?;
    let request = http::Request::post(url).body(reqwest::Body::from("500"))?;
    let answer = payments.oneshot(request).await?;

    let attempts = Ending::of(&answer).map_or(1, Ending::attempts);
    let replayed = answer.headers().contains_key("idempotent-replayed");
    let answer = reqwest::Response::from(answer.map(reqwest::Body::wrap));
    let text = answer.text().await?;
    let count = "SELECT count(*) FROM payments";
    let paid: i64 = store
        .read(move |db| Ok(db.query_row(count, [], |row| row.get(0))?))
        .await?;
    println!("{text} after {attempts} attempts, {paid} payment made, replayed: {replayed}");
    assert_eq!((paid, attempts, replayed), (1, 3, true));
    Ok(())
}
