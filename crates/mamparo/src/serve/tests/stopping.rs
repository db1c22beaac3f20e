//! How a server runs and stops.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ::http::{Request, Response, Version};
use mamparo_core::clock;
use mamparo_testkit::body::ScriptedBody;
use tokio::time::sleep;
use tower::{Layer, ServiceExt, service_fn};

use super::super::*;

const fn secs(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn policy() -> StopPolicy {
    let policy = StopPolicy::builder().delay(secs(5)).grace(secs(20));
    policy.build().unwrap()
}

/// What `/health/ready` says.
fn is_ready(readiness: &Readiness) -> bool {
    readiness.is_ready()
}

#[tokio::test(start_paused = true)]
async fn it_is_not_ready_first_then_takes_no_more_then_finishes_and_then_flushes() {
    let start = clock::now();
    let readiness = Readiness::default();
    let watch = readiness.clone();
    let serve = async |stop: StopAccepting| {
        sleep(secs(10) - Duration::from_millis(1)).await;
        assert!(is_ready(&watch));
        sleep(Duration::from_millis(2)).await;
        assert!(!is_ready(&watch), "told after 10 s");
        stop.await;
        assert_eq!(clock::now() - start, secs(15), "and 5 s of delay");
        sleep(secs(7)).await;
        Ok::<_, Infallible>(())
    };
    let flushed = Arc::new(AtomicBool::new(false));
    let flush = Arc::clone(&flushed);
    let graceful = Graceful::new(readiness, policy()).flush(move || async move {
        assert_eq!(clock::now() - start, secs(22));
        flush.store(true, Ordering::Relaxed);
    });
    let stopped = graceful.run(sleep(secs(10)), serve).await.unwrap();
    assert_eq!(stopped, Stopped::Finished);
    assert!(flushed.load(Ordering::Relaxed));
}

#[tokio::test(start_paused = true)]
async fn what_does_not_finish_is_cut_when_the_grace_is_over() {
    let start = clock::now();
    let serve = async |stop: StopAccepting| {
        stop.await;
        pending::<Result<(), Infallible>>().await
    };
    let graceful = Graceful::new(Readiness::default(), policy()).flush(pending);
    let stopped = graceful.run(sleep(secs(1)), serve).await.unwrap();
    assert_eq!(stopped, Stopped::Cut);
    assert_eq!(
        clock::now() - start,
        secs(1) + policy().longest(),
        "and a flush that hangs too"
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_fails_says_why_and_flushes() {
    let flushed = Arc::new(AtomicBool::new(false));
    let flush = Arc::clone(&flushed);
    let graceful = Graceful::new(Readiness::default(), policy());
    let graceful = graceful.flush(move || async move { flush.store(true, Ordering::Relaxed) });
    let failed = graceful.run(pending(), async |_| Err("no more sockets"));
    let error = failed.await.unwrap_err();
    assert_eq!(error.to_string(), "the server failed: no more sockets");
    assert!(flushed.load(Ordering::Relaxed));
    let graceful = Graceful::new(Readiness::default(), policy());
    let ended = graceful.run(pending(), async |_| Ok::<_, Infallible>(()));
    assert_eq!(ended.await.unwrap(), Stopped::ByItself);
}

/// A missing dependency does not keep it from serving; a bad configuration ends it.
#[tokio::test(start_paused = true)]
async fn it_serves_while_it_waits_and_ends_when_it_is_set_up_wrong() {
    let missing = || async { Err("refused".into()) };
    let readiness = Readiness::builder()
        .check("database", missing)
        .build()
        .unwrap();
    let graceful = Graceful::new(readiness, policy());
    let serve = async |stop: StopAccepting| {
        stop.await;
        Ok::<_, Infallible>(())
    };
    let stopped = graceful.run(sleep(secs(60)), serve).await.unwrap();
    assert_eq!(stopped, Stopped::Finished);

    let wrong = || async { Err(Misconfigured::new("no such database").into()) };
    let readiness = Readiness::builder()
        .check("database", wrong)
        .build()
        .unwrap();
    let start = clock::now();
    let failed = Graceful::new(readiness, policy())
        .run(pending(), serve)
        .await;
    let error = failed.unwrap_err();
    assert_eq!(
        error.to_string(),
        "database: set up wrong: no such database"
    );
    assert_eq!(clock::now(), start);
}

/// Whoever keeps connections opens no request on one that is about to be closed.
#[tokio::test(start_paused = true)]
async fn answers_while_it_stops_say_that_they_are_the_last_on_their_connection() {
    let readiness = Readiness::default();
    let handler =
        async |_: Request<ScriptedBody>| Ok::<_, Infallible>(Response::new(ScriptedBody::empty()));
    let server = http()
        .readiness(readiness.clone())
        .layer(service_fn(handler));
    let last = async |version| {
        let mut request = Request::new(ScriptedBody::empty());
        *request.version_mut() = version;
        let answer = server.clone().oneshot(request).await.unwrap();
        answer.headers().contains_key("connection")
    };
    assert!(!last(Version::HTTP_11).await);
    readiness.stop();
    assert!(last(Version::HTTP_11).await && last(Version::HTTP_10).await);
    assert!(!last(Version::HTTP_2).await, "there it would be an error");
}
