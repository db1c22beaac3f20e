//! The database: no connection left for requests, and transactions that are undone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use mamparo_core::BoxError;
use mamparo_postgres::sqlx;
use tokio::task::JoinSet;

use super::Fault;
use crate::gameday::customers::{Customers, Statuses};
use crate::gameday::day::{Day, PATIENCE};

const ORDERS: usize = 5;

/// More than there are connections, so that one is always waited for.
const CROWD: usize = 60;

const TOLD: &str =
    "SELECT count(*) FROM notifications.sent WHERE what = 'order.confirmed' AND order_id > $1";
const WAITING: &str =
    "SELECT count(*) FROM orders.orders WHERE state = 'STOCK_RESERVED' AND id > $1";
const PUBLISHED: (&str, &[(&str, &str)]) = ("shop_relay_published_total", &[]);

pub(super) async fn pool_full(day: &mut Day) -> Result<(), BoxError> {
    let fault = Fault::RequestPoolFull;
    let held = day.customers.order(&Customers::somebody(), "book").await?;
    day.customers
        .outcome(std::slice::from_ref(&held), PATIENCE)
        .await?;
    let held = held.order().ok_or("no order was taken")?;
    let before = day
        .ledger
        .until(TOLD, "", 0, std::time::Duration::ZERO)
        .await?;
    day.misbehave("bank", "latency_ms=4000").await?;
    let answers = day.customers.crowd(ORDERS).await?;
    day.ledger
        .until(WAITING, "", ORDERS.try_into()?, PATIENCE)
        .await?;

    // Somebody at a console locks a row, and everybody wants it.
    let mut console = day.ledger.pool().begin().await?;
    let lock = "SELECT id FROM orders.orders WHERE id = $1 FOR UPDATE";
    sqlx::query(lock).bind(&held).execute(&mut *console).await?;
    let goes_on = Arc::new(AtomicBool::new(true));
    let mut crowd = JoinSet::new();
    for _ in 0..CROWD {
        let (customers, held, goes_on) =
            (day.customers.clone(), held.clone(), Arc::clone(&goes_on));
        crowd.spawn(async move {
            while goes_on.load(Relaxed) {
                // Whatever they are told: they ask again.
                drop(customers.cancel(&held).await);
            }
        });
    }
    tokio::time::sleep(day.settings.database.request_wait).await;
    let published = day.operators.read("orders", PUBLISHED).await;
    let wanted = before + i64::try_from(ORDERS)?;
    let told = day.ledger.until(TOLD, "", wanted, PATIENCE).await? - before;
    let published = day.operators.read("orders", PUBLISHED).await - published;
    let mut asked = Vec::new();
    for _ in 0..5 {
        asked.push(day.customers.get(&format!("/orders/{held}")).await?);
    }
    goes_on.store(false, Relaxed);
    console.rollback().await?;
    day.misbehave("bank", "latency_ms=0").await?;
    crowd.join_all().await;

    let refused = asked
        .iter()
        .filter(|answer| answer.status == 503 && answer.retry_after.is_some());
    let seen = Statuses(&asked).to_string();
    day.table.row(
        fault,
        "customers",
        "who asks finds no connection: 503, Retry-After",
        seen,
        refused.count() > 0,
    );
    let seen = format!("{told} of {ORDERS} confirmed and told meanwhile");
    day.table.row(
        fault,
        "customers",
        "sagas that had begun go on",
        seen,
        told == i64::try_from(ORDERS)?,
    );
    day.table.row(
        fault,
        "operators",
        "the relay still moves",
        format!("{published} events"),
        published >= 5.0,
    );
    let outcome = day.customers.outcome(&answers, PATIENCE).await?;
    day.table.row(
        fault,
        "customers",
        "once the lock is gone, all is well",
        &outcome,
        outcome == format!("{ORDERS} CONFIRMED"),
    );
    Ok(())
}

pub(super) async fn deadlock(day: &mut Day) -> Result<(), BoxError> {
    let fault = Fault::Deadlock;
    let retries = (
        "shop_messages_total",
        &[("queue", "payments.stock"), ("settled", "retry")][..],
    );
    let before = day.operators.read("payments", retries).await;
    day.ledger
        .run("CREATE SEQUENCE payments.undone;
              CREATE FUNCTION payments.undo() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                  IF nextval('payments.undone') <= 2 THEN
                      RAISE EXCEPTION 'deadlock detected' USING ERRCODE = '40P01';
                  END IF;
                  RETURN NEW;
              END $$;
              CREATE TRIGGER undo BEFORE UPDATE ON payments.charges FOR EACH ROW EXECUTE FUNCTION payments.undo()")
        .await?;
    let answer = day.customers.order(&Customers::somebody(), "book").await?;
    let outcome = day.customers.outcome(&[answer], PATIENCE).await?;
    day.ledger
        .run("DROP TRIGGER undo ON payments.charges; DROP FUNCTION payments.undo; DROP SEQUENCE payments.undone")
        .await?;
    day.table.row(
        fault,
        "customers",
        "the order is confirmed",
        &outcome,
        outcome == "1 CONFIRMED",
    );
    let deadlocks = day
        .operators
        .read("payments", ("shop_deadlocks_total", &[]))
        .await;
    let retried = day.operators.read("payments", retries).await - before;
    let seen = format!("{deadlocks} deadlocks, {retried} messages to the retry queue");
    day.table.row(
        fault,
        "operators",
        "40P01 is tried again in the process, 50 ms apart",
        seen,
        deadlocks >= 2.0 && retried == 0.0,
    );
    Ok(())
}
