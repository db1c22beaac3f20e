//! The payment provider: dead, and slow to answer what it has done. Nobody waits for it but messages.

use mamparo_core::BoxError;

use crate::gameday::customers::{Customers, Statuses};
use crate::gameday::day::Day;

const ORDERS: usize = 8;

const BREAKER: &str = r#"mamparo_breaker_state{mamparo_dependency="bank"}"#;
const RETRIED: &str = r#"shop_messages_total{queue="payments.stock",settled="retry"}"#;
const TIMED_OUT: &str =
    r#"mamparo_attempts_total{mamparo_dependency="bank",mamparo_attempt_verdict="timeout"}"#;

/// What the bank was paid: in all, and for one order.
const CHARGES: &str = "SELECT count(*) FROM bank.charges WHERE key > $1";
const CHARGED: &str = "SELECT count(*) FROM bank.charges WHERE key = $1";
const INITIATED: &str =
    "SELECT count(*) FROM payments.charges WHERE order_id = $1 AND state = 'INITIATED'";
const ASKED: &str = "SELECT asked FROM bank.charges WHERE key = $1";

pub(super) async fn dead(day: &mut Day) -> Result<(), BoxError> {
    let before = day.ledger.count(CHARGES, "").await?;
    day.town.kill("bank").await?;
    let answers = day.customers.crowd(ORDERS).await?;
    let taken = answers.iter().all(|answer| answer.status == 201);
    day.table
        .customers("orders are taken all the same", Statuses(&answers), taken);

    let state = day
        .operators
        .until("payments", BREAKER, |state| state == 2.0)
        .await;
    let retried = day
        .operators
        .until("payments", RETRIED, |count| count > 0.0)
        .await;
    let seen = format!("breaker {state}, {retried} messages to the retry queue");
    let holds = state == 2.0 && retried > 0.0;
    day.table.operators(
        "the bank's breaker opens, messages wait in the retry queue",
        seen,
        holds,
    );

    day.town.start("bank").await?;
    day.confirmed("the bank back, all are confirmed", &answers)
        .await?;
    let charged = day.ledger.count(CHARGES, "").await? - before;
    let seen = format!("{charged} charges of {ORDERS} orders");
    day.table.ledger(
        "each order is charged once",
        seen,
        charged == i64::try_from(ORDERS)?,
    );

    let again = day.traces.all()?.into_iter().filter(|span| {
        span.is_process_of("payments.stock") && span.is("mamparo.message.attempt", "2")
    });
    let again = again.count();
    let seen = format!("{again} spans");
    day.table
        .traces("second attempts have spans of their own", seen, again > 0);
    Ok(())
}

pub(super) async fn lost_answer(day: &mut Day) -> Result<(), BoxError> {
    // The bank has charged by then; payments waits for 5 s.
    day.misbehave("bank", "latency_ms=7000").await?;
    let answer = day.customers.order(&Customers::somebody(), "book").await?;
    let order = answer.order().ok_or("no order was taken")?;
    day.ledger.until(CHARGED, &order, 1).await?;
    day.misbehave("bank", "latency_ms=0").await?;
    day.confirmed("confirmed, at the second attempt", &[answer])
        .await?;

    let (asked, charged) = (
        day.ledger.count(ASKED, &order).await?,
        day.ledger.count(CHARGED, &order).await?,
    );
    let seen = format!("asked {asked} times, {charged} charge");
    day.table.ledger(
        "asked again with the same key, the bank charges once",
        seen,
        asked > 1 && charged == 1,
    );
    let timed_out = day.operators.read("payments", TIMED_OUT).await;
    day.table
        .operators("an attempt that timed out", timed_out, timed_out > 0.0);
    let spans = day.traces.of(&order)?;
    let calls = spans
        .iter()
        .filter(|span| span.service == "payments" && span.name == "POST");
    let calls = calls.count();
    day.table.traces(
        "a span for each call of the bank",
        format!("{calls} spans"),
        calls > 1,
    );
    Ok(())
}

pub(super) async fn killed_charging(day: &mut Day) -> Result<(), BoxError> {
    day.misbehave("bank", "latency_ms=3000").await?;
    let answer = day.customers.order(&Customers::somebody(), "book").await?;
    let order = answer.order().ok_or("no order was taken")?;
    day.ledger.until(CHARGED, &order, 1).await?;
    day.town.kill("payments").await?;
    day.misbehave("bank", "latency_ms=0").await?;
    let begun = day.ledger.count(INITIATED, &order).await?;
    let seen = format!("{begun} row INITIATED");
    day.table.ledger(
        "payments has its row, and has heard nothing",
        seen,
        begun == 1,
    );
    day.town.start("payments").await?;
    day.confirmed(
        "the message comes again, and the order is confirmed",
        &[answer],
    )
    .await?;
    let asked = day.ledger.count(ASKED, &order).await?;
    let seen = format!("asked for money {asked} time");
    day.table.ledger(
        "the bank is asked what it knows of the key, not to charge again",
        seen,
        asked == 1,
    );
    let spans = day.traces.of(&order)?;
    let known = spans
        .iter()
        .any(|span| span.service == "bank" && span.name.starts_with("GET"));
    let seen = if known { "a GET at the bank" } else { "none" };
    day.table
        .traces("the question is in the order's story", seen, known);
    Ok(())
}
