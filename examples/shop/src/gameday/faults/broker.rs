//! The broker: away for a while, and full of what nobody can read.

use mamparo_core::BoxError;
use mamparo_rabbitmq::{Message, Selection};

use super::Fault;
use crate::common::bus::EXCHANGE;
use crate::gameday::customers::Statuses;
use crate::gameday::day::{Day, PATIENCE};

const ORDERS: usize = 10;
const LETTERS: usize = 5;

const TOLD: &str =
    "SELECT count(*) FROM notifications.sent WHERE what = 'order.confirmed' AND order_id > $1";

pub(super) async fn away(day: &mut Day) -> Result<(), BoxError> {
    let fault = Fault::BrokerAway;
    let before = day.ledger.count(TOLD, "").await?;
    let rabbit = day
        .town
        .ground
        .rabbit
        .take()
        .ok_or("the broker is somebody's")?;
    rabbit.stop().await;
    let answers = day.customers.crowd(ORDERS).await?;
    let taken = answers.iter().filter(|answer| answer.status == 201).count();
    day.table.row(
        fault,
        "customers",
        "orders are taken all the same",
        Statuses(&answers),
        taken == ORDERS,
    );

    let wanted = |waiting| waiting >= 10.0;
    let waiting = day
        .operators
        .until("orders", ("shop_relay_waiting", &[]), wanted, PATIENCE)
        .await;
    let alerts = ("shop_alerts_total", &[("reason", "backend_fails")][..]);
    let alerts = day
        .operators
        .until("orders", alerts, |alerts| alerts > 0.0, PATIENCE)
        .await;
    let connected = ("shop_consumer_connected", &[][..]);
    let connected = day
        .operators
        .until("payments", connected, |on| on == 0.0, PATIENCE)
        .await;
    let seen = format!("{waiting} events wait, {alerts} alert, consumer connected: {connected}");
    day.table.row(
        fault,
        "operators",
        "events wait in the outbox, an alert, consumers not connected",
        seen,
        wanted(waiting) && alerts > 0.0 && connected == 0.0,
    );

    rabbit.restart().await;
    day.town.ground.rabbit = Some(rabbit);
    let outcome = day.customers.outcome(&answers, PATIENCE).await?;
    day.table.row(
        fault,
        "customers",
        "the broker back, all are confirmed by themselves",
        &outcome,
        outcome == format!("{ORDERS} CONFIRMED"),
    );
    let wanted = before + i64::try_from(ORDERS)?;
    let told = day.ledger.until(TOLD, "", wanted, PATIENCE).await? - before;
    day.table.row(
        fault,
        "customers",
        "each is told once",
        format!("{told} notifications"),
        told == i64::try_from(ORDERS)?,
    );

    let order = answers
        .first()
        .and_then(|answer| answer.order())
        .unwrap_or_default();
    let services = day.traces.services(&order)?;
    let seen = format!("{} services", services.len());
    day.table.row(
        fault,
        "traces",
        "an order that waited is still one story",
        seen,
        services.len() == 8,
    );
    Ok(())
}

pub(super) async fn dead_letters(day: &mut Day) -> Result<(), BoxError> {
    let fault = Fault::FilledDeadLetters;
    let publisher = day.publisher()?;
    for number in 0..LETTERS {
        let message = Message::new(r#"{"amount":"many"}"#).id(&format!("poison-{number}"));
        publisher
            .publish(EXCHANGE, "payment.confirmed", message)
            .await?;
    }
    publisher.close().await;
    let dead = (
        "shop_queue_depth",
        &[("queue", "orders.saga"), ("which", "dead")][..],
    );
    let depth = day
        .operators
        .until("orders", dead, |depth| depth >= 5.0, PATIENCE)
        .await;
    day.table.row(
        fault,
        "operators",
        "5 dead letters in orders.saga.dlq",
        format!("{depth}"),
        depth == 5.0,
    );

    let answers = day.customers.crowd(ORDERS).await?;
    let outcome = day.customers.outcome(&answers, PATIENCE).await?;
    day.table.row(
        fault,
        "customers",
        "nobody waits behind them",
        &outcome,
        outcome == format!("{ORDERS} CONFIRMED"),
    );

    let poison = |letter: &mamparo_rabbitmq::Letter| {
        letter
            .message_id()
            .is_some_and(|id| id.starts_with("poison"))
    };
    let all = Selection {
        max: 100,
        per_second: None,
        wanted: &poison,
    };
    let letters = day
        .dead_letters("orders")?
        .discard(all, std::future::pending())
        .await?;
    let first = letters.first();
    let said = first.map(|letter| {
        format!(
            "{}, {}, attempts {}, {}",
            letter.reason(),
            letter.detail(),
            letter.attempts(),
            letter.owner()
        )
    });
    let right = letters.iter().all(|letter| {
        letter.reason() == "permanent" && letter.attempts() == 1 && letter.owner() == "team orders"
    });
    let seen = format!("{} discarded: {}", letters.len(), said.unwrap_or_default());
    day.table.row(
        fault,
        "operators",
        "each says why, how often, and whose it is",
        seen,
        right && letters.len() == LETTERS,
    );
    let depth = day
        .operators
        .until("orders", dead, |depth| depth == 0.0, PATIENCE)
        .await;
    day.table.row(
        fault,
        "operators",
        "discarded, the alert ends",
        format!("{depth} dead letters"),
        depth == 0.0,
    );

    let spans = day.traces.all()?;
    let failed = spans
        .iter()
        .filter(|span| span.name == "process orders.saga" && span.status.contains("is missing"));
    let failed = failed.count();
    day.table.row(
        fault,
        "traces",
        "each has a span that says why",
        format!("{failed} spans"),
        failed == LETTERS,
    );
    Ok(())
}
