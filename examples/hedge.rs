//! Shows a hedge cutting the tail: one request in twenty is slow, and hardly any caller sees it.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use mamparo::hedge::{HedgeLayer, HedgePolicy};
use mamparo_core::{BoxError, Plain, clock};
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};

const CALLS: u32 = 200;

/// A dependency that answers in 2 ms, but every twentieth time in 200 ms; and a count of what was sent to it.
fn dependency() -> (impl Lookup, Arc<AtomicU32>) {
    let sent = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&sent);
    let service = service_fn(move |question: u32| {
        let slow = count.fetch_add(1, Relaxed) % 20 == 19;
        async move {
            tokio::time::sleep(Duration::from_millis(if slow { 200 } else { 2 })).await;
            Ok::<_, BoxError>(question + 1)
        }
    });
    (service, sent)
}

trait Lookup: Service<u32, Response = u32, Error = BoxError, Future: Send> + Clone + Send {}
impl<S> Lookup for S where
    S: Service<u32, Response = u32, Error = BoxError, Future: Send> + Clone + Send
{
}

/// Calls one after another, and returns the time that 97 % of the calls stayed below.
async fn measure(service: impl Lookup) -> Result<Duration, BoxError> {
    let mut times = Vec::new();
    for question in 0..CALLS {
        let start = clock::now();
        service.clone().oneshot(question).await?;
        times.push(start.elapsed());
    }
    times.sort();
    Ok(times[(CALLS * 97 / 100) as usize])
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let (bare, _) = dependency();
    let without = measure(bare).await?;

    let policy = HedgePolicy::builder().fixed(Duration::from_millis(20));
    let layer = HedgeLayer::new(policy.build()?, Plain::idempotent()).dependency("catalog");
    let (peer, sent) = dependency();
    let with = measure(ServiceBuilder::new().layer(layer).service(peer)).await?;

    let extra = sent.load(Relaxed) - CALLS;
    println!("97 % of the calls took less than {without:?}, and less than {with:?} when hedged");
    println!("for {extra} requests more than the {CALLS}");
    assert!(with < without / 2 && extra <= CALLS / 10);
    Ok(())
}
