//! Shows a circuit breaker: it opens on a dependency that fails, probes it once the wait is over, and lets calls in little by little.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use mamparo::Rejection;
use mamparo::breaker::{BreakerLayer, BreakerPolicy, BreakerState, Ramp};
use mamparo_core::{BoxError, Plain};
use tower::{Layer, ServiceExt, service_fn};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let policy = BreakerPolicy::builder()
        .consecutive_failures(3)
        .open_wait(Duration::from_millis(200), Duration::from_secs(5))
        .ramp(Ramp::linear(0.2, Duration::from_millis(500))?.floor(0))
        .build()?;
    let layer = BreakerLayer::new(policy, Plain::idempotent()).dependency("catalog");
    let handle = layer.handle();
    let mut changes = handle.transitions();

    let (down, calls) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicU32::new(0)));
    let (is_down, count) = (Arc::clone(&down), Arc::clone(&calls));
    let catalog = layer.layer(service_fn(move |item: u32| {
        count.fetch_add(1, Relaxed);
        let answer = if is_down.load(Relaxed) {
            Err("down")
        } else {
            Ok(item)
        };
        std::future::ready(answer)
    }));

    for item in 0..10 {
        let Err(error) = catalog.clone().oneshot(item).await else {
            return Err("it is down".into());
        };
        let wait = Rejection::of(&*error).and_then(Rejection::retry_after);
        println!(
            "call {item}: {error}{}",
            wait.map_or_else(String::new, |wait| format!("; come back in {wait:.0?}"))
        );
    }
    assert_eq!(
        (handle.state(), calls.load(Relaxed)),
        (BreakerState::Open, 3)
    );

    down.store(false, Relaxed);
    tokio::time::sleep(Duration::from_millis(250)).await;
    for item in 0..2 {
        catalog.clone().oneshot(item).await?;
    }
    assert_eq!(handle.state(), BreakerState::Closed);

    let mut passed = 0;
    for item in 0..100 {
        passed += u32::from(catalog.clone().oneshot(item).await.is_ok());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    println!("of the first 100 calls after it closed, {passed} passed");
    assert!((1..100).contains(&passed));
    tokio::time::sleep(Duration::from_millis(500)).await;
    catalog.oneshot(7).await?;
    assert_eq!(handle.snapshot().admitted, 1.0);

    for _ in 0..3 {
        let change = changes.next().await;
        let to = change.to.map_or("gone", BreakerState::as_str);
        println!("{} -> {to}: {}", change.from, change.cause.as_str());
    }
    Ok(())
}
