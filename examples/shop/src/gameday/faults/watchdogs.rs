//! Two processes of orders, so two watchdogs and two relays, and more stuck sagas than one cycle takes.

use mamparo_core::BoxError;

use crate::gameday::day::Day;
use crate::town::REPLICA;

const SAGAS: i64 = 200;

/// Orders that wait for a payment which never comes, with their reservations.
const STUCK: &str = "
UPDATE inventory.stock SET free = free - 200 WHERE product = 'pen';
INSERT INTO inventory.reservations (order_id, product, quantity, state, expires_at)
    SELECT 'stuck-' || n, 'pen', 1, 'ACTIVE', now() + interval '1 day' FROM generate_series(1, 200) n;
INSERT INTO orders.orders (id, customer, product, quantity, cents, state, since)
    SELECT 'stuck-' || n, 'somebody', 'pen', 1, 300, 'STOCK_RESERVED', now() - interval '1 hour' FROM generate_series(1, 200) n";

const CANCELLED: &str = "SELECT count(*) FROM orders.history WHERE order_id LIKE $1 AND heard = 'TIMEOUT_PAYMENT' AND state = 'CANCELLED'";
const RELEASED: &str =
    "SELECT count(*) FROM inventory.reservations WHERE order_id LIKE $1 AND state = 'RELEASED'";
const TOLD: &str =
    "SELECT count(*) FROM notifications.sent WHERE order_id LIKE $1 AND what = 'order.cancelled'";
const FREE_PENS: &str = "SELECT free FROM inventory.stock WHERE product = 'pen' AND $1 <> ''";
const WAITING: &str = r#"mamparo_outbox_events{mamparo_outbox_state="waiting"}"#;
const ALL: &str = "stuck-%";

/// Of as many orders inventory has never heard.
const UNHEARD: i64 = 20;

const PENDING: &str = "
INSERT INTO orders.orders (id, customer, product, quantity, cents, since)
    SELECT 'unheard-' || n, 'somebody', 'pen', 1, 300, now() - interval '1 hour' FROM generate_series(1, 20) n";
const NEVER_RESERVED: &str = "
SELECT count(*) FROM orders.history WHERE order_id LIKE $1 AND heard = 'TIMEOUT_STOCK' AND state = 'CANCELLED'";
const PENDING_ONES: &str = "unheard-%";

pub(super) async fn two(day: &mut Day) -> Result<(), BoxError> {
    day.town.start(REPLICA).await?;
    day.ledger.run(STUCK).await?;
    // As soon as something is cancelled, one of those dies whose relays tell of it.
    day.ledger
        .until_it(CANCELLED, ALL, |count| count > 0)
        .await?;
    day.town.kill("orders").await?;
    day.town.start("orders").await?;

    let told = day
        .ledger
        .until_it(TOLD, ALL, |count| count >= SAGAS)
        .await?;
    let released = day.ledger.until(RELEASED, ALL, SAGAS).await?;
    let cancelled = day.ledger.count(CANCELLED, ALL).await?;
    let seen = format!("{cancelled} cancelled, {released} released, {told} told");
    let holds = (cancelled, released, told) == (SAGAS, SAGAS, SAGAS);
    day.table.ledger(
        "each of 200 is cancelled once, released once, told once",
        seen,
        holds,
    );
    unheard(day).await?;
    let free = day.ledger.count(FREE_PENS, ALL).await?;
    day.table.ledger(
        "the stock is as before",
        format!("{free} pens"),
        free == 1_000,
    );
    let waiting = day
        .operators
        .until("orders", WAITING, |waiting| waiting == 0.0);
    let waiting = waiting.await;
    day.table
        .operators("nothing waits in the outbox", waiting, waiting == 0.0);
    let spans = day.traces.of("stuck-1")?;
    let told = spans.iter().any(|span| span.service == "notifications");
    let seen = if told { "notifications" } else { "nowhere" };
    day.table
        .traces("a cancellation is followed to its customer", seen, told);
    day.town.remove(REPLICA).await
}

/// Orders of which no event has come, nor ever will.
async fn unheard(day: &mut Day) -> Result<(), BoxError> {
    day.ledger.run(PENDING).await?;
    let told = day.ledger.until(TOLD, PENDING_ONES, UNHEARD).await?;
    let cancelled = day.ledger.count(NEVER_RESERVED, PENDING_ONES).await?;
    let seen = format!("{cancelled} cancelled, {told} told");
    let expected = "each of 20 that are PENDING for ever is cancelled once, told once";
    let holds = (cancelled, told) == (UNHEARD, UNHEARD);
    day.table.ledger(expected, seen, holds);
    Ok(())
}
