//! A dependency of the request path: slow, gone, or standing still. The order path can't do without it, and says so; the rest goes on.

use std::time::Duration;

use mamparo_core::{BoxError, clock};
use tokio::time::sleep;

use super::Fault;
use crate::gameday::customers::{Customers, Statuses};
use crate::gameday::day::{Day, PATIENCE};

/// What orders has for a request.
const BUDGET: Duration = Duration::from_secs(3);

/// As many customers as come at once to a shop that is mended, and how long they wait before they come again.
const CROWD: usize = 10;
const BETWEEN: Duration = Duration::from_millis(250);

/// With an open breaker nobody waits.
const AT_ONCE: Duration = Duration::from_millis(500);

const BREAKER: (&str, &[(&str, &str)]) = (
    "mamparo_breaker_state",
    &[("mamparo_dependency", "catalog")],
);

pub(super) async fn slow(day: &mut Day) -> Result<(), BoxError> {
    day.misbehave("catalog", "latency_ms=1800").await?;
    broken(day, Fault::SlowCatalog, 40).await?;
    let full = (
        "mamparo_rejections_total",
        &[
            ("mamparo_dependency", "catalog"),
            ("mamparo_reason", "bulkhead_full"),
        ][..],
    );
    let full = day.operators.read("orders", full).await;
    day.table.row(
        Fault::SlowCatalog,
        "operators",
        "the bulkhead lets 20 of 40 in",
        format!("{full} refused"),
        full > 0.0,
    );
    day.misbehave("catalog", "latency_ms=0").await?;
    mended(day, Fault::SlowCatalog).await
}

pub(super) async fn stopped(day: &mut Day) -> Result<(), BoxError> {
    day.town.kill("catalog").await?;
    broken(day, Fault::CatalogStopped, 10).await?;
    day.town.start("catalog").await?;
    mended(day, Fault::CatalogStopped).await
}

pub(super) async fn hangs(day: &mut Day) -> Result<(), BoxError> {
    day.town.freeze("catalog")?;
    broken(day, Fault::CatalogHangs, 10).await?;
    day.town.thaw("catalog")?;
    mended(day, Fault::CatalogHangs).await
}

async fn broken(day: &mut Day, fault: Fault, crowd: usize) -> Result<(), BoxError> {
    let answers = day.customers.crowd(crowd).await?;
    let longest = answers
        .iter()
        .map(|answer| answer.took)
        .max()
        .unwrap_or_default();
    let seen = format!(
        "{}, the longest after {} ms",
        Statuses(&answers),
        longest.as_millis()
    );
    let holds = answers.iter().all(|answer| answer.is_not_now(BUDGET));
    day.table.row(
        fault,
        "customers",
        "503, Retry-After, a problem, in under 3 s",
        seen,
        holds,
    );

    let state = day
        .operators
        .until("orders", BREAKER, |state| state > 0.0, PATIENCE)
        .await;
    let customers = (
        "mamparo_breaker_state",
        &[("mamparo_dependency", "customers")][..],
    );
    let other = day.operators.read("orders", customers).await;
    let seen = format!("catalog {state}, customers {other}");
    day.table.row(
        fault,
        "operators",
        "the catalog's breaker opens, and no other",
        seen,
        state > 0.0 && other == 0.0,
    );

    let list = day.customers.get("/orders?customer=customer-0").await?;
    let seen = format!(
        "{}, partial: {}, {} ms",
        list.status,
        list.body["partial"],
        list.took.as_millis()
    );
    let holds = list.status == 200 && list.body["partial"] == true && list.took < BUDGET;
    day.table.row(
        fault,
        "customers",
        "their list comes without names: partial",
        seen,
        holds,
    );

    // The breaker may be trying the catalog just now.
    let mut quickest = day.customers.order(&Customers::somebody(), "book").await?;
    for _ in 0..5 {
        let again = day.customers.order(&Customers::somebody(), "book").await?;
        quickest = [quickest, again]
            .into_iter()
            .min_by_key(|answer| answer.took)
            .ok_or("none")?;
    }
    let seen = format!("{} after {} ms", quickest.status, quickest.took.as_millis());
    day.table.row(
        fault,
        "customers",
        "with the breaker open, 503 at once",
        seen,
        quickest.is_not_now(AT_ONCE),
    );

    let spans = day.traces.all()?;
    let failed = spans
        .iter()
        .filter(|span| span.service == "orders" && span.is("mamparo.dependency", "catalog"));
    let failed = failed.filter(|span| span.is_error()).count();
    day.table.row(
        fault,
        "traces",
        "the call of the catalog is what failed",
        format!("{failed} spans"),
        failed > 0,
    );
    Ok(())
}

/// The breaker tries again by itself, closes, and lets more and more in.
async fn mended(day: &mut Day, fault: Fault) -> Result<(), BoxError> {
    let begun = clock::now();
    let mut answers = day.customers.crowd(CROWD).await?;
    while begun.elapsed() < PATIENCE && answers.iter().any(|answer| answer.status != 201) {
        sleep(BETWEEN).await;
        answers = day.customers.crowd(CROWD).await?;
    }
    let outcome = day.customers.outcome(&answers, PATIENCE).await?;
    let state = day.operators.read("orders", BREAKER).await;
    let seen = format!("{outcome}, breaker {state}");
    let holds = outcome == format!("{CROWD} CONFIRMED") && state == 0.0;
    day.table.row(
        fault,
        "customers",
        "mended, orders are taken again by itself",
        seen,
        holds,
    );
    Ok(())
}
