//! What a breaker sees of a dependency, by where it stands.

use std::time::Duration;

use mamparo::breaker::{BreakerHandle, BreakerLayer, BreakerPolicy, BreakerState, Window};
use mamparo::retry::{RetryLayer, RetryPolicy};
use mamparo_core::{Budget, Plain};
use mamparo_testkit::service::{Script, Step};
use tower::{Layer, ServiceExt};

type Peer = Script<u32, u32>;

/// Three attempts, whoever pays.
fn retry() -> RetryLayer<Plain> {
    let policy = RetryPolicy::builder().budget(Budget::unlimited());
    RetryLayer::new(policy.build().unwrap(), Plain::idempotent()).dependency("catalog")
}

/// Opens once the last ten calls have failed.
fn breaker() -> BreakerLayer<Plain> {
    let policy = BreakerPolicy::builder()
        .no_consecutive_failures()
        .failure_rate(1.0);
    let policy = policy.window(Window::calls(10)).build().unwrap();
    BreakerLayer::new(policy, Plain::idempotent()).dependency("catalog")
}

fn failures(handle: &BreakerHandle) -> u64 {
    handle.snapshot().rates.failures
}

/// Rows B12 and P-C13: four users are twelve attempts.
#[tokio::test(start_paused = true)]
async fn inside_of_the_retry_attempts_are_counted_and_outside_of_it_operations() {
    let dead = || Peer::new([]).otherwise(|| Step::error("dead"));
    let (attempts, peer) = (breaker(), dead());
    let service = retry().layer(attempts.layer(peer.clone()));
    for user in 1..=4 {
        drop(service.clone().oneshot(1).await);
        let open = attempts.handle().state() == BreakerState::Open;
        assert_eq!(open, user == 4);
    }
    assert_eq!(
        peer.started(),
        10,
        "the fourth user's later ones were not sent"
    );

    let (operations, peer) = (breaker(), dead());
    let service = operations.layer(retry().layer(peer.clone()));
    for user in 1..=10 {
        drop(service.clone().oneshot(1).await);
        let open = operations.handle().state() == BreakerState::Open;
        assert_eq!(open, user == 10);
    }
    assert_eq!(peer.started(), 30);
}

/// Row P-C13: what a resend mends is a failure for the inner one only.
#[tokio::test(start_paused = true)]
async fn one_breaker_may_see_attempts_and_another_operations_of_the_same_dependency() {
    let peer = Peer::new([
        Step::error("once"),
        Step::answer(7).after(Duration::from_secs(1)),
    ]);
    let (operations, attempts) = (breaker(), breaker());
    let service = operations.layer(retry().layer(attempts.layer(peer)));
    let (operations, attempts) = (operations.handle(), attempts.handle());
    assert_eq!(service.oneshot(1).await.unwrap(), 7);
    assert_eq!((failures(&attempts), failures(&operations)), (1, 0));
    let calls = [attempts, operations].map(|handle| handle.snapshot().rates.calls);
    assert_eq!(calls, [2, 1]);
}
