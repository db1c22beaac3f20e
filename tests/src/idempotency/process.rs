//! A server of payments in a process of its own, which can be killed.

use std::env;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::http::{HeaderMap, Response, StatusCode};
use axum::routing::post;
use mamparo::idempotency::IdempotencyTx;
use mamparo_testkit::private::{PrivatePostgres, PrivateRedis};
use tokio::process::Child;
use tokio::task::spawn_blocking;

use super::shop::{Pauses, Shop};
use crate::own_process::{self, Said};
use crate::served::serve;

const PLACE: &str = "MAMPARO_TEST_PLACE";
const LEASE: &str = "MAMPARO_TEST_LEASE_MS";

/// What a server says once it is there.
const HERE: &str = "listens on ";

/// Milliseconds of each of the [`Pauses`], with commas.
pub(super) const PAUSES: &str = "x-pauses";

/// Long enough that no run loses its lease, however slow the machine is.
pub(super) const LONG: Duration = Duration::from_secs(60);

/// A process that serves payments; it ends with its owner.
pub(super) struct Server {
    process: Child,
    pub(super) address: SocketAddr,
}

impl Server {
    pub(super) async fn start(place: &str, lease: Duration) -> Self {
        let mut process = own_process::command("idempotency::process::serves")
            .env(PLACE, place)
            .env(LEASE, lease.as_millis().to_string())
            // Held, so that it ends when this process does.
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let said = Said::by(&mut process).after(HERE).await;
        let address = said.parse().unwrap();
        Self { process, address }
    }

    /// Ends it as a crash does (`kill -9`), and waits until it is gone.
    pub(super) async fn kill(mut self) {
        self.process.kill().await.unwrap();
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/payments", self.address)
    }
}

/// A shop in a file of this folder.
pub(super) async fn sqlite(folder: &Path) -> String {
    let place = format!("sqlite {}", folder.join("payments.db").display());
    Shop::open(&place).await;
    place
}

/// A shop in a PostgreSQL of its own, which has to be held.
pub(super) async fn postgres() -> (PrivatePostgres, String) {
    let server = PrivatePostgres::start().await;
    let place = format!("postgres {}", server.url());
    Shop::open(&place).await.prepare().await;
    (server, place)
}

/// A shop whose keys are in a Redis of its own, which has to be held, and its payments in a file of this folder.
pub(super) async fn redis(folder: &Path) -> (PrivateRedis, String) {
    let server = PrivateRedis::durable().await;
    let file = folder.join("payments");
    let place = format!("redis {} {}", server.url(), file.display());
    (server, place)
}

fn pauses(head: &HeaderMap) -> Pauses {
    let text = head.get(PAUSES).map_or("", |value| value.to_str().unwrap());
    let mut times = text.split(',').map(|time| time.parse().unwrap_or(0));
    Pauses([(); 3].map(|()| Duration::from_millis(times.next().unwrap_or(0))))
}

fn failed(why: String) -> Response<Body> {
    let mut answer = Response::new(Body::from(why));
    *answer.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    answer
}

/// The server's own process; started by the tests around.
#[tokio::test]
#[ignore = "is run by other tests"]
async fn serves() {
    let place = env::var(PLACE).unwrap();
    let lease = env::var(LEASE).unwrap().parse().unwrap();
    let shop = Shop::open(&place).await;
    let till = shop.clone();
    let pay = move |Extension(key): Extension<IdempotencyTx>, head: HeaderMap, what: String| async move {
        match till.pay(key, what, pauses(&head)).await {
            Ok(answer) => answer.map(Body::from),
            Err(error) => failed(error.to_string()),
        }
    };
    let address = serve(shop.behind_keys(Duration::from_millis(lease), post(pay))).await;
    println!("\n{HERE}{address}");
    // Until its owner is gone.
    let owned = spawn_blocking(|| std::io::stdin().lines().next().is_none());
    assert!(owned.await.unwrap());
}
