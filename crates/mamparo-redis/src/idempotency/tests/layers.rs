//! Servers whose layers share one Redis.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use mamparo::idempotency::{IdempotencyBody, IdempotencyLayer, IdempotencyPolicy};
use mamparo_core::BoxError;
use mamparo_testkit::private::PrivateRedis;
use tokio::task::JoinSet;
use tower::util::BoxCloneSyncService;
use tower::{Layer, ServiceExt, service_fn};

use super::cast::store;

type Body = Full<Bytes>;
type Server = BoxCloneSyncService<Request<Body>, Response<IdempotencyBody<Body>>, BoxError>;

const MANY: usize = 200;

/// A server of its own connection, whose handler takes its time and counts.
fn server(redis: &PrivateRedis, runs: &Arc<AtomicU32>) -> Server {
    let policy = IdempotencyPolicy::for_all_callers().build().unwrap();
    let runs = Arc::clone(runs);
    let layer = IdempotencyLayer::new(store(redis), policy);
    BoxCloneSyncService::new(layer.layer(service_fn(move |_| {
        let runs = Arc::clone(&runs);
        async move {
            tokio::time::sleep(Duration::from_millis(50)).await;
            let number = runs.fetch_add(1, Relaxed) + 1;
            let body = Full::from(format!("charge {number}"));
            Ok::<_, Infallible>(Response::new(body))
        }
    })))
}

async fn send(server: Server, key: &str) -> (u16, Bytes) {
    let request = Request::post("/charges").header("idempotency-key", key);
    let request = request.body(Full::from("100")).unwrap();
    let response = server.oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    (
        status,
        response.into_body().collect().await.unwrap().to_bytes(),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_200_requests_with_one_key_to_two_servers_one_is_run() {
    let redis = PrivateRedis::start().await;
    let runs = Arc::default();
    let servers = [server(&redis, &runs), server(&redis, &runs)];
    let mut requests = JoinSet::new();
    for number in 0..MANY {
        requests.spawn(send(servers[number % 2].clone(), "one"));
    }
    let mut answered = 0;
    while let Some(answer) = requests.join_next().await {
        match answer.unwrap() {
            (200, body) => {
                assert_eq!(body, "charge 1");
                answered += 1;
            }
            (status, body) => assert_eq!(status, 409, "{body:?}"),
        }
    }
    assert!(answered >= 1);
    assert_eq!(runs.load(Relaxed), 1);
    for server in servers {
        assert_eq!(send(server, "one").await, (200, "charge 1".into()));
    }
}

/// Row: Redis restarted in the middle. A clear answer, and no second effect.
#[tokio::test]
async fn a_server_whose_redis_is_away_answers_503_and_then_as_before() {
    let redis = PrivateRedis::durable().await;
    let runs = Arc::default();
    let server = server(&redis, &runs);
    assert_eq!(send(server.clone(), "one").await, (200, "charge 1".into()));
    redis.kill().await;
    assert_eq!(send(server.clone(), "one").await.0, 503);
    assert_eq!(send(server.clone(), "two").await.0, 503);
    redis.restart().await;
    assert_eq!(send(server.clone(), "one").await, (200, "charge 1".into()));
    assert_eq!(send(server, "two").await, (200, "charge 2".into()));
    assert_eq!(runs.load(Relaxed), 2);
}
