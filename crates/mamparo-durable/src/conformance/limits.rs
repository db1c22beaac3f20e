//! What the rate that engines share promises: [`Backend::limits`](crate::backend::Backend::limits).

use std::sync::Arc;
use std::time::Duration;

use mamparo::rate_limit::{Ask, LimitStore};
use mamparo_core::clock;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::backend::Backend;

const MS: u64 = 1_000_000;

fn ask(key: u8, interval: u64, burst: u32) -> Ask {
    Ask {
        key: [key; 16],
        interval,
        burst,
        cost: 1,
        more: 0,
    }
}

async fn take(limits: &Arc<dyn LimitStore>, ask: Ask) -> (u32, Duration) {
    let granted = limits.take(ask).await.unwrap();
    (granted.taken, granted.full_in)
}

/// A burst passes, then the rate; who asks for more gets what there is, and what does not suffice is not taken.
pub async fn a_burst_passes_and_then_the_rate(backend: Backend) {
    let Some(limits) = backend.limits() else {
        return;
    };
    let three = ask(1, 2_000 * MS, 3);
    let (taken, full_in) = take(limits, Ask { more: 9, ..three }).await;
    assert_eq!(taken, 3);
    assert!(full_in > Duration::from_secs(5) && full_in <= Duration::from_secs(6));
    let (taken, full_in) = take(limits, three).await;
    assert!(taken == 0 && full_in <= Duration::from_secs(6));
    sleep(Duration::from_millis(2_100)).await;
    assert_eq!(take(limits, Ask { cost: 2, ..three }).await.0, 0);
    assert_eq!(take(limits, three).await.0, 1);
    assert_eq!(take(limits, three).await.0, 0);
}

/// Limits of other names are not touched.
pub async fn each_name_has_a_limit_of_its_own(backend: Backend) {
    let Some(limits) = backend.limits() else {
        return;
    };
    let hour = 3_600_000 * MS;
    for key in [1, 2] {
        assert_eq!(take(limits, ask(key, hour, 1)).await.0, 1);
        assert_eq!(take(limits, ask(key, hour, 1)).await.0, 0);
    }
}

/// However many ask at once, no more passes than the rate and a burst.
pub async fn of_many_that_ask_at_once_no_more_pass_than_the_rate(backend: Backend) {
    let Some(limits) = backend.limits() else {
        return;
    };
    let (interval, burst) = (10, 4);
    let began = clock::now();
    let mut asking = JoinSet::new();
    for _ in 0..8 {
        let limits = Arc::clone(limits);
        asking.spawn(async move {
            let mut passed = 0;
            while began.elapsed() < Duration::from_millis(500) {
                passed += take(&limits, ask(1, interval * MS, burst)).await.0;
            }
            passed
        });
    }
    let passed: u32 = asking.join_all().await.into_iter().sum();
    let took = u64::try_from(began.elapsed().as_millis()).unwrap();
    let most = took / interval + u64::from(burst) + 1;
    assert!(u64::from(passed) <= most, "{passed} in {took} ms");
    assert!(u64::from(passed) >= 10, "{passed} in {took} ms");
}
