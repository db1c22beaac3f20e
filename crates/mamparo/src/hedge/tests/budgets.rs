//! The load that hedges add, and the delay that follows the dependency.

use std::sync::Arc;
use std::time::Duration;

use mamparo_core::{Budget, Plain, clock};
use mamparo_testkit::service::{Script, Step};
use proptest::prelude::*;
use tower::{Layer, ServiceExt};

use super::cast::*;
use crate::hedge::{HedgeBuilder, HedgeLayer, HedgePolicy};
use crate::retry::{RetryLayer, RetryPolicy};

fn plain(policy: HedgeBuilder) -> HedgeLayer<Plain> {
    HedgeLayer::new(policy.build().unwrap(), Plain::idempotent())
}

/// Makes calls one after another, each in a tenth of a second.
async fn calls(layer: &HedgeLayer<Plain>, peer: &Script<u32, u32>, times: usize) {
    for _ in 0..times {
        let next = clock::now() + 100 * MS;
        drop(layer.layer(peer.clone()).oneshot(1).await);
        tokio::time::sleep_until(next).await;
    }
}

fn taking(latency: Duration) -> Script<u32, u32> {
    Script::new([]).otherwise(move || Step::answer(1).after(latency))
}

/// Rows G8 and P-D3: a uniformly slow dependency is not made slower by more than the cap.
#[tokio::test(start_paused = true)]
async fn hedges_add_no_more_load_than_their_cap() {
    let layer = plain(policy().fixed(10 * MS).max_extra_load(0.2));
    let peer = taking(50 * MS);
    calls(&layer, &peer, 1000).await;
    let hedges = peer.started() - 1000;
    // 20 % of the operations, and one a second in the hundred seconds.
    assert!((290..=301).contains(&hedges), "{hedges}");
}

