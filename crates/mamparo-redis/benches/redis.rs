//! What a stored answer and a shared limit cost, over a Redis of one's own: `cargo bench -p mamparo-redis`.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints, and fails loudly"
)]

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use mamparo::idempotency::{IdempotencyLayer, IdempotencyPolicy};
use mamparo::rate_limit::{RateLimitLayer, RateLimitPolicy, Replicas};
use mamparo_core::clock;
use mamparo_redis::{RedisIdempotency, RedisRateLimit, RedisServer};
use mamparo_testkit::private::PrivateRedis;
use tokio::task::JoinSet;
use tower::{Layer, ServiceExt, service_fn};

const TIME: Duration = Duration::from_secs(2);

/// Repeats a call in so many tasks, and says how often it was made and what one took.
async fn measure<F>(name: &str, tasks: usize, call: impl Fn(usize) -> F + Clone + Send + 'static)
where
    F: Future<Output = ()> + Send,
{
    let began = clock::now();
    let mut running = JoinSet::new();
    for task in 0..tasks {
        let call = call.clone();
        running.spawn(async move {
            let mut calls = 0_u32;
            while began.elapsed() < TIME {
                call(task).await;
                calls += 1;
            }
            calls
        });
    }
    let calls: u32 = running.join_all().await.into_iter().sum();
    let a_second = f64::from(calls) / began.elapsed().as_secs_f64();
    let each = tasks as f64 * 1e6 / a_second;
    println!("{name:<40} {tasks:>3} at once {a_second:>10.0}/s {each:>8.1} us a call");
}

#[tokio::main(worker_threads = 2)]
async fn main() {
    let redis = PrivateRedis::start().await;
    let server = RedisServer::at(&redis.url()).unwrap();
    let policy = IdempotencyPolicy::for_all_callers().build().unwrap();
    let keyed = IdempotencyLayer::new(RedisIdempotency::new(server.clone()), policy);
    let keyed = keyed.layer(service_fn(async |_: Request<_>| {
        Ok::<_, Infallible>(Response::new(Full::new(Bytes::from("charged"))))
    }));
    let send = move |key: String| {
        let keyed = keyed.clone();
        async move {
            let request = Request::post("/charges").header("idempotency-key", key);
            let request = request.body(Full::<Bytes>::default()).unwrap();
            let answer = keyed.oneshot(request).await.unwrap();
            assert_eq!(
                answer.into_body().collect().await.unwrap().to_bytes(),
                "charged"
            );
        }
    };
    for tasks in [1, 64] {
        let send = send.clone();
        measure("a stored answer", tasks, move |task| send(task.to_string())).await;
    }
    for tasks in [1, 64] {
        let send = send.clone();
        measure("a first run", tasks, move |_| {
            send(format!("{:x}", fastrand::u128(..)))
        })
        .await;
    }
    shared_limit(&server, "a shared limit", 1).await;
    shared_limit(&server, "a shared limit in batches of 32", 32).await;
}

/// A call under a limit that is never used up.
async fn shared_limit(server: &RedisServer, name: &str, batch: u32) {
    let policy = RateLimitPolicy::per(Duration::from_secs(1), 1_000_000_000);
    let store = RedisRateLimit::new(server.clone(), name).unwrap();
    let layer = RateLimitLayer::new(policy.build().unwrap())
        .shared(store, Replicas::of(2).batch(batch))
        .unwrap();
    let limited = layer.layer(service_fn(async |_: u32| Ok::<_, Infallible>(())));
    for tasks in [1, 64] {
        let limited = limited.clone();
        let call = move |_| {
            let call = limited.clone().oneshot(1);
            async move { call.await.unwrap() }
        };
        measure(name, tasks, call).await;
    }
}
