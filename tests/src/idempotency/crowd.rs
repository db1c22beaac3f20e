//! Many requests with one key at once, at two servers that share a store.

use http::header::RETRY_AFTER;
use tokio::task::JoinSet;

use super::process::{self, LONG, PAUSES, Server};
use super::shop::Shop;

const CROWD: usize = 200;

async fn one_of_a_crowd_is_run(place: &str) {
    let shop = Shop::open(place).await;
    let servers = [
        Server::start(place, LONG).await,
        Server::start(place, LONG).await,
    ];
    let client = reqwest::Client::new();
    let mut crowd = JoinSet::new();
    for caller in 0..CROWD {
        let request = client
            .post(servers[caller % 2].url())
            .header("idempotency-key", "\"one\"")
            .header(PAUSES, "100,0,200")
            .body("rent");
        crowd.spawn(request.send());
    }
    let (mut first, mut busy, mut replayed) = (0, 0, 0);
    while let Some(answer) = crowd.join_next().await {
        let answer = answer.unwrap().unwrap();
        let again = answer.headers().contains_key("idempotent-replayed");
        match (answer.status().as_u16(), again) {
            (200, false) => first += 1,
            (200, true) => replayed += 1,
            (409, _) if answer.headers().contains_key(RETRY_AFTER) => busy += 1,
            _ => panic!("{answer:?}"),
        }
    }
    println!("{busy} were told to wait, {replayed} got the answer again");
    assert_eq!((first, busy + replayed), (1, CROWD - 1));
    assert_eq!(shop.paid("rent").await.len(), 1);
}

#[tokio::test]
async fn of_200_requests_with_one_key_at_two_servers_one_is_run_over_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let place = process::sqlite(folder.path()).await;
    one_of_a_crowd_is_run(&place).await;
}

#[tokio::test]
async fn of_200_requests_with_one_key_at_two_servers_one_is_run_over_postgres() {
    let (_held, place) = process::postgres().await;
    one_of_a_crowd_is_run(&place).await;
}

#[tokio::test]
async fn of_200_requests_with_one_key_at_two_servers_one_is_run_over_redis() {
    let folder = tempfile::tempdir().unwrap();
    let (_held, place) = process::redis(folder.path()).await;
    one_of_a_crowd_is_run(&place).await;
}
