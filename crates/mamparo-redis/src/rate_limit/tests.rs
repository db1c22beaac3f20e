//! Replicas that share a limit, over real servers.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mamparo::rate_limit::{Ask, LimitStore as _, RateLimitLayer, RateLimitPolicy, Replicas};
use mamparo_core::{BoxError, Event, Observer, Rejection, What, clock};
use mamparo_testkit::private::PrivateRedis;
use tokio::task::JoinSet;
use tower::util::BoxCloneSyncService;
use tower::{Layer, ServiceExt, service_fn};

use super::RedisRateLimit;
use crate::RedisServer;

type Replica = BoxCloneSyncService<u32, u32, BoxError>;

const SECOND: Duration = Duration::from_secs(1);

fn store(redis: &PrivateRedis) -> RedisRateLimit {
    RedisRateLimit::new(RedisServer::at(&redis.url()).unwrap(), "mail").unwrap()
}

fn policy(per_second: u32, burst: u32) -> RateLimitPolicy {
    let policy = RateLimitPolicy::per(SECOND, per_second).burst(burst);
    policy.build().unwrap()
}

/// A replica with a connection and a layer of its own.
fn replica(
    redis: &PrivateRedis,
    policy: RateLimitPolicy,
    replicas: Replicas,
    seen: &Seen,
) -> Replica {
    let layer = RateLimitLayer::new(policy)
        .dependency("mail")
        .observer(Arc::new(seen.clone()))
        .shared(store(redis), replicas)
        .unwrap();
    let inner = service_fn(async |call: u32| Ok::<_, Infallible>(call));
    BoxCloneSyncService::new(layer.layer(inner))
}

