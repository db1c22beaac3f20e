//! A server that is away, slow, full, or somebody else's.

use std::time::Duration;

use mamparo::idempotency::{IdempotencyStore as _, StoreErrorKind, Written};
use mamparo_core::clock;
use mamparo_testkit::private::PrivateRedis;

use super::super::RedisIdempotency;
use super::cast::{HOUR, RUN, answer, begin, completed, store};
use crate::RedisServer;

#[tokio::test]
async fn a_server_that_is_restarted_in_the_middle_is_an_error_until_it_is_back() {
    let redis = PrivateRedis::durable().await;
    let store = store(&redis);
    let begin = completed(&store, "kept").await;
    redis.kill().await;
    for _ in 0..3 {
        let began = clock::now();
        let error = store.find(begin.id).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error:?}");
        assert!(began.elapsed() < Duration::from_millis(1_500));
    }
    redis.restart().await;
    assert!(store.find(begin.id).await.unwrap().is_some());
    assert_eq!(
        store
            .complete(begin.lease(), &answer("again"), HOUR)
            .await
            .unwrap(),
        Written::Before
    );
}

#[tokio::test]
async fn a_connection_that_broke_while_nobody_used_it_costs_no_request() {
    let redis = PrivateRedis::durable().await;
    let store = store(&redis);
    let begin = completed(&store, "kept").await;
    redis.stop().await;
    redis.restart().await;
    assert!(store.find(begin.id).await.unwrap().is_some());
}

#[tokio::test]
async fn a_server_that_was_never_there_is_an_error_at_once_and_no_obstacle_to_a_start() {
    let redis = PrivateRedis::start().await;
    redis.kill().await;
    let store = store(&redis);
    let began = clock::now();
    let error = store.begin(&begin()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert!(began.elapsed() < Duration::from_secs(1));
    redis.restart().await;
    assert_eq!(store.begin(&begin()).await.unwrap(), RUN);
}

#[tokio::test]
async fn a_server_that_has_forgotten_the_scripts_is_told_them_again() {
    let redis = PrivateRedis::start().await;
    let store = store(&redis);
    let begin = begin();
    for _ in 0..2 {
        assert_eq!(store.begin(&begin).await.unwrap(), RUN);
        assert_eq!(redis.command("SCRIPT FLUSH").await, "+OK\r\n");
    }
    assert_eq!(
        store
            .complete(begin.lease(), &answer(""), HOUR)
            .await
            .unwrap(),
        Written::Done
    );
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_waited_for_no_longer_than_the_timeout() {
    let redis = PrivateRedis::start().await;
    let server = RedisServer::builder(&redis.url());
    let server = server.timeout(Duration::from_millis(200)).build().unwrap();
    let store = RedisIdempotency::new(server);
    let begin = begin();
    assert_eq!(store.begin(&begin).await.unwrap(), RUN);
    redis.command("CLIENT PAUSE 500 ALL").await;
    let began = clock::now();
    let error = store.find(begin.id).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::TimedOut, "{error:?}");
    assert!(
        began.elapsed() < Duration::from_millis(450),
        "{:?}",
        began.elapsed()
    );
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(store.find(begin.id).await.unwrap().is_some());
}

#[tokio::test]
async fn more_steps_than_may_be_under_way_are_refused_at_once() {
    let redis = PrivateRedis::start().await;
    let server = RedisServer::builder(&redis.url()).max_in_flight(2);
    let store = RedisIdempotency::new(server.build().unwrap());
    store.find(begin().id).await.unwrap();
    redis.command("CLIENT PAUSE 300 ALL").await;
    let id = begin().id;
    let (one, two, three) = tokio::join!(store.find(id), store.find(id), store.find(id));
    assert!(one.is_ok() && two.is_ok());
    assert_eq!(three.unwrap_err().kind(), StoreErrorKind::Overloaded);
}

#[tokio::test]
async fn a_server_without_room_refuses_and_loses_nothing() {
    let redis =
        PrivateRedis::with(&["--maxmemory", "3mb", "--maxmemory-policy", "noeviction"]).await;
    let store = store(&redis);
    let kept = completed(&store, "kept").await;
    let mut full = None;
    for _ in 0..100 {
        let begin = begin();
        let began = store.begin(&begin).await;
        let stored = match began {
            Ok(_) => store
                .complete(begin.lease(), &answer(vec![7; 100_000]), HOUR)
                .await
                .map(drop),
            Err(error) => Err(error),
        };
        if let Err(error) = stored {
            full = Some(error);
            break;
        }
    }
    let error = full.expect("a server of 3 MB has no room for 10 MB");
    assert_eq!(error.kind(), StoreErrorKind::Full, "{error:?}");
    assert!(store.find(kept.id).await.unwrap().is_some());
}

#[tokio::test]
async fn what_somebody_else_wrote_is_not_taken_for_a_key() {
    let redis = PrivateRedis::start().await;
    let store = store(&redis);
    let begin = completed(&store, "").await;
    let key = redis.command("RANDOMKEY").await;
    let key = key.lines().nth(1).unwrap();
    redis.command(&format!("HSET {key} print short")).await;
    let error = store.find(begin.id).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{error:?}");
    redis.command(&format!("SET {key} other")).await;
    let error = store.begin(&begin).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Incompatible, "{error:?}");
}
