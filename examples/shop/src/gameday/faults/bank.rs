//! The payment provider: dead, and slow to answer what it has done. Nobody waits for it but messages.

use std::time::Duration;

use mamparo_core::BoxError;

use super::Fault;
use crate::gameday::customers::Customers;
use crate::gameday::day::{Day, PATIENCE};

const ORDERS: usize = 8;

const BREAKER: (&str, &[(&str, &str)]) =
    ("mamparo_breaker_state", &[("mamparo_dependency", "bank")]);

/// Charges of the orders that the bank has made, each under its own key.
const CHARGED: &str = "SELECT count(*) FROM bank.charges WHERE key > $1";

pub(super) async fn dead(day: &mut Day) -> Result<(), BoxError> {
    let before = day.ledger.count(CHARGED, "").await?;
    day.town.kill("bank").await?;
    let answers = day.customers.crowd(ORDERS).await?;
    let taken = answers.iter().filter(|answer| answer.status == 201).count();
    day.table.row(
        Fault::DeadBank,
        "customers",
        "orders are taken all the same",
        format!("{taken} of {ORDERS}"),
        taken == ORDERS,
    );

    let state = day
        .operators
        .until("payments", BREAKER, |state| state == 2.0, PATIENCE)
        .await;
    let retry = (
        "shop_messages_total",
        &[("queue", "payments.stock"), ("settled", "retry")][..],
    );
    let retried = day
        .operators
        .until("payments", retry, |count| count > 0.0, PATIENCE)
        .await;
    let seen = format!("breaker {state}, {retried} messages to the retry queue");
    day.table.row(
        Fault::DeadBank,
        "operators",
        "the bank's breaker opens, messages wait in the retry queue",
        seen,
        state == 2.0 && retried > 0.0,
    );

    day.town.start("bank").await?;
    let outcome = day.customers.outcome(&answers, PATIENCE).await?;
    day.table.row(
        Fault::DeadBank,
        "customers",
        "the bank back, all are confirmed",
        &outcome,
        outcome == format!("{ORDERS} CONFIRMED"),
    );
    let charged = day.ledger.count(CHARGED, "").await? - before;
    day.table.row(
        Fault::DeadBank,
        "bank",
        "each order is charged once",
        format!("{charged} charges of {ORDERS} orders"),
        charged == i64::try_from(ORDERS)?,
    );

    let again = day.traces.all()?;
    let again = again
        .iter()
        .filter(|span| span.name == "process payments.stock" && span.is("shop.attempt", "2"));
    let again = again.count();
    day.table.row(
        Fault::DeadBank,
        "traces",
        "second attempts have spans of their own",
        format!("{again} spans"),
        again > 0,
    );
    Ok(())
}

pub(super) async fn lost_answer(day: &mut Day) -> Result<(), BoxError> {
    // The bank has charged by then; payments waits for 5 s.
    day.misbehave("bank", "latency_ms=7000").await?;
    let answer = day.customers.order(&Customers::somebody(), "book").await?;
    let order = answer.order().ok_or("no order was taken")?;
    let charged = "SELECT count(*) FROM bank.charges WHERE key = $1";
    day.ledger.until(charged, &order, 1, PATIENCE).await?;
    day.misbehave("bank", "latency_ms=0").await?;
    let begun = mamparo_core::clock::now();
    let outcome = day.customers.outcome(&[answer], PATIENCE).await?;
    let seen = format!("{outcome} after {} s", begun.elapsed().as_secs());
    let holds = outcome == "1 CONFIRMED" && begun.elapsed() < Duration::from_secs(20);
    day.table.row(
        Fault::LostAnswer,
        "customers",
        "confirmed, at the second attempt",
        seen,
        holds,
    );
    let asked = day
        .ledger
        .count("SELECT asked FROM bank.charges WHERE key = $1", &order)
        .await?;
    let charges = day.ledger.count(charged, &order).await?;
    let seen = format!("asked {asked} times, {charges} charge");
    day.table.row(
        Fault::LostAnswer,
        "bank",
        "asked twice with one key, it charges once",
        seen,
        asked > 1 && charges == 1,
    );
    let timed_out = (
        "mamparo_attempts_total",
        &[
            ("mamparo_dependency", "bank"),
            ("mamparo_attempt_verdict", "timeout"),
        ][..],
    );
    let timed_out = day.operators.read("payments", timed_out).await;
    day.table.row(
        Fault::LostAnswer,
        "operators",
        "an attempt that timed out",
        timed_out,
        timed_out > 0.0,
    );
    Ok(())
}
