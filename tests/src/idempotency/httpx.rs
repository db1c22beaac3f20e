//! Python's httpx as the client, which knows nothing of ours: it asks again with the same key until it is answered.

use std::time::Duration;

use mamparo_testkit::proxy::{Fault, FaultProxy};
use serde_json::Value;
use tokio::time::sleep;

use super::process::{self, LONG, Server};
use super::shop::Shop;
use crate::python;

/// Returns what each of so many that ask at once was answered in the end.
async fn pay(url: String, key: &str, what: &str, together: usize) -> Vec<Value> {
    let mut payer = python::program("payer.py");
    let said = payer.args([&*url, key, what, &together.to_string()]);
    let said = said.output().await.expect(python::HELP);
    let complaint = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "{complaint}");
    serde_json::from_slice(&said.stdout).unwrap()
}

#[tokio::test]
async fn httpx_that_loses_its_answers_pays_once() {
    let folder = tempfile::tempdir().unwrap();
    let place = process::sqlite(folder.path()).await;
    let server = Server::start(&place, LONG).await;
    let proxy = FaultProxy::start(server.address).await;
    proxy.set(Fault::ResetAfter(0)).await;
    let asked = tokio::spawn(pay(proxy.url("/payments"), "a-bare-key", "rent", 1));
    let shop = Shop::open(&place).await;
    while shop.paid("rent").await.is_empty() || proxy.connections() < 3 {
        sleep(Duration::from_millis(5)).await;
    }
    proxy.set(Fault::None).await;
    let answer = &asked.await.unwrap()[0];
    let paid = shop.paid("rent").await;
    assert_eq!(paid.len(), 1);
    assert_eq!(answer["text"], format!("payment {} of rent", paid[0]));
    assert_eq!(
        (&answer["status"], &answer["replayed"]),
        (&200.into(), &true.into())
    );
    assert!(answer["broken"].as_u64() >= Some(2), "{answer}");
}

#[tokio::test]
async fn httpx_that_asks_many_times_at_once_pays_once_and_is_told_of_another_request() {
    let folder = tempfile::tempdir().unwrap();
    let place = process::sqlite(folder.path()).await;
    let server = Server::start(&place, LONG).await;
    let answers = pay(server.url(), "\"a-quoted-key\"", "rent", 20).await;
    let paid = Shop::open(&place).await.paid("rent").await;
    assert_eq!(paid.len(), 1);
    for answer in &answers {
        assert_eq!(answer["text"], format!("payment {} of rent", paid[0]));
    }
    let first = answers.iter().filter(|answer| answer["replayed"] == false);
    assert_eq!(first.count(), 1);
    let other = pay(server.url(), "a-quoted-key", "tax", 1).await;
    assert_eq!(other[0]["status"], 422);
    assert_eq!(other[0]["type"], "application/problem+json");
}
