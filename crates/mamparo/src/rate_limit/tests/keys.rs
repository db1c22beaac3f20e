//! A limit for each key.

use std::collections::HashMap;

use mamparo_core::{CallContext, Tenant};
use mamparo_testkit::service::Script;
use tower::{Layer, Service, ServiceExt};

use super::cast::*;

#[tokio::test(start_paused = true)]
async fn each_key_has_a_limit_of_its_own_and_those_without_one_share_one() {
    let layer = limit(per_second(1)).per_key(|key: &u32| (*key < 10).then_some(*key));
    let mail = layer.layer(peer());
    for key in [1, 2, 10] {
        assert!(mail.clone().oneshot(key).await.is_ok());
    }
    for key in [1, 2, 11] {
        assert!(mail.clone().oneshot(key).await.is_err());
    }
    assert_eq!(layer.keys(), 2);
}

#[tokio::test(start_paused = true)]
async fn each_tenant_has_a_limit_of_its_own() {
    let mail = limit(per_second(1)).per_tenant().layer(peer());
    let mut passed = Vec::new();
    for tenant in [Some("a"), Some("a"), Some("b"), None, None] {
        let mut context = CallContext::current().with_tenant(tenant.map(Tenant::of));
        let mut ready = mail.clone().ready_oneshot().await.unwrap();
        // The tenant is asked for when the call is made.
        passed.push(context.enter(|| ready.call(1)).await.is_ok());
    }
    assert_eq!(passed, [true, false, true, true, false]);
}

/// However many keys there are, their number is bounded, and so is what passes.
#[tokio::test(start_paused = true)]
async fn a_million_keys_stay_at_the_bound_and_pass_no_more_than_that_many() {
    let policy = per_second(2).max_keys(1_600);
    let layer = limit(policy).per_key(|key: &u32| Some(*key));
    let mut mail = layer.layer(tower::service_fn(|key: u32| {
        std::future::ready(Ok::<_, std::convert::Infallible>(key))
    }));
    let mut passed = 0;
    for key in 0..1_000_000 {
        passed += u32::from(mail.ready().await.unwrap().call(key).await.is_ok());
    }
    assert_eq!(layer.keys(), 1_600);
    assert_eq!(passed, 2 * 1_600, "a burst for each place, and no more");
}

/// Row I2, of the limiter: no key is ever without a limit, and who is displaced early owes what it displaced.
#[tokio::test(start_paused = true)]
async fn a_key_that_displaces_another_takes_its_debt_over() {
    let layer = limit(per_second(1).max_keys(2)).per_key(|key: &u32| Some(*key));
    let mail = layer.layer(peer());
    let passes = async |key| mail.clone().oneshot(key).await.is_ok();
    assert!(passes(1).await && passes(2).await);
    assert!(!passes(3).await, "the first's debt is not forgotten");
    tokio::time::sleep(secs(1)).await;
    assert!(passes(4).await && passes(5).await);
}

/// A key comes back after so many others that its state was displaced: it gains what a whole round of them owes.
#[tokio::test(start_paused = true)]
async fn eviction_lets_no_more_pass_than_the_bound_says() {
    let (keys, seconds) = (4_usize, 20_u64);
    let layer = limit(per_second(2).max_keys(keys)).per_key(|key: &u32| Some(*key));
    let peer: Script<u32, u32> = peer();
    let mail = layer.layer(peer.clone());
    for second in 0..seconds {
        for key in 0..100_u32 {
            drop(mail.clone().oneshot(key % (5 + second as u32)).await);
        }
        tokio::time::sleep(secs(1)).await;
    }
    let mut by_key = HashMap::<u32, usize>::new();
    for key in peer.requests() {
        *by_key.entry(key).or_default() += 1;
    }
    assert!(by_key.len() > keys);
    assert!(peer.started() <= keys * (2 + 2 * seconds as usize));
}
