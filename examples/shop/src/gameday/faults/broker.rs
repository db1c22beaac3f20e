//! The broker: away for a while, and full of what nobody can read.

use std::future::pending;

use mamparo_core::BoxError;
use mamparo_rabbitmq::{Letter, Message, Selection};

use crate::common::bus::EXCHANGE;
use crate::gameday::customers::Statuses;
use crate::gameday::day::Day;

const ORDERS: usize = 10;
const LETTERS: usize = 5;

const WAITING: &str = r#"mamparo_outbox_events{mamparo_outbox_state="waiting"}"#;
const ALERTS: &str = r#"shop_alerts_total{reason="backend_fails"}"#;
const CONNECTED: &str = "shop_consumer_connected";
const DEAD: &str =
    r#"mamparo_message_depth{mamparo_message_queue="orders.saga",mamparo_message_state="dead"}"#;
const TOLD: &str =
    "SELECT count(*) FROM notifications.sent WHERE what = 'order.confirmed' AND order_id > $1";

pub(super) async fn away(day: &mut Day) -> Result<(), BoxError> {
    let before = day.ledger.count(TOLD, "").await?;
    let rabbit = day.town.ground.rabbit.take();
    let rabbit = rabbit.ok_or("the broker is somebody's")?;
    rabbit.stop().await;
    let answers = day.customers.crowd(ORDERS).await?;
    let taken = answers.iter().all(|answer| answer.status == 201);
    day.table
        .customers("orders are taken all the same", Statuses(&answers), taken);

    let waiting = day
        .operators
        .until("orders", WAITING, |waiting| waiting >= 10.0)
        .await;
    let alerts = day
        .operators
        .until("orders", ALERTS, |alerts| alerts > 0.0)
        .await;
    let connected = day
        .operators
        .until("payments", CONNECTED, |on| on == 0.0)
        .await;
    let seen = format!("{waiting} events wait, {alerts} alert, payments connected: {connected}");
    let holds = waiting >= 10.0 && alerts > 0.0 && connected == 0.0;
    day.table.operators(
        "events wait in the outbox, an alert, no consumer connected",
        seen,
        holds,
    );

    rabbit.restart().await;
    day.town.ground.rabbit = Some(rabbit);
    day.confirmed("the broker back, all are confirmed by themselves", &answers)
        .await?;
    let wanted = i64::try_from(ORDERS)?;
    let told = day.ledger.until(TOLD, "", before + wanted).await? - before;
    day.table.ledger(
        "each is told once",
        format!("{told} notifications"),
        told == wanted,
    );
    day.followed(&answers).await
}

pub(super) async fn dead_letters(day: &mut Day) -> Result<(), BoxError> {
    let publisher = day.publisher()?;
    for number in 0..LETTERS {
        let message = Message::new(r#"{"amount":"many"}"#).id(&format!("poison-{number}"));
        publisher
            .publish(EXCHANGE, "payment.confirmed", message)
            .await?;
    }
    publisher.close().await;
    let depth = day
        .operators
        .until("orders", DEAD, |depth| depth >= 5.0)
        .await;
    day.table
        .operators("5 dead letters in orders.saga.dlq", depth, depth == 5.0);

    let answers = day.customers.crowd(ORDERS).await?;
    day.confirmed("nobody waits behind them", &answers).await?;

    let poison = |letter: &Letter| {
        letter
            .message_id()
            .is_some_and(|id| id.starts_with("poison"))
    };
    let all = Selection {
        wanted: &poison,
        ..Selection::first(100)
    };
    let letters = day.dead_letters("orders")?.discard(all, pending()).await?;
    let said = |letter: &Letter| {
        let (reason, detail) = (letter.reason(), letter.detail());
        format!(
            "{reason}, {detail}, attempts {}, {}",
            letter.attempts(),
            letter.owner()
        )
    };
    let said: Vec<String> = letters.iter().map(said).collect();
    let first = said.first().map_or("", |said| said);
    let right = "permanent, the field \"order\" is missing, attempts 1, team orders";
    let holds = letters.len() == LETTERS && said.iter().all(|said| said == right);
    let seen = format!("{} discarded: {first}", letters.len());
    day.table
        .operators("each says why, how often, and whose it is", seen, holds);
    let depth = day
        .operators
        .until("orders", DEAD, |depth| depth == 0.0)
        .await;
    day.table.operators(
        "discarded, the alert ends",
        format!("{depth} dead letters"),
        depth == 0.0,
    );

    let spans = day.traces.all()?;
    let failed = spans
        .iter()
        .filter(|span| span.is_of_message("poison-") && span.is_error())
        .count();
    day.table.traces(
        "each has a span, of an error",
        format!("{failed} spans"),
        failed >= LETTERS,
    );
    Ok(())
}
