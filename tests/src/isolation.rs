//! A slow dependency and a healthy one behind one service: what a bulkhead and a deadline are for.

use std::sync::Arc;
use std::time::Duration;

use mamparo::bulkhead::{BulkheadLayer, BulkheadPolicy};
use mamparo::deadline::{DeadlineLayer, DeadlinePolicy};
use mamparo_core::{BoxError, Plain, clock};
use mamparo_testkit::service::{Script, Step};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tower::{Layer, Service, ServiceExt};

/// As many requests as the service works on at once; others wait.
const WORKERS: usize = 32;

/// Requests to each of the two dependencies, one every so often.
const REQUESTS: u32 = 1_000;
const EVERY: Duration = Duration::from_millis(10);

/// What the slow one takes, and what the healthy one does.
const SLOW: Duration = Duration::from_secs(8);
const HEALTHY: Duration = Duration::from_millis(20);

type Dependency = Script<u32, u32>;

fn takes(time: Duration) -> Dependency {
    Dependency::new([]).otherwise(move || Step::answer(7).after(time))
}

/// Serves both kinds of requests; returns the 99th percentile of what the healthy ones took, in milliseconds.
async fn serve<S>(other: Option<S>) -> u128
where
    S: Service<u32, Error = BoxError, Future: Send> + Clone + Send + 'static,
    S::Response: Send,
{
    let workers = Arc::new(Semaphore::new(WORKERS));
    let (mut healthy, mut others) = (JoinSet::new(), JoinSet::new());
    let dependency = takes(HEALTHY);
    for number in 0..REQUESTS {
        if let Some(other) = other.clone() {
            let workers = Arc::clone(&workers);
            others.spawn(async move {
                let _worker = workers.acquire().await;
                other.oneshot(number).await.is_ok()
            });
        }
        let (workers, dependency) = (Arc::clone(&workers), dependency.clone());
        let arrived = clock::now();
        healthy.spawn(async move {
            let _worker = workers.acquire().await;
            dependency.oneshot(number).await.unwrap();
            arrived.elapsed().as_millis()
        });
        tokio::time::sleep(EVERY).await;
    }
    others.join_all().await;
    let mut times = healthy.join_all().await;
    times.sort_unstable();
    times[times.len() * 99 / 100]
}

#[tokio::test(start_paused = true)]
async fn a_bulkhead_and_a_deadline_keep_a_slow_dependency_from_starving_a_healthy_one() {
    let alone = serve(None::<Dependency>).await;
    let bare = serve(Some(takes(SLOW))).await;
    assert!(
        bare > 10 * alone,
        "{bare} ms: without them there is nothing to show"
    );

    let slow = takes(SLOW);
    let policy = BulkheadPolicy::builder().limit(8).max_waiting(8);
    let bulkhead = BulkheadLayer::new(policy.build().unwrap(), Plain::idempotent());
    let deadline = DeadlineLayer::new(DeadlinePolicy::within(Duration::from_secs(1)).unwrap());
    let guarded = (deadline, bulkhead.clone()).layer(slow.clone());
    let protected = serve(Some(guarded)).await;
    assert!(
        protected * 10 < alone * 11,
        "{protected} ms beside {alone} ms alone"
    );
    assert_eq!(slow.max_running(), 8);
    let handle = bulkhead.handle();
    assert_eq!(
        (handle.in_flight(), handle.queued(), slow.running()),
        (0, 0, 0)
    );
}
