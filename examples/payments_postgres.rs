//! Shows two servers on one PostgreSQL that pay once for each key: axum and sqlx, payment and answer in one transaction.
//!
//! Takes the URL of a database, in which it makes a table; without one it starts a server of its own.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use axum::routing::post;
use axum::{Extension, Router};
use bytes::Bytes;
use mamparo::idempotency::{IdempotencyLayer, IdempotencyPolicy, IdempotencyTx, OnExpiry};
use mamparo::retry::Ending;
use mamparo::stack::Stack;
use mamparo_core::BoxError;
use mamparo_postgres::sqlx::{self, PgPool};
use mamparo_postgres::{PostgresIdempotency, Settings};
use mamparo_testkit::private::PrivatePostgres;
use tower::ServiceExt;

/// What a handler works with: the shop's own connections, and the store of keys on the same database.
#[derive(Clone)]
struct Shop {
    tables: PgPool,
    keys: PostgresIdempotency,
}

impl Shop {
    async fn pay(&self, key: &IdempotencyTx, cents: i64) -> Result<Response<Bytes>, BoxError> {
        let mut transaction = self.tables.begin().await?;
        let insert = "INSERT INTO payments (cents) VALUES ($1) RETURNING number";
        let number: i64 = sqlx::query_scalar(insert)
            .bind(cents)
            .fetch_one(&mut *transaction)
            .await?;
        let answer = Response::new(Bytes::from(format!("payment {number} of {cents} cents")));
        // Committed together with the payment, or not at all.
        self.keys
            .complete_in(&mut transaction, key, &answer)
            .await?;
        transaction.commit().await?;
        Ok(answer)
    }
}

/// Pays, slowly enough for both servers to have the same request at once.
async fn pay(
    State(shop): State<Shop>,
    Extension(key): Extension<IdempotencyTx>,
    cents: String,
) -> Result<Response<Body>, StatusCode> {
    tokio::time::sleep(Duration::from_millis(200)).await;
    let cents = cents.parse().map_err(|_| StatusCode::BAD_REQUEST)?;
    let paid = shop.pay(&key, cents).await;
    Ok(paid
        .map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?
        .map(Body::from))
}

/// Starts one of the servers, and returns its URL.
async fn server(database: &str) -> Result<String, BoxError> {
    let keys = PostgresIdempotency::connect(Settings::builder(database).build()?).await?;
    let shop = Shop {
        tables: PgPool::connect(database).await?,
        keys: keys.clone(),
    };
    let policy = IdempotencyPolicy::for_all_callers()
        .required()
        // Right, since payment and key are one transaction: a run that broke off has done nothing.
        .on_expiry(OnExpiry::RunAgain);
    let layers = mamparo::serve::http().idempotency(IdempotencyLayer::new(keys, policy.build()?));
    let routes = Router::new()
        .route("/payments", post(pay))
        .with_state(shop)
        .layer(layers);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/payments", listener.local_addr()?);
    tokio::spawn(axum::serve(listener, routes).into_future());
    Ok(url)
}

/// Pays under a key, and tries again while another server is at it.
async fn ask(url: &str, key: &str) -> Result<String, BoxError> {
    let payments = mamparo::client::reqwest(reqwest::Client::builder(), &Stack::http("payments"))?;
    let request = http::Request::post(url).header("idempotency-key", format!("\"{key}\""));
    let answer = payments
        .oneshot(request.body(reqwest::Body::from("500"))?)
        .await?;
    let attempts = Ending::of(&answer).map_or(1, Ending::attempts);
    let replayed = answer.headers().contains_key("idempotent-replayed");
    let text = reqwest::Response::from(answer.map(reqwest::Body::wrap))
        .text()
        .await?;
    println!("{url}: {text}, {attempts} attempts, replayed: {replayed}");
    Ok(text)
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let (database, _private) = match std::env::args().nth(1) {
        Some(url) => (url, None),
        None => {
            let server = PrivatePostgres::start().await;
            (server.url(), Some(server))
        }
    };
    let shop = PgPool::connect(&database).await?;
    let table = "CREATE TABLE IF NOT EXISTS payments (number bigint GENERATED ALWAYS AS IDENTITY, cents bigint NOT NULL)";
    sqlx::query(table).execute(&shop).await?;
    let count = "SELECT count(*) FROM payments";
    let before: i64 = sqlx::query_scalar(count).fetch_one(&shop).await?;

    let (one, other) = (server(&database).await?, server(&database).await?);
    let key = format!("order-{}", std::process::id());
    let (first, second) = tokio::try_join!(ask(&one, &key), ask(&other, &key))?;

    let after: i64 = sqlx::query_scalar(count).fetch_one(&shop).await?;
    println!("{} payment made", after - before);
    assert_eq!((first == second, after - before), (true, 1));
    Ok(())
}
