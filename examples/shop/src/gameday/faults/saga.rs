//! Sagas that nobody ends: the watchdog does, and the reconciliation finds what even that has missed.

use std::future::pending;

use mamparo_core::{BoxError, clock};
use mamparo_rabbitmq::{Letter, Selection};

use crate::gameday::customers::Customers;
use crate::gameday::day::Day;

const DEAD: &str =
    r#"mamparo_message_depth{mamparo_message_queue="orders.saga",mamparo_message_state="dead"}"#;
const DISCREPANCIES: &str = r#"shop_alerts_total{reason="discrepancy"}"#;

const WAITS: &str = "SELECT count(*) FROM orders.orders WHERE id = $1 AND state = 'STOCK_RESERVED'";
const CANCELLED: &str = "SELECT count(*) FROM orders.orders WHERE id = $1 AND state = 'CANCELLED' AND reason = 'TIMEOUT_PAYMENT'";
const RELEASED: &str =
    "SELECT count(*) FROM inventory.reservations WHERE order_id = $1 AND state = 'RELEASED'";
const CHARGED: &str = "SELECT count(*) FROM bank.charges WHERE key = $1 AND NOT refunded";
const REFUNDED: &str = "SELECT count(*) FROM bank.charges WHERE key = $1 AND refunded";
const TOLD: &str = "SELECT count(*) FROM notifications.sent WHERE order_id = $1";
const HEARD: &str =
    "SELECT count(*) FROM orders.history WHERE order_id = $1 AND heard = 'payment.confirmed'";
const FREE_PENS: &str = "SELECT free FROM inventory.stock WHERE product = 'pen' AND $1 = ''";

/// Step by step: a release of orders can't read payments.
pub(super) async fn stuck(day: &mut Day) -> Result<(), BoxError> {
    day.town.deploy("orders", &["--bug"]).await?;
    let answer = day.customers.order(&Customers::somebody(), "book").await?;
    let order = answer.order().ok_or("no order was taken")?;

    let dead = day
        .operators
        .until("orders", DEAD, |dead| dead == 1.0)
        .await;
    let seen = format!("{dead} in orders.saga.dlq");
    day.table.operators(
        "1. payment.confirmed is a dead letter at its first failure",
        seen,
        dead == 1.0,
    );
    let (waits, charged) = (
        day.ledger.count(WAITS, &order).await?,
        day.ledger.count(CHARGED, &order).await?,
    );
    let seen = format!("{waits} waits, {charged} charged");
    day.table.ledger(
        "2. the order is paid, and waits",
        seen,
        (waits, charged) == (1, 1),
    );

    cancelled(day, &order).await?;
    put_back(day, &order).await?;
    let spans = day.traces.of(&order)?;
    let failed = spans
        .iter()
        .any(|span| span.is_process_of("orders.saga") && span.is_error());
    let refund = spans.iter().any(|span| {
        span.is(
            "messaging.rabbitmq.destination.routing_key",
            "payment.refunded",
        )
    });
    let seen = format!("failed message: {failed}, refund: {refund}");
    day.table.traces(
        "the message that failed, and the refund, are of the order",
        seen,
        failed && refund,
    );
    Ok(())
}

/// What the shop does by itself.
async fn cancelled(day: &mut Day, order: &str) -> Result<(), BoxError> {
    let (limit, begun) = (day.settings.saga.payment_limit, clock::now());
    tokio::time::sleep(limit / 2).await;
    let cancelled = day.ledger.until(CANCELLED, order, 1).await?;
    let expected = format!(
        "3. the watchdog cancels it after {} s: TIMEOUT_PAYMENT",
        limit.as_secs()
    );
    let seen = format!(
        "{cancelled} cancelled after about {} s",
        begun.elapsed().as_secs()
    );
    day.table.customers(expected, seen, cancelled == 1);

    let released = day.ledger.until(RELEASED, order, 1).await?;
    let refunded = day.ledger.until(REFUNDED, order, 1).await?;
    let told = day.ledger.until(TOLD, order, 2).await?;
    let seen = format!("{released} released, {refunded} refunded, {told} times told");
    let expected = "4. stock is released, the payment refunded, the customer told of both";
    day.table
        .customers(expected, seen, (released, refunded, told) == (1, 1, 2));
    Ok(())
}

/// What a person does then.
async fn put_back(day: &mut Day, order: &str) -> Result<(), BoxError> {
    day.town.deploy("orders", &[]).await?;
    let of_it = |letter: &Letter| letter.message_id().is_some_and(|id| id.starts_with(order));
    let one = Selection {
        wanted: &of_it,
        ..Selection::first(10)
    };
    let letters = day.dead_letters("orders")?.requeue(one, pending()).await?;
    let said = letters
        .iter()
        .map(|letter| format!("{}: {}", letter.reason(), letter.detail()));
    let said = said.collect::<Vec<_>>().join("; ");
    let heard = day.ledger.until(HEARD, order, 1).await?;
    let mut same = day.ledger.count(TOLD, order).await? == 2;
    for asked in [CANCELLED, RELEASED, REFUNDED] {
        same &= day.ledger.count(asked, order).await? == 1;
    }
    let seen = format!("requeued ({said}), heard {heard}, all else as before: {same}");
    let expected = "5. mended and requeued, the late message changes nothing";
    day.table
        .operators(expected, seen, letters.len() == 1 && heard == 1 && same);
    Ok(())
}

pub(super) async fn lost_reservation(day: &mut Day) -> Result<(), BoxError> {
    // A bug wrote it without an end, for an order that is not there.
    day.ledger
        .run(
            "UPDATE inventory.stock SET free = free - 7 WHERE product = 'pen';
              INSERT INTO inventory.reservations (order_id, product, quantity, state, at)
              VALUES ('order-nobody', 'pen', 7, 'ACTIVE', now() - interval '1 hour')",
        )
        .await?;
    let alerts = day
        .operators
        .until("inventory", DISCREPANCIES, |alerts| alerts > 0.0)
        .await;
    let seen = format!("{alerts} alert");
    day.table.operators(
        "the reconciliation tells a discrepancy",
        seen,
        alerts == 1.0,
    );
    let free = day.ledger.until(FREE_PENS, "", 1_000).await?;
    day.table.ledger(
        "the stock is free again",
        format!("{free} pens"),
        free == 1_000,
    );
    let asked = day
        .traces
        .all()?
        .into_iter()
        .any(|span| span.service == "inventory" && span.is("mamparo.dependency", "orders"));
    let seen = if asked { "a call of orders" } else { "none" };
    day.table.traces("inventory has asked orders", seen, asked);
    Ok(())
}
