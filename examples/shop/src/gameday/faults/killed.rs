//! Every service of the saga killed while customers order, one after the other, and started again.

use std::time::Duration;

use mamparo_core::BoxError;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::common::bus::QUEUES;
use crate::gameday::customers::{Answer, Customers};
use crate::gameday::day::Day;

const ORDERS: u32 = 24;
const SERVICES: [&str; 5] = [
    "payments",
    "inventory",
    "orders",
    "notifications",
    "gateway",
];

/// Between two customers, so that the last come when the last service is killed.
const BETWEEN: Duration = Duration::from_millis(100);

const CHARGES: &str = "SELECT count(*) FROM bank.charges WHERE key > $1";
const TOLD: &str =
    "SELECT count(*) FROM notifications.sent WHERE what = 'order.confirmed' AND order_id > $1";
const ORDERED: &str = "SELECT count(*) FROM orders.orders WHERE customer = $1";
const DEAD: &str = r#"mamparo_message_depth{mamparo_message_state="dead"}"#;

pub(super) async fn killed(day: &mut Day) -> Result<(), BoxError> {
    let charged = day.ledger.count(CHARGES, "").await?;
    let told = day.ledger.count(TOLD, "").await?;
    let names: Vec<String> = (0..ORDERS).map(|_| Customers::somebody()).collect();
    let mut ordering = JoinSet::new();
    for (name, number) in names.clone().into_iter().zip(0..) {
        let customers = day.customers.clone();
        ordering.spawn(async move {
            sleep(BETWEEN * number).await;
            customers.insist(&name).await
        });
    }
    for service in SERVICES {
        sleep(2 * BETWEEN).await;
        day.town.kill(service).await?;
        sleep(2 * BETWEEN).await;
        day.town.start(service).await?;
    }
    let answers: Result<Vec<Answer>, BoxError> = ordering.join_all().await.into_iter().collect();
    let answers = answers?;
    day.confirmed("who tries again with the same key is served", &answers)
        .await?;
    let mut otherwise = 0;
    for name in &names {
        otherwise += i64::from(day.ledger.count(ORDERED, name).await? != 1);
    }
    let seen = format!("{otherwise} customers with none or two");
    day.table
        .ledger("each customer has one order", seen, otherwise == 0);

    let wanted = i64::from(ORDERS);
    let charged = day.ledger.count(CHARGES, "").await? - charged;
    let told = day.ledger.until(TOLD, "", told + wanted).await? - told;
    let seen = format!("{charged} charges, {told} notifications");
    day.table.ledger(
        "each is charged once, and told once",
        seen,
        (charged, told) == (wanted, wanted),
    );

    let mut dead = 0.0;
    for (service, ..) in QUEUES {
        dead += day.operators.read(service, DEAD).await;
    }
    day.table
        .operators("a crash makes no dead letter", dead, dead == 0.0);
    day.followed(&answers).await
}
