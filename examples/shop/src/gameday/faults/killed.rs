//! Every service of the saga killed while customers order, one after the other, and started again.

use std::time::Duration;

use mamparo_core::BoxError;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::Fault;
use crate::gameday::customers::{Customers, Statuses};
use crate::gameday::day::{Day, PATIENCE};

const ORDERS: u32 = 24;

/// Between two customers, so that the last come when the last service is killed.
const BETWEEN: Duration = Duration::from_millis(100);

const CHARGED: &str = "SELECT count(*) FROM bank.charges WHERE key > $1";
const TOLD: &str =
    "SELECT count(*) FROM notifications.sent WHERE what = 'order.confirmed' AND order_id > $1";

pub(super) async fn killed(day: &mut Day) -> Result<(), BoxError> {
    let fault = Fault::KilledServices;
    let (charged, told) = (
        day.ledger.count(CHARGED, "").await?,
        day.ledger.count(TOLD, "").await?,
    );
    let mut ordering = JoinSet::new();
    let mut names = Vec::new();
    for number in 0..ORDERS {
        let (customers, name) = (day.customers.clone(), Customers::somebody());
        names.push(name.clone());
        ordering.spawn(async move {
            sleep(BETWEEN * number).await;
            customers.insist(&name).await
        });
    }
    for service in [
        "payments",
        "inventory",
        "orders",
        "notifications",
        "gateway",
    ] {
        sleep(2 * BETWEEN).await;
        day.town.kill(service).await?;
        sleep(2 * BETWEEN).await;
        day.town.start(service).await?;
    }
    let answers: Result<Vec<_>, BoxError> = ordering.join_all().await.into_iter().collect();
    let answers = answers?;
    let mut twice = 0;
    for name in &names {
        let orders = "SELECT count(*) FROM orders.orders WHERE customer = $1";
        twice += i64::from(day.ledger.count(orders, name).await? != 1);
    }
    let seen = format!("{}, {twice} with none or two", Statuses(&answers));
    day.table.row(
        fault,
        "customers",
        "who tries again with the same key has one order",
        seen,
        twice == 0,
    );

    let outcome = day.customers.outcome(&answers, PATIENCE).await?;
    day.table.row(
        fault,
        "customers",
        "all are confirmed",
        &outcome,
        outcome == format!("{ORDERS} CONFIRMED"),
    );
    let charged = day.ledger.count(CHARGED, "").await? - charged;
    let wanted = told + i64::from(ORDERS);
    let told = day.ledger.until(TOLD, "", wanted, PATIENCE).await? - told;
    let seen = format!("{charged} charges, {told} notifications");
    let once = charged == i64::from(ORDERS) && told == i64::from(ORDERS);
    day.table.row(
        fault,
        "bank",
        "each is charged once, and told once",
        seen,
        once,
    );

    let mut dead = 0.0;
    for (service, queue) in [
        ("orders", "orders.saga"),
        ("payments", "payments.stock"),
        ("inventory", "inventory.orders"),
    ] {
        let series = (
            "shop_queue_depth",
            &[("queue", queue), ("which", "dead")][..],
        );
        dead += day.operators.read(service, series).await;
    }
    day.table.row(
        fault,
        "operators",
        "a crash makes no dead letter",
        format!("{dead}"),
        dead == 0.0,
    );
    let order = answers
        .last()
        .and_then(|answer| answer.order())
        .unwrap_or_default();
    let services = day.traces.services(&order)?;
    day.table.row(
        fault,
        "traces",
        "an order is still followed through 8 services",
        services.join(", "),
        services.len() == 8,
    );
    Ok(())
}
