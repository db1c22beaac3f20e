//! What an event does to the stock.

use mamparo_core::BoxError;
use mamparo_durable::events::Event;
use mamparo_postgres::sqlx::{self, PgConnection};
use mamparo_rabbitmq::Permanent;
use serde_json::{Value, json};

use crate::common::bus::Heard;
use crate::common::shop::Shop;

pub(super) async fn reserve(
    shop: &Shop,
    tx: &mut PgConnection,
    heard: &Heard,
) -> Result<Vec<Event>, BoxError> {
    let (product, quantity) = (
        heard.body["product"].as_str(),
        heard.body["quantity"].as_i64(),
    );
    let missing = || Permanent::new("product or quantity is missing");
    let (product, quantity) = product.zip(quantity).ok_or_else(missing)?;
    // A cancellation that was faster has left its row: nothing is reserved any more.
    let insert =
        "INSERT INTO inventory.reservations (order_id, product, quantity, state, expires_at)
        VALUES ($1, $2, $3, 'ACTIVE', now() + $4 * interval '1 ms') ON CONFLICT DO NOTHING";
    let lasts = shop.settings.saga.reservation.as_millis();
    let insert = sqlx::query(insert)
        .bind(&heard.order)
        .bind(product)
        .bind(quantity)
        .bind(i64::try_from(lasts)?);
    if insert.execute(&mut *tx).await?.rows_affected() == 0 {
        return Ok(Vec::new());
    }
    let take = "UPDATE inventory.stock SET free = free - $2 WHERE product = $1 AND free >= $2";
    let take = sqlx::query(take).bind(product).bind(quantity);
    let what = match take.execute(&mut *tx).await?.rows_affected() {
        0 => {
            end(tx, &heard.order, "REJECTED").await?;
            "stock.rejected"
        }
        _ => "stock.reserved",
    };
    Ok(vec![shop.event(&heard.order, what, heard.body.clone())?])
}

/// Gives back what is still reserved.
pub(super) async fn release(
    shop: &Shop,
    tx: &mut PgConnection,
    order: &str,
    state: &str,
) -> Result<Vec<Event>, BoxError> {
    let Some((product, quantity)) = end(tx, order, state).await? else {
        let never =
            "INSERT INTO inventory.reservations VALUES ($1, '', 0, $2) ON CONFLICT DO NOTHING";
        sqlx::query(never)
            .bind(order)
            .bind(state)
            .execute(tx)
            .await?;
        return Ok(Vec::new());
    };
    let give = "UPDATE inventory.stock SET free = free + $2 WHERE product = $1";
    sqlx::query(give)
        .bind(&product)
        .bind(quantity)
        .execute(tx)
        .await?;
    let body: Value = json!({ "product": product, "quantity": quantity, "as": state });
    Ok(vec![shop.event(order, "stock.released", body)?])
}

/// Ends a reservation, if it is active; returns what it was of.
pub(super) async fn end(
    tx: &mut PgConnection,
    order: &str,
    state: &str,
) -> Result<Option<(String, i64)>, BoxError> {
    let end = "UPDATE inventory.reservations SET state = $2 WHERE order_id = $1 AND state = 'ACTIVE' RETURNING product, quantity";
    let ended = sqlx::query_as(end)
        .bind(order)
        .bind(state)
        .fetch_optional(tx);
    Ok(ended.await?)
}
