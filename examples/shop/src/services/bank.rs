//! Somebody else's bank: charges once for each idempotency key, says what it knows of one, refunds, and refuses large sums.

use std::str::FromStr as _;

use axum::extract::{Path, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use http::{HeaderMap, StatusCode};
use mamparo::problem::Problem;
use mamparo::serve::Readiness;
use mamparo_core::BoxError;
use mamparo_postgres::sqlx;
use mamparo_postgres::sqlx::postgres::{PgConnectOptions, PgPool};
use serde::{Deserialize, Serialize};

use crate::common::serve::{Server, faulty};
use crate::common::settings::Place;

/// What nobody may pay at once.
const LIMIT_CENTS: i64 = 1_000_000;

const TABLES: &str = "
CREATE SCHEMA IF NOT EXISTS bank;
CREATE TABLE IF NOT EXISTS bank.charges (
    key text PRIMARY KEY,
    cents bigint NOT NULL,
    refunded boolean NOT NULL DEFAULT false,
    asked bigint NOT NULL DEFAULT 1
)";

/// What is asked of the bank.
#[derive(Deserialize, Serialize)]
pub(super) struct Charge {
    pub(super) cents: i64,
}

pub(super) async fn run(place: Place) -> Result<(), BoxError> {
    let server = Server::open(&place)?;
    let pool = PgPool::connect_lazy_with(PgConnectOptions::from_str(&place.database)?);
    sqlx::raw_sql(TABLES).execute(&pool).await?;
    let readiness = Readiness::builder().build()?;
    let routes = Router::new()
        .route("/charges", post(charge))
        .route("/charges/{key}", get(known))
        .route("/refunds", post(refund))
        .with_state(pool);
    let routes = faulty(routes, &readiness)?;
    server.run(routes, readiness, async { Ok(()) }).await
}

async fn charge(
    State(pool): State<PgPool>,
    headers: HeaderMap,
    Json(charge): Json<Charge>,
) -> Result<StatusCode, Problem> {
    if charge.cents > LIMIT_CENTS {
        let problem = Problem::blank(StatusCode::PAYMENT_REQUIRED);
        return Err(problem.with_detail("the card is declined"));
    }
    let charged = "INSERT INTO bank.charges (key, cents) VALUES ($1, $2)
        ON CONFLICT (key) DO UPDATE SET asked = charges.asked + 1";
    let charged = sqlx::query(charged).bind(key(&headers)?).bind(charge.cents);
    charged.execute(&pool).await.map_err(BoxError::from)?;
    Ok(StatusCode::CREATED)
}

async fn known(
    State(pool): State<PgPool>,
    Path(key): Path<String>,
) -> Result<Json<Charge>, Problem> {
    let asked = "SELECT cents FROM bank.charges WHERE key = $1";
    let found = sqlx::query_scalar(asked).bind(key).fetch_optional(&pool);
    match found.await.map_err(BoxError::from)? {
        Some(cents) => Ok(Json(Charge { cents })),
        None => Err(Problem::blank(StatusCode::NOT_FOUND)),
    }
}

async fn refund(State(pool): State<PgPool>, headers: HeaderMap) -> Result<StatusCode, Problem> {
    let refund = "UPDATE bank.charges SET refunded = true WHERE key = $1";
    let refund = sqlx::query(refund).bind(key(&headers)?).execute(&pool);
    match refund.await.map_err(BoxError::from)?.rows_affected() {
        0 => Err(Problem::blank(StatusCode::NOT_FOUND)),
        _ => Ok(StatusCode::OK),
    }
}

fn key(headers: &HeaderMap) -> Result<String, Problem> {
    let key = headers
        .get("idempotency-key")
        .and_then(|key| key.to_str().ok());
    let key = key.map(|key| key.trim_matches('"').to_owned());
    key.ok_or_else(|| Problem::blank(StatusCode::BAD_REQUEST).with_detail("a key is required"))
}
