//! SIGTERM under load, of a real process.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mamparo_testkit::grpc::{EchoClient, EchoRequest, connect};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::load::{Seen, until_refused, until_told};
use super::process::{DELAY, GRACE, Server};
use crate::served::exchange;

/// On a machine that does something else besides.
const SLACK: Duration = Duration::from_secs(3);

const CLIENTS: usize = 50;

async fn all(mut clients: JoinSet<Seen>) -> Seen {
    let mut seen = Seen::default();
    while let Some(client) = clients.join_next().await {
        seen.add(&client.unwrap());
    }
    seen
}

#[expect(
    clippy::disallowed_methods,
    reason = "another process knows no paused time"
)]
fn now() -> Instant {
    Instant::now()
}

/// Clients that keep their connections, as a load balancer does, and hear from each when it ends: nothing is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_told_to_stop_under_load_loses_no_request() {
    let server = Server::start().await;
    let address = server.address;
    let ready = exchange(address, "GET /health/ready HTTP/1.1").await;
    assert!(ready.starts_with("HTTP/1.1 200 "), "{ready}");
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let path = format!("/after/{}", client * 7 % 120);
        clients.spawn(async move { until_told(address, &path).await });
    }
    sleep(Duration::from_millis(700)).await;
    server.terminate().await;
    let told = now();
    sleep(DELAY / 4).await;
    let ready = exchange(address, "GET /health/ready HTTP/1.1").await;
    assert!(
        ready.starts_with("HTTP/1.1 503 "),
        "not ready, and still served: {ready}"
    );
    let seen = timeout(SLACK * 2, all(clients))
        .await
        .expect("each hears that its connection ends");
    let (begun, answered, stopped) = server.end().await;
    assert!(now() - told < DELAY + GRACE + SLACK, "{:?}", now() - told);
    assert_eq!((seen.torn, seen.lost, seen.refused), (0, 0, 0), "{seen:?}");
    assert_eq!(
        (begun, answered),
        (seen.answered, seen.answered),
        "{seen:?}"
    );
    assert!(seen.answered > CLIENTS * 5, "{seen:?}");
    assert_eq!(stopped, "Finished");
}

/// Clients that open connections until none is taken any more: whatever was begun is answered, whole.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_does_not_listen_loses_nothing_that_was_begun() {
    let server = Server::start().await;
    let address = server.address;
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let path = format!("/after/{}", client * 7 % 120);
        clients.spawn(async move { until_refused(address, &path).await });
    }
    sleep(Duration::from_millis(500)).await;
    server.terminate().await;
    let seen = timeout(DELAY + GRACE + SLACK, all(clients))
        .await
        .expect("none is taken any more");
    let (begun, answered, stopped) = server.end().await;
    assert_eq!(seen.torn, 0, "{seen:?}");
    assert_eq!(
        (begun, answered),
        (seen.answered, seen.answered),
        "{seen:?}"
    );
    assert_eq!(stopped, "Finished");
}

/// A request that takes longer than the grace is cut, and the process ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_without_end_does_not_keep_the_process() {
    let server = Server::start().await;
    let address = server.address;
    let endless = tokio::spawn(async move { until_told(address, "/after/50000").await });
    sleep(Duration::from_millis(300)).await;
    server.terminate().await;
    let told = now();
    let (begun, answered, stopped) = server.end().await;
    let took = now() - told;
    assert!(
        took >= DELAY + GRACE && took < DELAY + GRACE + SLACK,
        "{took:?}"
    );
    assert_eq!((begun, answered, &*stopped), (1, 0, "Cut"));
    assert_eq!(endless.await.unwrap().lost, 1);
}

/// Makes one call after the other; returns how many were answered, and how the last was refused.
async fn until_not_taken(address: SocketAddr, wait: Duration) -> (usize, tonic::Status) {
    let mut echo = EchoClient::new(connect(address));
    let mut answered = 0;
    loop {
        match echo.say(EchoRequest::text("hola").after(wait)).await {
            Ok(_) => answered += 1,
            // The connection closed before the call was on it.
            Err(unsent) if unsent.code() == tonic::Code::Cancelled => {}
            Err(refused) => return (answered, refused),
        }
    }
}

/// A channel over which many calls run at once: those that were begun are answered, and the next is not taken.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_of_grpc_that_is_told_to_stop_under_load_loses_no_call() {
    let server = Server::start_tonic().await;
    let address = server.address;
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let wait = Duration::from_millis((client * 7 % 120) as u64);
        clients.spawn(async move { until_not_taken(address, wait).await });
    }
    sleep(Duration::from_millis(700)).await;
    server.terminate().await;
    let mut all = 0;
    while let Some(client) = clients.join_next().await {
        let (answered, refused) = client.unwrap();
        assert_eq!(refused.code(), tonic::Code::Unavailable, "{refused}");
        assert!(
            format!("{refused:?}").contains("ConnectionRefused"),
            "it was begun: {refused:?}"
        );
        all += answered;
    }
    let (begun, answered, stopped) = server.end().await;
    assert_eq!((begun, answered), (all, all));
    assert!(all > CLIENTS * 5, "{all}");
    assert_eq!(stopped, "Finished");
}
