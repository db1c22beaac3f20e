//! All is well; and one client who asks too often.

use mamparo_core::BoxError;

use super::Fault;
use crate::common::bus::QUEUES;
use crate::gameday::customers::{Customers, Statuses};
use crate::gameday::day::{Day, PATIENCE};

pub(super) async fn calm(day: &mut Day) -> Result<(), BoxError> {
    let answers = day.customers.crowd(20).await?;
    let outcome = day.customers.outcome(&answers, PATIENCE).await?;
    let seen = format!("{}, {outcome}", Statuses(&answers));
    let holds = outcome == "20 CONFIRMED";
    day.table.row(
        Fault::Calm,
        "customers",
        "20 orders are taken and confirmed",
        seen,
        holds,
    );

    let gold = day.customers.order(&Customers::somebody(), "gold").await?;
    let outcome = day.customers.outcome(&[gold], PATIENCE).await?;
    let holds = outcome == "1 CANCELLED";
    day.table.row(
        Fault::Calm,
        "customers",
        "what the bank declines (402) is cancelled",
        outcome,
        holds,
    );

    let stranger = day.customers.order("stranger-1", "book").await?;
    let (seen, holds) = (
        format!("{}, problem: {}", stranger.status, stranger.is_problem),
        stranger.status == 422 && stranger.is_problem,
    );
    day.table.row(
        Fault::Calm,
        "customers",
        "a stranger gets 422, as a problem",
        seen,
        holds,
    );

    let mut trouble = 0.0;
    for (service, queue, _) in QUEUES {
        for which in ["retry", "dead"] {
            let series = (
                "shop_queue_depth",
                &[("queue", queue), ("which", which)][..],
            );
            trouble += day.operators.read(service, series).await;
        }
        trouble += day
            .operators
            .read(service, ("shop_alerts_total", &[]))
            .await;
    }
    day.table.row(
        Fault::Calm,
        "operators",
        "no retry, no dead letter, no alert",
        trouble,
        trouble == 0.0,
    );

    let order = answers
        .first()
        .and_then(|answer| answer.order())
        .unwrap_or_default();
    let sent = "SELECT count(*) FROM notifications.sent WHERE order_id = $1";
    day.ledger.until(sent, &order, 1, PATIENCE).await?;
    let services = day.traces.services(&order)?;
    let seen = services.join(", ");
    day.table.row(
        Fault::Calm,
        "traces",
        "an order is followed through 8 services",
        seen,
        services.len() == 8,
    );
    Ok(())
}

pub(super) async fn greedy(day: &mut Day) -> Result<(), BoxError> {
    let mut answers = Vec::new();
    for _ in 0..310 {
        answers.push(day.customers.ask_as("greedy").await?);
    }
    let refused = answers.iter().filter(|answer| answer.status == 429);
    let refused: Vec<_> = refused.collect();
    let told = refused.iter().all(|answer| answer.retry_after.is_some());
    let few = (1..=10).contains(&refused.len());
    let expected = "300 a minute pass, then 429 with Retry-After";
    day.table.row(
        Fault::GreedyClient,
        "customers",
        expected,
        Statuses(&answers),
        told && few,
    );
    let other = day.customers.get("/orders?customer=nobody").await?;
    day.table.row(
        Fault::GreedyClient,
        "customers",
        "another client is served",
        other.status,
        other.status == 200,
    );
    let rejected = (
        "mamparo_rejections_total",
        &[("mamparo_reason", "rate_limited")][..],
    );
    let rejected = day.operators.read("gateway", rejected).await;
    day.table.row(
        Fault::GreedyClient,
        "operators",
        "rejections of the rate limit",
        rejected,
        rejected > 0.0,
    );
    Ok(())
}
