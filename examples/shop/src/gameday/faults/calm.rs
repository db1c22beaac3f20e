//! All is well; and one client who asks too often.

use mamparo_core::BoxError;
use tokio::task::JoinSet;

use crate::common::bus::QUEUES;
use crate::gameday::customers::{Customers, Statuses};
use crate::gameday::day::Day;
use crate::gameday::traces::Span;

/// What one client asks for at once, and by how many hands.
const REQUESTS: usize = 400;
const HANDS: usize = 4;

const STATUS: &str = "http.response.status_code";

pub(super) async fn calm(day: &mut Day) -> Result<(), BoxError> {
    let answers = day.customers.crowd(20).await?;
    day.confirmed("20 orders are taken and confirmed", &answers)
        .await?;

    let gold = day.customers.order(&Customers::somebody(), "gold").await?;
    let outcome = day.customers.outcome(&[gold]).await?;
    let holds = outcome == "1 CANCELLED";
    day.table
        .customers("what the bank declines (402) is cancelled", outcome, holds);

    let confirmed = answers[0].order().unwrap_or_default();
    let late = day.customers.cancel(&confirmed).await?;
    let state = day.customers.state(&confirmed).await?;
    let seen = format!("{}, problem: {}, {state}", late.status, late.is_problem);
    let holds = (late.status, late.is_problem, &*state) == (409, true, "CONFIRMED");
    let expected = "what is confirmed can't be cancelled: 409, as a problem";
    day.table.customers(expected, seen, holds);

    let stranger = day.customers.order("stranger-1", "book").await?;
    let (status, is_problem) = (stranger.status, stranger.is_problem);
    let seen = format!("{status}, problem: {is_problem}");
    day.table.customers(
        "a stranger gets 422, as a problem",
        seen,
        status == 422 && is_problem,
    );

    let mut trouble = 0.0;
    for (service, ..) in QUEUES {
        for asked in [
            r#"mamparo_message_depth{mamparo_message_state="retry"}"#,
            r#"mamparo_message_depth{mamparo_message_state="dead"}"#,
            "shop_alerts_total",
        ] {
            trouble += day.operators.read(service, asked).await;
        }
    }
    day.table.operators(
        "no retry, no dead letter, no alert",
        trouble,
        trouble == 0.0,
    );
    day.followed(&answers).await
}

pub(super) async fn greedy(day: &mut Day) -> Result<(), BoxError> {
    let mut asking = JoinSet::new();
    for _ in 0..HANDS {
        let customers = day.customers.clone();
        asking.spawn(async move {
            let mut answers = Vec::new();
            for _ in 0..REQUESTS / HANDS {
                answers.push(customers.ask_as("greedy").await?);
            }
            Ok::<_, BoxError>(answers)
        });
    }
    let mut answers = Vec::new();
    for some in asking.join_all().await {
        answers.extend(some?);
    }
    let refused: Vec<_> = answers
        .iter()
        .filter(|answer| answer.status == 429)
        .collect();
    let told = refused.iter().all(|answer| answer.retry_after.is_some());
    let holds = told && !refused.is_empty() && refused.len() <= REQUESTS - 300;
    let expected = "300 pass, and 5 a second, then 429 with Retry-After";
    day.table.customers(expected, Statuses(&answers), holds);

    let other = day.customers.get("/orders?customer=nobody").await?.status;
    day.table
        .customers("another client is served", other, other == 200);
    let refused = r#"mamparo_rejections_total{mamparo_reason="rate_limited"}"#;
    let refused = day.operators.read("gateway", refused).await;
    day.table
        .operators("rejections of the rate limit", refused, refused > 0.0);

    let spans = day.traces.all()?;
    let refused = |service: &str| {
        let refused = |span: &&Span| span.service == service && span.is(STATUS, "429");
        spans.iter().filter(refused).count()
    };
    let (gateway, orders) = (refused("gateway"), refused("orders"));
    let seen = format!("429 at gateway {gateway}, at orders {orders}");
    let holds = gateway > 0 && orders == 0;
    day.table.traces(
        "who is refused gets no further than the gateway",
        seen,
        holds,
    );
    Ok(())
}
