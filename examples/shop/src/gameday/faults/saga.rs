//! Sagas that nobody ends: the watchdog does, and the reconciliation finds what even that has missed.

use mamparo_core::BoxError;
use mamparo_rabbitmq::Selection;

use super::Fault;
use crate::gameday::customers::Customers;
use crate::gameday::day::{Day, PATIENCE};

const STATE: &str = "SELECT count(*) FROM orders.orders WHERE id = $1 AND state = 'STOCK_RESERVED'";
const CANCELLED: &str = "SELECT count(*) FROM orders.orders WHERE id = $1 AND state = 'CANCELLED' AND reason = 'TIMEOUT_PAYMENT'";
const RELEASED: &str =
    "SELECT count(*) FROM inventory.reservations WHERE order_id = $1 AND state = 'RELEASED'";
const CHARGED: &str = "SELECT count(*) FROM bank.charges WHERE key = $1 AND NOT refunded";
const REFUNDED: &str = "SELECT count(*) FROM bank.charges WHERE key = $1 AND refunded";
const TOLD: &str = "SELECT count(*) FROM notifications.sent WHERE order_id = $1";
const HEARD: &str =
    "SELECT count(*) FROM orders.history WHERE order_id = $1 AND heard = 'payment.confirmed'";

pub(super) async fn stuck(day: &mut Day) -> Result<(), BoxError> {
    let fault = Fault::StuckSaga;
    day.town.deploy("orders", &["--bug"]).await?;
    let answer = day.customers.order(&Customers::somebody(), "book").await?;
    let order = answer.order().ok_or("no order was taken")?;

    let dead = (
        "shop_queue_depth",
        &[("queue", "orders.saga"), ("which", "dead")][..],
    );
    let dead = day
        .operators
        .until("orders", dead, |dead| dead == 1.0, PATIENCE)
        .await;
    day.table.row(
        fault,
        "operators",
        "1. payment.confirmed is a dead letter at the first failure",
        format!("{dead} in orders.saga.dlq"),
        dead == 1.0,
    );
    let waits = day.ledger.count(STATE, &order).await? == 1
        && day.ledger.count(CHARGED, &order).await? == 1;
    let seen = if waits {
        "STOCK_RESERVED, charged"
    } else {
        "otherwise"
    };
    day.table.row(
        fault,
        "customers",
        "2. the order is paid, and waits",
        seen,
        waits,
    );

    let limit = day.settings.saga.payment_limit;
    let begun = mamparo_core::clock::now();
    let cancelled = day
        .ledger
        .until(CANCELLED, &order, 1, limit + PATIENCE)
        .await?;
    let after = begun.elapsed();
    let expected = format!(
        "3. the watchdog cancels it after {} s, TIMEOUT_PAYMENT",
        limit.as_secs()
    );
    day.table.row(
        fault,
        "operators",
        expected,
        format!("cancelled after about {} s", after.as_secs()),
        cancelled == 1,
    );

    let released = day.ledger.until(RELEASED, &order, 1, PATIENCE).await?;
    let refunded = day.ledger.until(REFUNDED, &order, 1, PATIENCE).await?;
    // Of the cancellation, and of the refund.
    let told = day.ledger.until(TOLD, &order, 2, PATIENCE).await?;
    let seen = format!("{released} released, {refunded} refunded, {told} times told");
    day.table.row(
        fault,
        "customers",
        "4. stock is released, the payment refunded, the customer told of both",
        seen,
        (released, refunded, told) == (1, 1, 2),
    );

    day.town.deploy("orders", &[]).await?;
    let letters = day.dead_letters("orders")?;
    let of_it = |letter: &mamparo_rabbitmq::Letter| {
        letter.message_id().is_some_and(|id| id.starts_with(&order))
    };
    let one = Selection {
        max: 10,
        per_second: None,
        wanted: &of_it,
    };
    let requeued = letters.requeue(one, std::future::pending()).await?;
    let said = requeued.first().map(|letter| {
        format!(
            "{}: {}, {}",
            letter.reason(),
            letter.detail(),
            letter.owner()
        )
    });
    let heard = day.ledger.until(HEARD, &order, 1, PATIENCE).await?;
    let still = [CANCELLED, RELEASED, REFUNDED];
    let mut same = day.ledger.count(TOLD, &order).await? == 2;
    for asked in still {
        same &= day.ledger.count(asked, &order).await? == 1;
    }
    let seen = format!(
        "{} requeued ({}), nothing else changed: {same}",
        requeued.len(),
        said.unwrap_or_default()
    );
    day.table.row(
        fault,
        "operators",
        "5. mended and requeued, the late message changes nothing",
        seen,
        requeued.len() == 1 && heard == 1 && same,
    );

    let spans = day.traces.of(&order)?;
    let failed = spans
        .iter()
        .any(|span| span.service == "orders" && span.status.contains("bug"));
    let refund = spans.iter().any(|span| {
        span.name == "process notifications.orders"
            && span.is("messaging.destination.name", "payment.refunded")
    });
    let seen = format!("failed message: {failed}, refund: {refund}");
    day.table.row(
        fault,
        "traces",
        "the message that failed, and the refund, are of the order",
        seen,
        failed && refund,
    );
    Ok(())
}

pub(super) async fn lost_reservation(day: &mut Day) -> Result<(), BoxError> {
    let fault = Fault::LostReservation;
    day.ledger
        .run(
            "UPDATE inventory.stock SET free = free - 7 WHERE product = 'pen';
              INSERT INTO inventory.reservations (order_id, product, quantity, state, at)
              VALUES ('order-nobody', 'pen', 7, 'ACTIVE', now() - interval '1 hour')",
        )
        .await?;
    let alerts = ("shop_alerts_total", &[("reason", "discrepancy")][..]);
    let alerts = day
        .operators
        .until("inventory", alerts, |alerts| alerts > 0.0, PATIENCE)
        .await;
    day.table.row(
        fault,
        "operators",
        "the reconciliation tells a discrepancy",
        format!("{alerts} alerts"),
        alerts > 0.0,
    );
    let free = "SELECT free FROM inventory.stock WHERE product = 'pen' AND $1 = ''";
    let free = day.ledger.until(free, "", 1_000, PATIENCE).await?;
    day.table.row(
        fault,
        "customers",
        "the stock is free again",
        format!("{free} pens"),
        free == 1_000,
    );
    Ok(())
}