/// The switches between the store and the replica's own share.
#[derive(Clone, Debug, Default)]
struct Seen(Arc<Mutex<Vec<&'static str>>>);

impl Observer for Seen {
    fn on(&self, event: &Event<'_>) {
        let word = match event.what {
            What::RateLimitStoreAway { .. } => "away",
            What::RateLimitStoreBack { .. } => "back",
            _ => return,
        };
        self.0.lock().unwrap().push(word);
    }
}

/// Calls as fast as it can for so long; returns how many passed, and how long the slowest took.
async fn press(replica: Replica, time: Duration, at_once: usize) -> (u32, Duration) {
    let until = clock::now() + time;
    let mut callers = JoinSet::new();
    for _ in 0..at_once {
        let replica = replica.clone();
        callers.spawn(async move {
            let (mut passed, mut slowest) = (0, Duration::ZERO);
            while clock::now() < until {
                let began = clock::now();
                match replica.clone().oneshot(0).await {
                    Ok(_) => passed += 1,
                    Err(error) => {
                        assert!(Rejection::of(&*error).is_some(), "{error}");
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                }
                slowest = slowest.max(began.elapsed());
            }
            (passed, slowest)
        });
    }
    let each = callers.join_all().await;
    let passed = each.iter().map(|(passed, _)| passed).sum();
    (
        passed,
        each.iter().map(|(_, slowest)| *slowest).max().unwrap(),
    )
}

/// Two replicas under more load than the limit: how many passed, and in how long.
async fn both(replicas: [Replica; 2], time: Duration) -> (u32, Duration) {
    let began = clock::now();
    let [one, other] = replicas;
    let (one, other) = tokio::join!(press(one, time, 8), press(other, time, 8));
    assert!(
        one.0 > 0 && other.0 > 0,
        "both get something: {one:?}, {other:?}"
    );
    (one.0 + other.0, began.elapsed())
}

/// What may pass in that time.
fn most(per_second: u32, burst: u32, time: Duration) -> u32 {
    burst + (f64::from(per_second) * time.as_secs_f64()).ceil() as u32
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_replicas_together_let_the_limit_pass_and_no_more() {
    let redis = PrivateRedis::start().await;
    let seen = Seen::default();
    let two = || replica(&redis, policy(200, 50), Replicas::of(2), &seen);
    let (passed, time) = both([two(), two()], 2 * SECOND).await;
    let most = most(200, 50, time);
    assert!(passed <= most, "{passed} of {most}");
    assert!(
        passed >= most * 8 / 10,
        "what may pass does: {passed} of {most}"
    );
    assert_eq!(*seen.0.lock().unwrap(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_are_within_the_stated_bound() {
    let redis = PrivateRedis::start().await;
    let seen = Seen::default();
    let two = || replica(&redis, policy(500, 20), Replicas::of(2).batch(8), &seen);
    let (passed, time) = both([two(), two()], SECOND).await;
    let most = most(500, 20, time) + 2 * 7;
    assert!(passed <= most, "{passed} of {most}");
    assert!(passed >= most * 8 / 10, "{passed} of {most}");
}

/// One burst at the most each time that it goes away and comes back, one call a replica, and while it is away from one of
/// them, that one's share.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_redis_is_away_each_replica_goes_by_its_share_and_then_together_again() {
    let redis = PrivateRedis::start().await;
    let seen = Seen::default();
    let settings = Replicas::of(2).ask_again_after(Duration::from_millis(200));
    let two = || replica(&redis, policy(100, 20), settings, &seen);
    let (one, other) = (two(), two());
    let began = clock::now();
    let pressed = both([one.clone(), other.clone()], 4 * SECOND);
    let outage = async {
        tokio::time::sleep(SECOND).await;
        redis.kill().await;
        tokio::time::sleep(2 * SECOND).await;
        redis.restart().await;
    };
    let ((passed, _), ()) = tokio::join!(pressed, outage);
    // One learns up to 200 ms before the other that it is back, and that one goes by its half of the rate meanwhile.
    let between = most(50, 0, Duration::from_millis(200));
    let most = most(100, 20, began.elapsed()) + 20 + 2 + between;
    assert!(passed <= most, "{passed} of {most}");
    assert!(
        passed >= 300,
        "an outage lets most of the rate pass: {passed}"
    );
    let mut words = seen.0.lock().unwrap().clone();
    words.sort_unstable();
    assert_eq!(words, ["away", "away", "back", "back"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_does_not_answer_holds_no_call_for_longer_than_stated() {
    let redis = PrivateRedis::start().await;
    let seen = Seen::default();
    let one = replica(&redis, policy(1_000, 1_000), Replicas::of(2), &seen);
    one.clone().oneshot(0).await.unwrap();
    redis.command("CLIENT PAUSE 1500 ALL").await;
    let (passed, slowest) = press(one, SECOND, 4).await;
    assert!(passed > 100, "{passed}");
    // Twice 50 ms, and what a busy machine adds.
    assert!(slowest < Duration::from_millis(250), "{slowest:?}");
}

#[tokio::test]
async fn what_redis_has_refused_is_refused_without_asking() {
    let redis = PrivateRedis::start().await;
    let one = replica(&redis, policy(1, 1), Replicas::of(2), &Seen::default());
    one.clone().oneshot(0).await.unwrap();
    let asked = |info: String| {
        let calls = info.split("cmdstat_evalsha:calls=").nth(1)?;
        calls.split(',').next()?.parse::<u32>().ok()
    };
    let before = asked(redis.command("INFO commandstats").await);
    for _ in 0..100 {
        let error = one.clone().oneshot(0).await.unwrap_err();
        let wait = Rejection::of(&*error).unwrap().retry_after().unwrap();
        assert!(wait <= SECOND && wait > SECOND / 2, "{wait:?}");
    }
    assert_eq!(asked(redis.command("INFO commandstats").await), before);
}

#[tokio::test]
async fn a_call_may_wait_for_its_turn() {
    let redis = PrivateRedis::start().await;
    let policy = RateLimitPolicy::per(SECOND, 20).burst(1).max_wait(SECOND);
    let policy = policy.build().unwrap();
    let seen = Seen::default();
    let two = || replica(&redis, policy, Replicas::of(2), &seen);
    let (one, other) = (two(), two());
    let began = clock::now();
    let mut calls = JoinSet::new();
    for number in 0..6 {
        calls.spawn([&one, &other][number % 2].clone().oneshot(0));
    }
    assert!(calls.join_all().await.iter().all(Result::is_ok));
    assert!(
        began.elapsed() >= Duration::from_millis(240),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test]
async fn a_key_is_gone_when_its_burst_is_whole_again() {
    let redis = PrivateRedis::start().await;
    let store = store(&redis);
    let ask = Ask {
        key: [7; 16],
        interval: 1_000_000,
        burst: 100,
        cost: 60,
        more: 0,
    };
    let granted = store.take(ask).await.unwrap();
    assert_eq!(granted.taken, 60);
    assert!(
        granted.full_in > Duration::from_millis(50) && granted.full_in <= Duration::from_millis(60)
    );
    let refused = store.take(ask).await.unwrap();
    assert_eq!(refused.taken, 0);
    let rest = store
        .take(Ask {
            cost: 10,
            more: 500,
            ..ask
        })
        .await
        .unwrap();
    assert!((40..=45).contains(&rest.taken), "{rest:?}");
    assert_eq!(redis.command("DBSIZE").await, ":1\r\n");
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(redis.command("DBSIZE").await, ":0\r\n");
}

#[tokio::test]
async fn what_redis_itself_says_is_the_cause() {
    let server = RedisServer::at("redis://127.0.0.1:1").unwrap();
    let store = RedisRateLimit::new(server, "limit").unwrap();
    let ask = Ask {
        key: [0; 16],
        interval: 1,
        burst: 1,
        cost: 1,
        more: 0,
    };
    let error = store.take(ask).await.unwrap_err();
    assert!(error.source().is_some(), "{error}");
}

#[test]
fn a_name_that_would_move_keys_is_refused() {
    let server = RedisServer::at("redis://127.0.0.1:1").unwrap();
    assert!(RedisRateLimit::new(server.clone(), "").is_err());
    assert!(RedisRateLimit::new(server, "a{b}").is_err());
}
