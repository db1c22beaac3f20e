//! curl as the client, with a key as the draft writes it, and one as Stripe's clients do.

use tokio::process::Command;

use super::process::{self, LONG, Server};
use super::shop::Shop;

/// Returns what curl prints: head and body.
async fn curl(url: &str, key: &str, what: &str) -> String {
    let key = format!("Idempotency-Key: {key}");
    let arguments = [
        "--silent",
        "--include",
        "--header",
        &key,
        "--data",
        what,
        url,
    ];
    let said = Command::new("curl").args(arguments).output().await;
    String::from_utf8(said.expect("curl is installed").stdout).unwrap()
}

#[tokio::test]
async fn a_quoted_and_a_bare_key_of_curl_are_one() {
    let folder = tempfile::tempdir().unwrap();
    let place = process::sqlite(folder.path()).await;
    let server = Server::start(&place, LONG).await;
    let (quoted, bare) = ("\"KG5LxwFBepaKHyUD\"", "KG5LxwFBepaKHyUD");
    let first = curl(&server.url(), quoted, "rent").await;
    let second = curl(&server.url(), bare, "rent").await;
    let body = |answer: &str| answer.rsplit("\r\n").next().unwrap().to_owned();
    assert!(
        first.starts_with("HTTP/1.1 200") && !first.contains("idempotent-replayed"),
        "{first}"
    );
    assert!(
        second.starts_with("HTTP/1.1 200") && second.contains("idempotent-replayed: true"),
        "{second}"
    );
    assert_eq!(body(&first), body(&second));
    assert_eq!(Shop::open(&place).await.paid("rent").await.len(), 1);
    let other = curl(&server.url(), bare, "tax").await;
    assert!(other.starts_with("HTTP/1.1 422"), "{other}");
    assert!(
        curl(&server.url(), "", "rent")
            .await
            .starts_with("HTTP/1.1 400")
    );
}
