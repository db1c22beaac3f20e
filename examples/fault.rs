//! Shows a stack under faults that are injected on purpose: resets and late answers, what the retry makes of them, and the switch.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::io;
use std::time::Duration;

use mamparo::attempt_timeout::{AttemptPolicy, AttemptTimeoutLayer};
use mamparo::fault::{Fault, FaultLayer, FaultPlan};
use mamparo::retry::{RetryLayer, RetryPolicy};
use mamparo_core::{BoxError, Plain};
use tower::{Service, ServiceBuilder, ServiceExt};

const CALLS: u32 = 100;

/// Asks for a hundred prices at once; tells how many came.
async fn ask<S>(catalog: &S) -> usize
where
    S: Service<u32, Error = BoxError> + Clone,
{
    let mut answered = 0;
    for item in 0..CALLS {
        answered += usize::from(catalog.clone().oneshot(item).await.is_ok());
    }
    answered
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let plan = FaultPlan::new([
        Fault::error(|| io::Error::from(io::ErrorKind::ConnectionReset)).rate(0.15),
        // Only what is dear is slow.
        Fault::latency(Duration::from_secs(1))
            .rate(0.2)
            .when(|&item: &u32| item >= 80),
    ])?;
    let faults = FaultLayer::new(plan.with_seed(2));
    let handle = faults.handle();

    // The faults stand where the dependency would.
    let dependency = ServiceBuilder::new()
        .layer(faults)
        .service_fn(async |item: u32| Ok::<_, BoxError>(item * 100));
    let timeout = AttemptPolicy::builder().timeout(Duration::from_millis(50));
    let catalog = ServiceBuilder::new()
        .layer(RetryLayer::new(RetryPolicy::default(), Plain::idempotent()))
        .layer(AttemptTimeoutLayer::new(timeout.build()?))
        .service(dependency.clone());

    let bare = ask(&dependency).await;
    println!("bare:              {bare} of {CALLS} answered");
    let stacked = ask(&catalog).await;
    println!("behind a stack:    {stacked} of {CALLS} answered");
    let injected = handle.injected();
    println!("faults injected:   {injected}");
    handle.turn_off();
    let calm = ask(&dependency).await;
    println!("faults turned off: {calm} of {CALLS} answered");

    assert!(bare < 95 && stacked > 95 && calm == 100);
    assert_eq!(handle.injected(), injected);
    Ok(())
}