#[tokio::test(start_paused = true)]
async fn the_shared_budget_pays_for_hedges_too() {
    let budget = Budget::builder()
        .ratio(0.1)
        .min_per_second(0)
        .build()
        .unwrap();
    let heard = Heard::default();
    let layer = plain(policy().fixed(10 * MS).budget(budget.clone()));
    let layer = layer.observer(Arc::new(heard.clone()));
    let peer = taking(50 * MS);
    calls(&layer, &peer, 100).await;
    assert_eq!((peer.started(), budget.consumed()), (110, 10));
    assert!(heard.all().contains(&"off: budget_exhausted".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn the_cap_says_so_when_it_refuses() {
    let heard = Heard::default();
    let layer = plain(policy().fixed(10 * MS).max_extra_load(0.01));
    let layer = layer.observer(Arc::new(heard.clone()));
    calls(&layer, &taking(50 * MS), 2).await;
    assert!(heard.all().contains(&"off: extra_load".to_owned()));
}

/// A token is spent when the hedge is sent, not when it is thought of.
#[tokio::test(start_paused = true)]
async fn a_hedge_that_was_not_sent_costs_nothing() {
    let budget = Budget::builder()
        .ratio(0.0)
        .min_per_second(1)
        .build()
        .unwrap();
    let layer = plain(policy().budget(budget.clone()));
    let one_slot = mamparo_testkit::service::Strict::with_slots(taking(500 * MS), 1);
    layer.layer(one_slot).oneshot(1).await.unwrap();
    assert_eq!(budget.consumed(), 0);
    assert!(budget.withdraw(clock::now(), None, 0).is_ok());
}

/// Inside of a retry, the operation has been paid in there.
#[tokio::test(start_paused = true)]
async fn an_operation_pays_into_a_budget_once() {
    let budget = Budget::builder()
        .ratio(0.1)
        .min_per_second(0)
        .build()
        .unwrap();
    let retry = RetryPolicy::builder()
        .budget(budget.clone())
        .build()
        .unwrap();
    let retry = RetryLayer::new(retry, Plain::idempotent());
    let stack = (retry, plain(policy().budget(budget.clone())));
    for _ in 0..10 {
        stack.layer(taking(MS)).oneshot(1).await.unwrap();
    }
    assert_eq!(budget.allowed(clock::now()), 1);
}

fn percentile() -> HedgeBuilder {
    let builder = HedgePolicy::builder().percentile(0.9).delay(300 * MS);
    builder
        .min_samples(20)
        .without_extra_load_cap()
        .budget(Budget::unlimited())
}

/// The configured delay until there are enough samples, then the percentile of what was seen.
#[tokio::test(start_paused = true)]
async fn the_delay_follows_the_dependency() {
    let layer = plain(percentile());
    let slow = Script::new([Step::answer(1).after(400 * MS)]).otherwise(|| Step::answer(1));
    layer.layer(slow.clone()).oneshot(1).await.unwrap();
    assert_eq!(
        (slow.starts()[1] - slow.starts()[0]),
        300 * MS,
        "no samples yet"
    );

    calls(&layer, &taking(20 * MS), 30).await;
    let slow = Script::new([Step::answer(1).after(400 * MS)]).otherwise(|| Step::answer(1));
    layer.layer(slow.clone()).oneshot(1).await.unwrap();
    let delay = slow.starts()[1] - slow.starts()[0];
    assert!(delay >= 20 * MS && delay <= 23 * MS, "{delay:?}");
}

/// Row P-D3.
#[tokio::test(start_paused = true)]
async fn fast_failures_do_not_lower_the_delay() {
    let layer = plain(percentile().max_attempts(2));
    calls(&layer, &taking(50 * MS), 30).await;
    let failing = Script::<u32, u32>::new([]).otherwise(|| Step::error("down"));
    calls(&layer, &failing, 100).await;
    let slow = Script::new([Step::answer(1).after(400 * MS)]).otherwise(|| Step::answer(1));
    layer.layer(slow.clone()).oneshot(1).await.unwrap();
    assert!(slow.starts()[1] - slow.starts()[0] >= 50 * MS);
}

/// Row P-D2: a loser that was given up was at least as slow as it had been, so hedging does not hide a slow dependency.
#[tokio::test(start_paused = true)]
async fn what_was_given_up_still_counts_as_slow() {
    let layer = plain(percentile().delay(30 * MS));
    // Every original takes half a second, every hedge a millisecond.
    let peer = Script::<u32, u32>::new((0..200).map(|call| match call % 2 {
        0 => Step::answer(1).after(500 * MS),
        _ => Step::answer(1).after(MS),
    }));
    calls(&layer, &peer, 60).await;
    let slow = Script::new([Step::hang()]).otherwise(|| Step::answer(1));
    layer.layer(slow.clone()).oneshot(1).await.unwrap();
    assert!(
        slow.starts()[1] - slow.starts()[0] >= 30 * MS,
        "not a hedge's own millisecond"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// "retries + hedges ≤ budget", whatever each attempt comes to, and nothing runs on afterwards.
    #[test]
    fn retries_and_hedges_together_stay_within_the_budget(
        ratio in 0.0f64..=1.0,
        steps in prop::collection::vec((0u32..60, 0u8..4), 1..200),
        attempts in 1u32..5,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let budget = Budget::builder().ratio(ratio).min_per_second(0).build().unwrap();
            let hedge = plain(policy().fixed(20 * MS).max_attempts(attempts).budget(budget.clone()));
            let retry = RetryPolicy::builder().budget(budget.clone()).build().unwrap();
            let retry = RetryLayer::new(retry, Plain::idempotent());
            let script = steps.into_iter().map(|(ms, end)| match end {
                0 => Step::error("down").after(ms * MS),
                1 => Step::hang(),
                _ => Step::answer(1).after(ms * MS),
            });
            let peer = Script::<u32, u32>::new(script).otherwise(|| Step::answer(1));
            let operations = 60;
            for call in 0..operations {
                let limit = 200 * MS;
                let result = if call % 2 == 0 {
                    tokio::time::timeout(limit, hedge.layer(peer.clone()).oneshot(1)).await
                } else {
                    tokio::time::timeout(limit, retry.layer(peer.clone()).oneshot(1)).await
                };
                drop(result);
                assert_eq!(peer.running(), 0);
            }
            let resends = peer.started() - operations;
            assert!(resends as f64 <= ratio * operations as f64 + 1e-6, "{resends} at {ratio}");
            assert_eq!(budget.consumed(), resends as u64);
        });
    }
}
