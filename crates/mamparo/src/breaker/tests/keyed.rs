//! One breaker a key.

use std::sync::Arc;

use http::Request;
use mamparo_core::{Plain, Rejection};
use mamparo_testkit::service::{Script, Step};
use tower::{Layer, ServiceExt, service_fn};

use super::super::circuit::Circuit;
use super::super::journal::Journal;
use super::cast::{Heard, SECOND, policy};
use crate::breaker::{BreakerLayer, BreakerPolicy, BreakerState, ByAuthority, KeyOf, Window};

/// Fails for hosts whose name begins with `down`.
async fn peer(host: &'static str) -> Result<&'static str, &'static str> {
    if host.starts_with("down") {
        Err(host)
    } else {
        Ok(host)
    }
}

fn key(host: &&'static str) -> Option<&'static str> {
    (!host.is_empty()).then_some(*host)
}

/// Row J10.
#[tokio::test(start_paused = true)]
async fn a_host_that_is_down_does_not_shut_out_one_that_is_up() {
    let layer = BreakerLayer::keyed(policy().build().unwrap(), Plain::idempotent(), key);
    let service = layer.layer(service_fn(peer));
    service.clone().oneshot("down").await.unwrap_err();
    let error = service.clone().oneshot("down").await.unwrap_err();
    assert!(Rejection::of(&*error).unwrap().is_breaker_open());
    service.clone().oneshot("up").await.unwrap();
    let states = ["down", "up"].map(|key| layer.handle().of(key).unwrap().state());
    assert_eq!(states, [BreakerState::Open, BreakerState::Closed]);
    layer.handle().of("up").unwrap().force_open();
    service.oneshot("up").await.unwrap_err();
    assert!(layer.handle().of("unknown").is_none());
}

/// Row J10: no request goes without.
#[tokio::test(start_paused = true)]
async fn requests_without_a_key_have_a_breaker_in_common() {
    let layer = BreakerLayer::keyed(policy().build().unwrap(), Plain::idempotent(), key);
    layer.handle().force_open();
    let service = layer.layer(service_fn(peer));
    service.clone().oneshot("").await.unwrap_err();
    service.oneshot("up").await.unwrap();
}

/// Row I2: what gives way is said, with its state.
#[tokio::test(start_paused = true)]
async fn the_key_used_the_longest_ago_gives_way_and_is_said_to_be_gone() {
    let heard = Heard::default();
    let policy = policy().max_keys(2).build().unwrap();
    let layer = BreakerLayer::keyed(policy, Plain::idempotent(), key);
    let layer = layer.observer(Arc::new(heard.clone()));
    let mut follower = layer.handle().transitions();
    let service = layer.layer(service_fn(peer));
    for host in ["down 1", "down 2", "up 3"] {
        drop(service.clone().oneshot(host).await);
    }
    assert_eq!(
        heard.changes(),
        [
            "down 1closed>open: consecutive_failures",
            "down 2closed>open: consecutive_failures",
            "down 1open>gone: evicted"
        ]
    );
    let mut keys = layer.handle().keys();
    keys.sort_unstable();
    assert_eq!(keys, ["down 2", "up 3"].map(Arc::from));
    follower.next().await;
    follower.next().await;
    let gone = follower.next().await;
    assert_eq!((gone.key.as_deref(), gone.to), (Some("down 1"), None));
}

/// Row I2: metrics that were removed are not made again by what was still under way.
#[tokio::test(start_paused = true)]
async fn nobody_hears_of_a_breaker_after_it_is_gone() {
    let heard = Heard::default();
    let policy = policy().max_keys(1).build().unwrap();
    let layer = BreakerLayer::keyed(policy, Plain::idempotent(), key);
    let layer = layer.observer(Arc::new(heard.clone()));
    let peer = Script::new([Step::error("late").after(SECOND), Step::answer(7)]);
    let service = layer.layer(peer);
    let late = tokio::spawn(service.clone().oneshot("first"));
    tokio::task::yield_now().await;
    service.oneshot("second").await.unwrap();
    late.await.unwrap().unwrap_err();
    assert_eq!(heard.changes(), ["firstclosed>gone: evicted"]);
}

/// Row I2: a flood of keys.
#[tokio::test(start_paused = true)]
async fn a_million_keys_stay_at_the_bound() {
    let policy = BreakerPolicy::builder().max_keys(2_048).build().unwrap();
    let layer = BreakerLayer::keyed(policy, Plain::idempotent(), |key: &u32| {
        Some(key.to_string())
    });
    let service = layer.layer(service_fn(async |key: u32| Ok::<_, &str>(key)));
    for key in 0..1_000_000 {
        service.clone().oneshot(key).await.unwrap();
    }
    assert_eq!(layer.handle().key_count(), 2_048);
}

#[test]
fn a_keyed_breaker_takes_a_kilobyte_at_most() {
    for window in [Window::calls(512), Window::default()] {
        let policy = BreakerPolicy::builder().failure_rate(0.5).window(window);
        let policy = Arc::new(policy.build().unwrap());
        let key = Some(Arc::from("a.rather.long.name.of.a.host.example.org:8443"));
        let circuit = Circuit::new(policy, Arc::new(Journal::new()), key, false);
        assert!(
            circuit.bytes() <= 1024,
            "{} bytes for {window:?}",
            circuit.bytes()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_key_is_shown_in_part_and_told_apart_from_others_that_begin_alike() {
    let layer = BreakerLayer::keyed(
        policy().build().unwrap(),
        Plain::idempotent(),
        |key: &String| Some(key.clone()),
    );
    let service = layer.layer(service_fn(async |_: String| Err::<(), _>("down")));
    for last in ["a", "b"] {
        let key = "ñ".repeat(10_000) + last;
        service.clone().oneshot(key).await.unwrap_err();
    }
    let keys = layer.handle().keys();
    assert!(keys.len() == 2 && keys.iter().all(|key| key.len() < 160));
}

/// A user's name and password in an address are no part of a label.
#[test]
fn an_authority_is_the_host_and_port_of_the_address_or_of_the_header() {
    let key = |uri: &str, host: Option<&str>| {
        let mut request = Request::get(uri);
        if let Some(host) = host {
            request = request.header("host", host);
        }
        let key = ByAuthority.key(&request.body(()).unwrap());
        key.map(|key| key.as_ref().to_owned())
    };
    assert_eq!(
        key("http://catalog:8080/a", Some("other")).as_deref(),
        Some("catalog:8080")
    );
    assert_eq!(
        key("http://user:secret@Catalog/a", None).as_deref(),
        Some("catalog")
    );
    assert_eq!(
        key("http://user:secret@catalog/a", None).as_deref(),
        Some("catalog")
    );
    assert_eq!(
        key("/a", Some("catalog:8080")).as_deref(),
        Some("catalog:8080")
    );
    assert_eq!(key("/a", Some("no authority/")), None);
    assert_eq!(key("/a", None), None);
}

/// Row I2: as many keys as the bound says have a breaker, however they fall.
#[tokio::test(start_paused = true)]
async fn no_key_gives_way_before_the_bound_is_reached() {
    for keys in [1_000, 1_039, 5_000] {
        let policy = policy().max_keys(keys).build().unwrap();
        let by = |key: &usize| Some(key.to_string());
        let layer = BreakerLayer::keyed(policy, Plain::idempotent(), by);
        let service = layer.layer(service_fn(async |_: usize| Err::<(), _>("down")));
        for key in 0..keys {
            service.clone().oneshot(key).await.unwrap_err();
        }
        assert_eq!(layer.handle().key_count(), keys);
        for key in 0..keys {
            let error = service.clone().oneshot(key).await.unwrap_err();
            assert!(Rejection::of(&*error).is_some(), "{key} of {keys} passes");
        }
    }
}

/// Rows A14 and I2: a flood of keys that are well leaves what is open, or was forced, as it is.
#[tokio::test(start_paused = true)]
async fn keys_that_are_closed_give_way_first() {
    let policy = policy().max_keys(4).build().unwrap();
    let layer = BreakerLayer::keyed(policy, Plain::idempotent(), |key: &String| {
        Some(key.clone())
    });
    let service = layer.layer(service_fn(async |key: String| {
        if key.starts_with("down") {
            Err("down")
        } else {
            Ok(())
        }
    }));
    let call = |key: &str| service.clone().oneshot(key.to_owned());
    call("down").await.unwrap_err();
    call("forced").await.unwrap();
    layer.handle().of("forced").unwrap().force_open();
    for key in 0..100 {
        call(&format!("up {key}")).await.unwrap();
    }
    for key in ["down", "forced"] {
        let error = call(key).await.unwrap_err();
        assert!(Rejection::of(&*error).is_some(), "{key} was forgotten");
    }
    for key in 0..100 {
        call(&format!("down {key}")).await.unwrap_err();
    }
    assert_eq!(layer.handle().key_count(), 4);
}
