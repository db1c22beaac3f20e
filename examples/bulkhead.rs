//! Shows bulkheads: a slow dependency that can't take more than its places, a tenant's share, and a limit changed while it works.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::convert::Infallible;
use std::time::Duration;

use mamparo::bulkhead::{BulkheadLayer, BulkheadPolicy, Partitions, Share};
use mamparo_core::{BoxError, Plain, Rejection, Tenant};
use tokio::task::JoinSet;
use tower::{Layer, Service, ServiceExt};

/// A search for somebody.
struct Search {
    tenant: &'static str,
}

/// A dependency that takes its time.
async fn slow(_: Search) -> Result<(), Infallible> {
    tokio::time::sleep(Duration::from_millis(60)).await;
    Ok(())
}

/// Searches so often at once; tells how many were answered and how many were refused.
async fn search<S>(service: &S, tenant: &'static str, count: usize) -> (usize, usize)
where
    S: Service<Search, Response = (), Error = BoxError, Future: Send> + Clone + Send + 'static,
{
    let mut calls = JoinSet::new();
    for _ in 0..count {
        calls.spawn(service.clone().oneshot(Search { tenant }));
    }
    let ends = calls.join_all().await;
    let answered = ends.iter().filter(|end| end.is_ok()).count();
    let full = |error: &BoxError| Rejection::of(&**error).is_some_and(Rejection::is_bulkhead_full);
    let refused = ends.iter().filter(|end| end.as_ref().is_err_and(full));
    (answered, refused.count())
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let partitions = Partitions::builder()
        .tenant(Tenant::of("acme"), Share::percent(50, 100)?)
        .others(Share::percent(0, 50)?)
        .build()?;
    let policy = BulkheadPolicy::builder()
        .limit(8)
        .max_waiting(0)
        .partitions(partitions)
        .build()?;
    let layer = BulkheadLayer::new(policy, Plain::idempotent())
        .dependency("search")
        .tenant_by(|search: &Search| Some(Tenant::of(search.tenant)));
    let handle = layer.handle();
    let service = layer.layer(tower::service_fn(slow));

    let (greedy, acme) = tokio::join!(search(&service, "greedy", 50), search(&service, "acme", 4));
    println!("greedy: {} answered, {} refused", greedy.0, greedy.1);
    println!("acme:   {} answered, {} refused", acme.0, acme.1);
    assert_eq!((greedy, acme), ((4, 46), (4, 0)));

    handle.resize(20)?;
    let (answered, refused) = search(&service, "greedy", 50).await;
    println!(
        "greedy, of {} places: {answered} answered, {refused} refused",
        handle.limit()
    );
    assert_eq!((answered, refused), (10, 40));
    assert_eq!((handle.in_flight(), handle.queued()), (0, 0));
    Ok(())
}
