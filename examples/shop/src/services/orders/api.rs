//! What clients are answered.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::{Extension, Json};
use bytes::Bytes;
use http::{Response, StatusCode};
use mamparo::idempotency::IdempotencyTx;
use mamparo::problem::{Problem, ProblemType};
use mamparo_core::BoxError;
use mamparo_postgres::sqlx;
use mamparo_rabbitmq::Permanent;
use serde::Deserialize;
use serde_json::{Value, json};

use super::saga;
use super::service::Orders;
use crate::services::catalog::Product;

const REFUSED: ProblemType = ProblemType::new(
    "urn:shop:problem:order-refused",
    "Order Refused",
    StatusCode::UNPROCESSABLE_ENTITY,
);

const TOO_LATE: ProblemType = ProblemType::new(
    "urn:shop:problem:order-confirmed",
    "Order Confirmed",
    StatusCode::CONFLICT,
);

#[derive(Deserialize)]
pub(super) struct Wanted {
    customer: String,
    product: String,
    quantity: i64,
}

/// Takes an order: with its prices and its customer, or not at all. Both are asked at once.
pub(super) async fn place(
    State(orders): State<Orders>,
    Extension(key): Extension<IdempotencyTx>,
    Json(wanted): Json<Wanted>,
) -> Result<Response<Body>, Problem> {
    let refused = |detail| Problem::new(REFUSED).with_detail(detail);
    if !is_name(&wanted.product) || !is_name(&wanted.customer) {
        return Err(refused("names have letters, digits, '.', '-' and '_'"));
    }
    let (product, customer) = tokio::join!(
        orders.products(&wanted.product),
        orders.customer(&wanted.customer)
    );
    let product = product?.remove(&wanted.product);
    let product = product.ok_or_else(|| refused("there is no such product"))?;
    customer?.ok_or_else(|| refused("there is no such customer"))?;
    if !(1..=100).contains(&wanted.quantity) {
        return Err(refused("from 1 to 100 of a product can be ordered"));
    }
    let answer = orders
        .store(&key, &wanted, product.cents * wanted.quantity)
        .await;
    Ok(answer.map_err(busy)?.map(Body::from))
}

/// Whether it can stand in an address as it is.
fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    !text.is_empty() && text.chars().all(plain)
}

/// One order.
pub(super) async fn show(
    State(orders): State<Orders>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    type Row = (String, String, i64, Option<String>);
    let asked = "SELECT state, product, cents, reason FROM orders.orders WHERE id = $1";
    let row = sqlx::query_as(asked)
        .bind(&id)
        .fetch_optional(&orders.shop.requests);
    let row: Option<Row> = row.await.map_err(|error| busy(error.into()))?;
    let (state, product, cents, reason) =
        row.ok_or_else(|| Problem::blank(StatusCode::NOT_FOUND))?;
    let order =
        json!({ "id": id, "state": state, "product": product, "cents": cents, "reason": reason });
    Ok(Json(order))
}

#[derive(Deserialize)]
pub(super) struct Whose {
    customer: String,
}

/// A customer's orders. Without the catalog they lack the names of the products, and say so: `partial`.
pub(super) async fn list(
    State(orders): State<Orders>,
    Query(whose): Query<Whose>,
) -> Result<Json<Value>, Problem> {
    type Row = (String, String, String);
    let asked = "SELECT id, state, product FROM orders.orders WHERE customer = $1 ORDER BY since DESC LIMIT 20";
    let rows = sqlx::query_as(asked)
        .bind(&whose.customer)
        .fetch_all(&orders.shop.requests);
    let rows: Vec<Row> = rows.await.map_err(|error| busy(error.into()))?;
    let ids: Vec<&str> = rows.iter().map(|(.., product)| &**product).collect();
    let products = orders.products(&ids.join(",")).await.ok();
    let listed = rows.iter().map(|(id, state, product)| {
        let known = products.as_ref().and_then(|products| products.get(product));
        json!({ "id": id, "state": state, "product": product, "name": known.map(|known| &known.name) })
    });
    let listed: Vec<Value> = listed.collect();
    Ok(Json(
        json!({ "orders": listed, "partial": products.is_none() }),
    ))
}

/// Cancels an order that is not confirmed yet; of one that is, it says that nothing was done.
pub(super) async fn cancel(
    State(orders): State<Orders>,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    let cancelled = async {
        let mut tx = orders.shop.requests.begin().await?;
        for event in saga::follow(&orders.shop, &mut tx, &id, saga::BY_CUSTOMER).await? {
            orders.shop.events.put(&mut tx, &event).await?;
        }
        let state = "SELECT state FROM orders.orders WHERE id = $1";
        let state = sqlx::query_scalar(state).bind(&id).fetch_one(&mut *tx);
        let state: String = state.await?;
        tx.commit().await?;
        Ok(state)
    };
    let state = cancelled
        .await
        .map_err(|error: BoxError| match error.is::<Permanent>() {
            true => Problem::blank(StatusCode::NOT_FOUND).because(error),
            false => busy(error),
        })?;
    match &*state {
        // Also where somebody has cancelled it before: who asks again hears the same.
        "CANCELLED" => Ok(StatusCode::ACCEPTED),
        _ => Err(Problem::new(TOO_LATE).with_detail("it is confirmed, and on its way")),
    }
}

impl Orders {
    async fn products(&self, ids: &str) -> Result<BTreeMap<String, Product>, Problem> {
        let products = self.catalog.get(&format!("/products?ids={ids}")).await?;
        Ok(products.unwrap_or_default())
    }

    async fn customer(&self, id: &str) -> Result<Option<Value>, Problem> {
        self.customers.get(&format!("/customers/{id}")).await
    }

    /// The order, its event and the key's answer: all or nothing.
    async fn store(
        &self,
        key: &IdempotencyTx,
        wanted: &Wanted,
        cents: i64,
    ) -> Result<Response<Bytes>, BoxError> {
        let Self { shop, keys, .. } = self;
        let id = format!("order-{:016x}", fastrand::u64(..));
        let mut tx = shop.requests.begin().await?;
        let insert = "INSERT INTO orders.orders (id, customer, product, quantity, cents) VALUES ($1, $2, $3, $4, $5)";
        sqlx::query(insert)
            .bind(&id)
            .bind(&wanted.customer)
            .bind(&wanted.product)
            .bind(wanted.quantity)
            .bind(cents)
            .execute(&mut *tx)
            .await?;
        let body =
            json!({ "product": wanted.product, "quantity": wanted.quantity, "cents": cents });
        shop.events
            .put(&mut tx, &shop.event(&id, "order.placed", body)?)
            .await?;
        let answer = json!({ "id": id, "state": "PENDING", "cents": cents }).to_string();
        let answer = Response::builder()
            .status(StatusCode::CREATED)
            .body(Bytes::from(answer))?;
        keys.complete_in(&mut tx, key, &answer).await?;
        tx.commit().await?;
        Ok(answer)
    }
}

/// No connection to the database in time: later there may be one.
fn busy(error: BoxError) -> Problem {
    let problem = Problem::new(ProblemType::TEMPORARY_REDUCED_CAPACITY);
    problem.with_retry_later().because(error)
}
