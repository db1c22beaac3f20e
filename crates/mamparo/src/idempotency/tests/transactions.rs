//! Handlers that complete the key themselves.

use std::sync::Arc;

use http::{Response, StatusCode};
use http_body_util::Full;
use mamparo_core::KeyStep;

use super::super::{IdempotencyStore, IdempotencyTx, MemoryStore, Written};
use super::cast::{Server, policy};

/// A handler that completes the key with one answer and returns another; `commits` says whether its transaction stands.
fn server(commits: bool, limit: usize) -> Server {
    let store = Arc::new(MemoryStore::new());
    let inner = Arc::clone(&store);
    Server::over(store, policy().answer_limit(limit), move |run, sent| {
        let store = Arc::clone(&inner);
        async move {
            let tx = IdempotencyTx::of(sent.extensions()).unwrap();
            let mut response = Response::new(format!("stored {run}").into());
            *response.status_mut() = StatusCode::CREATED;
            let answer = tx.answer(&response);
            if commits {
                let written = store
                    .complete(tx.lease(), &answer.seal(), tx.retention())
                    .await;
                assert_eq!(written.unwrap(), Written::Done);
            }
            tx.wrote(answer);
            Response::new(Full::from(format!("returned {run}")))
        }
    })
}

#[tokio::test]
async fn the_caller_gets_exactly_what_the_transaction_has_stored() {
    let server = server(true, 1000);
    for replayed in [false, true] {
        let got = server.post("k", "x").await;
        assert_eq!(
            (got.status.as_u16(), &got.body[..]),
            (201, &b"stored 1"[..])
        );
        assert_eq!(got.is_replayed(), replayed);
    }
    assert!(server.heard.has(KeyStep::CompletedInTransaction));
    assert!(
        !server.heard.has(KeyStep::Completed),
        "nothing is written twice"
    );
}

#[tokio::test]
async fn a_transaction_that_was_rolled_back_counts_for_nothing() {
    let server = server(false, 1000);
    for replayed in [false, true] {
        let got = server.post("k", "x").await;
        assert_eq!(
            (got.status.as_u16(), &got.body[..]),
            (200, &b"returned 1"[..])
        );
        assert_eq!(got.is_replayed(), replayed);
    }
    assert!(server.heard.has(KeyStep::Completed));
}

#[tokio::test]
async fn an_answer_over_the_bound_is_completed_without_it_in_a_transaction_too() {
    let server = server(true, 4);
    let got = server.post("k", "x").await;
    assert_eq!(&got.body[..], b"returned 1");
    assert_eq!(got.header("idempotency-recorded"), Some("without-answer"));
    assert_eq!(
        server.post("k", "x").await.problem(),
        "idempotency-answer-not-kept"
    );
}

#[tokio::test]
async fn a_handle_tells_whose_key_it_is_and_what_was_asked_for() {
    let server = Server::over(MemoryStore::new(), policy(), async |_, sent| {
        let tx = IdempotencyTx::of(sent.extensions()).unwrap();
        assert!(tx.principal().is_empty() && !tx.is_again());
        assert_eq!(tx.lease().id, tx.id());
        assert!(!format!("{tx:?}").contains("secret"));
        Response::new(Full::default())
    });
    server.post("secret", "x").await;
    assert_eq!(server.runs(), 1);
}
