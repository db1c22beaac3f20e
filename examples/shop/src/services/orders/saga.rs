//! What an event does to an order.

use mamparo_core::BoxError;
use mamparo_durable::events::Event;
use mamparo_postgres::sqlx::{self, PgConnection};
use mamparo_rabbitmq::Permanent;
use serde_json::json;

use crate::common::shop::Shop;

/// What the watchdogs say, in the place of an event.
pub(super) const TIMEOUT_STOCK: &str = "TIMEOUT_STOCK";
pub(super) const TIMEOUT_PAYMENT: &str = "TIMEOUT_PAYMENT";

/// What a customer says.
pub(super) const BY_CUSTOMER: &str = "BY_CUSTOMER";

/// The state after it, and what is told; none where it comes too late to change anything.
fn next(state: &str, heard: &str) -> Option<(&'static str, Option<&'static str>)> {
    let cancelled = Some(("CANCELLED", Some("order.cancelled")));
    match (state, heard) {
        ("PENDING", "stock.reserved") => Some(("STOCK_RESERVED", None)),
        // Payments may have been faster than we.
        ("PENDING" | "STOCK_RESERVED", "payment.confirmed") => {
            Some(("CONFIRMED", Some("order.confirmed")))
        }
        ("PENDING", "stock.rejected" | TIMEOUT_STOCK) => cancelled,
        ("PENDING" | "STOCK_RESERVED", "payment.declined" | BY_CUSTOMER) => cancelled,
        ("STOCK_RESERVED", TIMEOUT_PAYMENT) => cancelled,
        _ => None,
    }
}

/// Takes a step, writes it down, and returns what is to be told.
pub(super) async fn follow(
    shop: &Shop,
    tx: &mut PgConnection,
    order: &str,
    heard: &str,
) -> Result<Vec<Event>, BoxError> {
    let asked = "SELECT state FROM orders.orders WHERE id = $1 FOR UPDATE";
    let state: Option<String> = sqlx::query_scalar(asked)
        .bind(order)
        .fetch_optional(&mut *tx)
        .await?;
    let state = state.ok_or_else(|| Permanent::new("there is no such order"))?;
    let step = next(&state, heard);
    let after = step.map_or(&*state, |(after, _)| after);
    let history = "INSERT INTO orders.history (order_id, heard, state) VALUES ($1, $2, $3)";
    let history = sqlx::query(history).bind(order).bind(heard).bind(after);
    history.execute(&mut *tx).await?;
    let Some((after, told)) = step else {
        return Ok(Vec::new());
    };
    let reason = (after == "CANCELLED").then_some(heard);
    let update = "UPDATE orders.orders SET state = $2, reason = $3, since = now() WHERE id = $1";
    let update = sqlx::query(update).bind(order).bind(after).bind(reason);
    update.execute(tx).await?;
    let told = told.map(|what| shop.event(order, what, json!({ "reason": reason })));
    told.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_late_changes_nothing() {
        for state in ["CONFIRMED", "CANCELLED"] {
            for heard in [
                "stock.reserved",
                "payment.confirmed",
                "payment.declined",
                TIMEOUT_STOCK,
                TIMEOUT_PAYMENT,
                BY_CUSTOMER,
            ] {
                assert_eq!(next(state, heard), None, "{heard} in {state}");
            }
        }
        assert_eq!(next("STOCK_RESERVED", "stock.reserved"), None);
    }

    #[test]
    fn each_state_that_waits_for_ever_is_ended_by_its_own_watchdog() {
        let cancelled = Some(("CANCELLED", Some("order.cancelled")));
        assert_eq!(next("PENDING", TIMEOUT_STOCK), cancelled);
        assert_eq!(next("STOCK_RESERVED", TIMEOUT_PAYMENT), cancelled);
        assert_eq!(next("STOCK_RESERVED", TIMEOUT_STOCK), None);
        assert_eq!(next("PENDING", TIMEOUT_PAYMENT), None);
    }
}
