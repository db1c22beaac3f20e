//! What is kept, and for how long.

use std::sync::Arc;
use std::time::Duration;

use mamparo::idempotency::{Begin, IdempotencyStore as _, RecordState, Written, conformance};
use mamparo_testkit::private::PrivateRedis;

use super::super::RedisIdempotency;
use super::cast::{HOUR, RUN, answer, begin, completed, store};
use crate::RedisServer;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_store_passes_the_tests_of_all_stores() {
    let redis = PrivateRedis::start().await;
    conformance::all(&Arc::new(store(&redis))).await;
}

/// As two server processes would.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_connections_to_one_server_are_one_store() {
    let redis = PrivateRedis::start().await;
    let (one, other) = (Arc::new(store(&redis)), Arc::new(store(&redis)));
    conformance::of_many_begins_one_runs(&one, &other).await;
    conformance::stale_completions_and_takeovers_race_to_one_answer(&one, &other).await;
}

#[tokio::test]
async fn redis_forgets_keys_by_itself() {
    let redis = PrivateRedis::start().await;
    let store = store(&redis);
    let brief = Duration::from_millis(50);
    let dropped = Begin {
        term: brief,
        retention: brief,
        ..begin()
    };
    assert_eq!(store.begin(&dropped).await.unwrap(), RUN);
    let ended = begin();
    assert_eq!(store.begin(&ended).await.unwrap(), RUN);
    assert_eq!(
        store
            .complete(ended.lease(), &answer(""), brief)
            .await
            .unwrap(),
        Written::Done
    );
    assert_eq!(redis.command("DBSIZE").await, ":2\r\n");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(
        redis.command("DBSIZE").await,
        ":0\r\n",
        "nobody has asked for them since"
    );
}

#[tokio::test]
async fn no_key_is_kept_for_ever() {
    let redis = PrivateRedis::start().await;
    let store = store(&redis);
    let started = Begin {
        term: Duration::MAX,
        retention: Duration::MAX,
        ..begin()
    };
    assert_eq!(store.begin(&started).await.unwrap(), RUN);
    let Some(record) = store.find(started.id).await.unwrap() else {
        panic!("it was started");
    };
    assert!(
        matches!(record.state, RecordState::Started { lease_left } if lease_left > 1_000 * HOUR)
    );
    assert_eq!(
        store.renew(started.lease(), Duration::MAX).await.unwrap(),
        Written::Done
    );
    let key = redis.command("RANDOMKEY").await;
    let key = key.lines().nth(1).unwrap();
    let left = redis.command(&format!("TTL {key}")).await;
    assert!(
        left.trim_start_matches(':').trim().parse::<i64>().unwrap() > 0,
        "{left}"
    );
}

#[tokio::test]
async fn two_prefixes_are_two_stores() {
    let redis = PrivateRedis::start().await;
    let shop = RedisServer::builder(&redis.url())
        .prefix("shop")
        .build()
        .unwrap();
    let shop = RedisIdempotency::new(shop);
    let begin = begin();
    assert_eq!(shop.begin(&begin).await.unwrap(), RUN);
    assert_eq!(store(&redis).find(begin.id).await.unwrap(), None);
    let key = redis.command("RANDOMKEY").await;
    assert!(key.contains("shop:idempotency:"), "{key}");
}

/// What the documentation says of `appendfsync always`.
#[tokio::test]
async fn a_durable_server_that_is_killed_has_lost_nothing_that_it_answered() {
    let redis = PrivateRedis::durable().await;
    let store = store(&redis);
    let mut kept = Vec::new();
    for _ in 0..50 {
        kept.push(completed(&store, "kept").await);
    }
    redis.kill().await;
    redis.restart().await;
    for begin in kept {
        let record = store.find(begin.id).await.unwrap().unwrap();
        assert_eq!(record.state, RecordState::Completed(answer("kept")));
    }
}
