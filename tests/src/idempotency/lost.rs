//! The answer is lost after the commit: the caller asks again, and hears of the one payment that was made and published.

use std::time::Duration;

use mamparo::attempt_timeout::AttemptPolicy;
use mamparo::idempotency_key::KeyPolicy;
use mamparo::retry::Ending;
use mamparo::stack::Stack;
use mamparo_testkit::proxy::{Fault, FaultProxy};
use tokio::time::{sleep, timeout};
use tower::ServiceExt as _;

use super::process::{self, LONG, Server};
use super::shop::Shop;

async fn pays_once_though_the_answer_is_lost(place: &str) {
    let shop = Shop::open(place).await;
    let server = Server::start(place, LONG).await;
    let proxy = FaultProxy::start(server.address).await;
    proxy.set(Fault::ResetAfter(0)).await;

    let attempt = AttemptPolicy::builder().timeout(Duration::from_secs(10));
    let stack = Stack::http("payments")
        .idempotency_key(KeyPolicy::default())
        .attempt(attempt.build().unwrap());
    let client = mamparo::client::reqwest(reqwest::Client::builder(), &stack).unwrap();
    let request = http::Request::post(proxy.url("/payments")).body(reqwest::Body::from("rent"));
    let asked = tokio::spawn(client.oneshot(request.unwrap()));

    // The second connection is the second attempt: the first had no answer, and its payment is made.
    let second = async {
        while proxy.connections() < 2 {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(Duration::from_secs(10), second).await.unwrap();
    let made = shop.paid("rent").await;
    proxy.set(Fault::None).await;

    let answer = asked.await.unwrap().unwrap();
    assert!(Ending::of(&answer).map_or(1, Ending::attempts) >= 2);
    assert_eq!(answer.status(), 200);
    assert!(answer.headers().contains_key("idempotent-replayed"));
    let answer = reqwest::Response::from(answer.map(reqwest::Body::wrap));
    let text = answer.text().await.unwrap();
    assert_eq!(text, format!("payment {} of rent", made[0]));
    assert_eq!(shop.paid("rent").await, made);
    assert_eq!(made.len(), 1);
    assert_eq!(shop.published().await, ["rent"]);
}

#[tokio::test]
async fn an_answer_lost_after_the_commit_is_given_again_over_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let place = process::sqlite(folder.path()).await;
    pays_once_though_the_answer_is_lost(&place).await;
}

#[tokio::test]
async fn an_answer_lost_after_the_commit_is_given_again_over_postgres() {
    let (_held, place) = process::postgres().await;
    pays_once_though_the_answer_is_lost(&place).await;
}

#[tokio::test]
async fn an_answer_lost_after_the_commit_is_given_again_over_redis() {
    let folder = tempfile::tempdir().unwrap();
    let (_held, place) = process::redis(folder.path()).await;
    pays_once_though_the_answer_is_lost(&place).await;
}
