//! A dependency of the request path: slow, gone, or standing still. The order path can't do without it, and says so; the rest goes on.

use std::time::Duration;

use mamparo_core::{BoxError, clock};
use tokio::time::sleep;

use crate::gameday::customers::{Customers, Statuses};
use crate::gameday::day::{Day, PATIENCE};

/// What orders has for a request.
const BUDGET: Duration = Duration::from_secs(3);

/// With an open breaker nobody waits.
const AT_ONCE: Duration = Duration::from_millis(500);

/// As many customers as come at once to a shop that is mended, and how long they wait before they come again.
const CROWD: usize = 10;
const BETWEEN: Duration = Duration::from_millis(250);

const BREAKER: &str = r#"mamparo_breaker_state{mamparo_dependency="catalog"}"#;
const OTHER_BREAKER: &str = r#"mamparo_breaker_state{mamparo_dependency="customers"}"#;
const FULL: &str =
    r#"mamparo_rejections_total{mamparo_dependency="catalog",mamparo_reason="bulkhead_full"}"#;

pub(super) async fn slow(day: &mut Day) -> Result<(), BoxError> {
    let known = day.customers.order(&Customers::somebody(), "book").await?;
    let known = format!("/orders/{}", known.order().ok_or("no order was taken")?);
    day.misbehave("catalog", "latency_ms=1800").await?;
    let customers = day.customers.clone();
    let (refused, other) = tokio::join!(refused(day, 2 * 20), customers.get(&known));
    refused?;
    let other = other?;
    let seen = format!("{} after {} ms", other.status, other.took.as_millis());
    let holds = other.status == 200 && other.took < AT_ONCE;
    day.table
        .customers("meanwhile an order is shown at once", seen, holds);
    let full = day.operators.read("orders", FULL).await;
    let seen = format!("{full} refused");
    day.table
        .operators("the bulkhead lets 20 of 40 in", seen, full >= 20.0);
    broken(day).await?;
    day.misbehave("catalog", "latency_ms=0").await?;
    mended(day).await
}

pub(super) async fn stopped(day: &mut Day) -> Result<(), BoxError> {
    day.town.kill("catalog").await?;
    refused(day, CROWD).await?;
    broken(day).await?;
    day.town.start("catalog").await?;
    mended(day).await
}

pub(super) async fn hangs(day: &mut Day) -> Result<(), BoxError> {
    day.town.freeze("catalog")?;
    refused(day, CROWD).await?;
    broken(day).await?;
    day.town.thaw("catalog")?;
    mended(day).await
}

/// The first that come: they wait for as long as the policy allows.
async fn refused(day: &mut Day, crowd: usize) -> Result<(), BoxError> {
    let answers = day.customers.crowd(crowd).await?;
    let longest = answers.iter().map(|answer| answer.took).max();
    let longest = longest.unwrap_or_default().as_millis();
    let seen = format!("{}, the longest after {longest} ms", Statuses(&answers));
    let holds = answers.iter().all(|answer| answer.is_not_now(BUDGET));
    day.table
        .customers("503, Retry-After, a problem, in under 3 s", seen, holds);
    Ok(())
}

/// Those that come later.
async fn broken(day: &mut Day) -> Result<(), BoxError> {
    let state = day
        .operators
        .until("orders", BREAKER, |state| state > 0.0)
        .await;
    let other = day.operators.read("orders", OTHER_BREAKER).await;
    let seen = format!("catalog {state}, customers {other}");
    let holds = state > 0.0 && other == 0.0;
    day.table
        .operators("the catalog's breaker opens, and no other", seen, holds);

    let list = day.customers.get("/orders?customer=customer-0").await?;
    let partial = &list.body["partial"];
    let seen = format!(
        "{}, partial: {partial}, {} ms",
        list.status,
        list.took.as_millis()
    );
    let holds = list.status == 200 && partial == true && list.took < BUDGET;
    day.table
        .customers("lists come without names: partial", seen, holds);

    // The breaker may be trying the catalog just now: the quickest of some.
    let mut took = Vec::new();
    for _ in 0..5 {
        let answer = day.customers.order(&Customers::somebody(), "book").await?;
        took.extend(answer.is_not_now(AT_ONCE).then_some(answer.took));
    }
    let quickest = took.iter().min().map_or(u128::MAX, Duration::as_millis);
    let seen = format!(
        "{} of 5 refused, the quickest after {quickest} ms",
        took.len()
    );
    day.table
        .customers("with the breaker open, 503 at once", seen, !took.is_empty());

    let spans = day.traces.all()?;
    let failed = spans.iter().filter(|span| {
        span.service == "orders" && span.is("mamparo.dependency", "catalog") && span.is_error()
    });
    let failed = failed.count();
    let seen = format!("{failed} spans");
    day.table
        .traces("the call of the catalog is what failed", seen, failed > 0);
    Ok(())
}

/// The breaker tries again by itself, closes, and lets more and more in.
async fn mended(day: &mut Day) -> Result<(), BoxError> {
    let begun = clock::now();
    let mut answers = day.customers.crowd(CROWD).await?;
    while begun.elapsed() < PATIENCE && answers.iter().any(|answer| answer.status != 201) {
        sleep(BETWEEN).await;
        answers = day.customers.crowd(CROWD).await?;
    }
    day.confirmed("mended, orders are taken again by itself", &answers)
        .await
}
