//! The life of a key.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use mamparo_core::{KeyStep, Reason, Rejection};
use tokio::time::{advance, sleep};

use super::super::{MemoryStore, NotRun, OnExpiry, Stored};
use super::cast::{Server, policy, post};

const SECOND: Duration = Duration::from_secs(1);

/// IV-01, and a key that can't be read.
#[tokio::test]
async fn a_request_without_a_key_that_needs_one_is_not_run() {
    let server = Server::counting(policy().required());
    let bare = Request::post("/").body(Full::<Bytes>::default()).unwrap();
    let got = server.send(bare).await;
    assert_eq!(
        (got.status, got.problem().as_str()),
        (StatusCode::BAD_REQUEST, "idempotency-key-missing")
    );
    let got = server.post("\"a", "x").await;
    assert_eq!(
        (got.status, got.problem().as_str()),
        (StatusCode::BAD_REQUEST, "idempotency-key-malformed")
    );
    assert_eq!(server.runs(), 0);
    assert_eq!(server.heard.steps(), [KeyStep::Missing, KeyStep::Malformed]);
}

/// IV-02.
#[tokio::test]
async fn a_request_without_a_key_is_served_and_nothing_is_stored() {
    let server = Server::counting(policy());
    for run in 1..=2 {
        let bare = Request::post("/").body(Full::from("x")).unwrap();
        let got = server.send(bare).await;
        assert_eq!(got.body, format!("run {run}: x"));
        assert_eq!(got.header("idempotency-retention"), None);
    }
    assert!(server.heard.steps().is_empty());
}

/// IV-03.
#[tokio::test]
async fn a_repeated_request_gets_the_first_ones_answer_byte_for_byte() {
    let server = Server::counting(policy());
    let first = server.post("k", "x").await;
    assert_eq!(first.header("idempotency-retention"), Some("86400"));
    assert!(!first.is_replayed());
    for _ in 0..3 {
        let mut again = server.post("k", "x").await;
        assert!(again.is_replayed());
        again.headers.remove("idempotent-replayed");
        assert_eq!(
            (again.status, &again.headers, &again.body),
            (first.status, &first.headers, &first.body)
        );
    }
    assert_eq!(server.runs(), 1);
}

/// Headers that are not on the list are not given again: a cookie belongs to one exchange.
#[tokio::test]
async fn only_listed_headers_are_given_again() {
    let store = MemoryStore::new();
    let keeps = policy().keep_header("x-charge".parse().unwrap());
    let server = Server::over(store, keeps, async |_, _| {
        let response = Response::builder().header("set-cookie", "a=1");
        let response = response.header("x-charge", "1").header("x-charge", "2");
        response.body(Full::default()).unwrap()
    });
    let first = server.post("k", "x").await;
    assert!(first.headers.contains_key("set-cookie"));
    let again = server.post("k", "x").await;
    assert!(!again.headers.contains_key("set-cookie"));
    assert_eq!(again.headers.get_all("x-charge").iter().count(), 2);
}

/// IV-04.
#[tokio::test]
async fn the_same_key_with_another_body_is_refused_and_the_first_answer_stays() {
    let server = Server::counting(policy());
    server.post("k", "A").await;
    let other = server.post("k", "B").await;
    assert_eq!(
        (other.status, other.problem().as_str()),
        (StatusCode::UNPROCESSABLE_ENTITY, "idempotency-key-reused")
    );
    assert_eq!(server.post("k", "A").await.body, "run 1: A");
    assert_eq!(server.runs(), 1);
}

/// IV-06: path, method, query and a chosen header are compared; TC-03: what differs by attempt is not.
#[tokio::test]
async fn another_path_query_method_or_chosen_header_is_another_request() {
    let server = Server::counting(policy());
    let send = async |change: fn(&mut Request<Full<Bytes>>)| {
        let mut request = post("k", "x");
        change(&mut request);
        server.send(request).await.status
    };
    assert_eq!(send(|_| ()).await, 200);
    assert_eq!(
        send(|request| *request.uri_mut() = "/charges?a=2".parse().unwrap()).await,
        422
    );
    assert_eq!(
        send(|request| *request.uri_mut() = "/charges".parse().unwrap()).await,
        422
    );
    assert_eq!(
        send(|request| *request.uri_mut() = "/other?a=1".parse().unwrap()).await,
        422
    );
    assert_eq!(
        send(|request| *request.method_mut() = Method::PATCH).await,
        422
    );
    assert_eq!(
        send(|request| {
            request
                .headers_mut()
                .insert("content-type", "a/b".parse().unwrap());
        })
        .await,
        422
    );
    for name in [
        "traceparent",
        "tracestate",
        "baggage",
        "grpc-timeout",
        "date",
        "grpc-previous-rpc-attempts",
        "x-request-timeout-ms",
    ] {
        let mut request = post("k", "x");
        request.headers_mut().insert(name, "7".parse().unwrap());
        assert!(server.send(request).await.is_replayed(), "{name}");
        let chosen = policy().compare_headers([name.parse().unwrap()]);
        assert_eq!(chosen.build().unwrap_err().setting(), "compare_headers");
    }
    assert_eq!(server.runs(), 1);
}

/// IV-05, and the same key for another request meanwhile.
#[tokio::test(start_paused = true)]
async fn while_the_first_is_run_others_are_told_to_ask_again() {
    let server = Server::slow(policy(), SECOND);
    let first = tokio::spawn({
        let server = server.clone();
        async move { server.post("k", "x").await }
    });
    sleep(SECOND / 2).await;
    let other = server.post("k", "x").await;
    assert_eq!(
        (other.status, other.header("retry-after")),
        (StatusCode::CONFLICT, Some("1"))
    );
    assert_eq!(other.problem(), "idempotency-key-in-progress");
    assert_eq!(server.post("k", "y").await.status, 422);
    assert_eq!(first.await.unwrap().body, "run 1");
    assert_eq!(server.post("k", "x").await.body, "run 1");
    assert_eq!(server.runs(), 1);
}

#[tokio::test]
async fn of_two_hundred_at_once_one_is_run() {
    let server = Server::slow(policy(), Duration::from_millis(20));
    let sends = (0..200).map(|_| {
        let server = server.clone();
        tokio::spawn(async move { server.post("k", "x").await })
    });
    let sends: Vec<_> = sends.collect();
    let mut answered = 0;
    for send in sends {
        let got = send.await.unwrap();
        assert!(got.status == 409 || got.body == "run 1", "{got:?}");
        answered += usize::from(got.status == 200);
    }
    assert!(answered >= 1);
    assert_eq!(server.runs(), 1);
}

/// IV-11.
#[tokio::test(start_paused = true)]
async fn past_its_retention_a_key_is_as_good_as_new() {
    let server = Server::counting(policy().retention(60 * SECOND));
    server.post("k", "x").await;
    advance(59 * SECOND).await;
    assert!(server.post("k", "x").await.is_replayed());
    advance(2 * SECOND).await;
    assert_eq!(server.post("k", "other").await.body, "run 2: other");
}

/// IV-08: which answers are stored is a setting.
#[tokio::test]
async fn errors_are_given_again_unless_they_are_not_stored() {
    let table = [
        (Stored::All, [(201, true), (404, true), (500, true)]),
        (
            Stored::NotServerErrors,
            [(201, true), (404, true), (500, false)],
        ),
        (Stored::Successes, [(201, true), (404, false), (500, false)]),
    ];
    for (stored, statuses) in table {
        for (status, replayed) in statuses {
            let policy = policy().stored(stored);
            let server = Server::over(MemoryStore::new(), policy, move |_, _| async move {
                let response = Response::builder().status(status);
                response.body(Full::default()).unwrap()
            });
            let first = server.post("k", "x").await;
            assert_eq!(
                first.header("idempotency-recorded"),
                (!replayed).then_some("no")
            );
            let again = server.post("k", "x").await;
            assert_eq!(
                (again.status.as_u16(), again.is_replayed()),
                (status, replayed)
            );
        }
    }
}

/// IV-09: what failed before the handler ran is not stored.
#[tokio::test]
async fn what_was_not_run_is_run_when_it_comes_again() {
    let refusing = Server::failing(MemoryStore::new(), policy(), async |run, _| match run {
        1 => Err(Rejection::refused(Reason::BulkheadFull, "".into())),
        _ => Ok(Response::new(Full::from("done"))),
    });
    assert!(refusing.try_send(post("k", "x")).await.is_err());
    assert_eq!(refusing.post("k", "x").await.body, "done");
    let marked = Server::over(MemoryStore::new(), policy(), async |run, _| {
        let mut response = Response::new(Full::from(format!("run {run}")));
        response.extensions_mut().insert(NotRun);
        response
    });
    for run in 1..=2 {
        assert_eq!(marked.post("k", "x").await.body, format!("run {run}"));
    }
    assert!(marked.heard.has(KeyStep::Released));
}

/// IV-10: a run that ended without an answer leaves a key whose lease is over.
#[tokio::test]
async fn after_a_run_without_an_answer_it_is_unknown_or_run_again() {
    let table = [
        (policy(), 500, "idempotency-outcome-indeterminate"),
        (
            policy().indeterminate_status(StatusCode::CONFLICT),
            409,
            "idempotency-outcome-indeterminate",
        ),
        (policy().on_expiry(OnExpiry::RunAgain), 200, ""),
    ];
    for (policy, status, problem) in table {
        let server = Server::failing(MemoryStore::new(), policy, async |run, _| match run {
            1 => Err(Rejection::cut(Reason::DeadlineExceeded, "".into())),
            _ => Ok(Response::new(Full::from("done"))),
        });
        assert!(server.try_send(post("k", "x")).await.is_err());
        for _ in 0..2 {
            let got = server.post("k", "x").await;
            assert_eq!(got.status.as_u16(), status);
            if !problem.is_empty() {
                assert_eq!(got.problem(), problem);
            }
        }
        let expected = if status == 200 {
            KeyStep::StartedAgain
        } else {
            KeyStep::Indeterminate
        };
        assert!(server.heard.has(expected));
        assert_eq!(server.runs(), if status == 200 { 2 } else { 1 });
    }
}

#[tokio::test]
async fn a_handler_that_panics_leaves_a_key_whose_lease_is_over() {
    let server = Server::over(
        MemoryStore::new(),
        policy().on_expiry(OnExpiry::RunAgain),
        async |run, _| {
            assert!(run > 1, "on purpose");
            Response::new(Full::from("done"))
        },
    );
    let crashing = server.clone();
    let crash = tokio::spawn(async move { crashing.post("k", "x").await });
    assert!(crash.await.unwrap_err().is_panic());
    sleep(Duration::from_millis(20)).await;
    assert_eq!(server.post("k", "x").await.body, "done");
    assert!(server.heard.has(KeyStep::Abandoned));
}

#[tokio::test(start_paused = true)]
async fn a_handler_may_take_longer_than_its_lease() {
    let policy = policy().lease(SECOND).on_expiry(OnExpiry::RunAgain);
    let server = Server::slow(policy, 60 * SECOND);
    let first = tokio::spawn({
        let server = server.clone();
        async move { server.post("k", "x").await }
    });
    for _ in 0..11 {
        sleep(5 * SECOND).await;
        assert_eq!(
            server.post("k", "x").await.problem(),
            "idempotency-key-in-progress"
        );
    }
    assert_eq!(first.await.unwrap().status, 200);
    assert_eq!(server.runs(), 1);
}

/// PD-V5, PD-V8: a problem says its status, its page, and nothing that the caller sent.
#[tokio::test]
async fn a_refusal_names_the_page_that_is_set_and_echoes_nothing() {
    let url = "https://api.example.com/keys";
    let server = Server::counting(policy().documentation(url));
    let got = server.post("\"<script>", "x").await;
    assert_eq!(got.problem(), "idempotency-key-malformed");
    let link = r#"<https://api.example.com/keys>; rel="describedby"; type="text/html""#;
    assert_eq!(got.header("link"), Some(link));
    assert!(!String::from_utf8_lossy(&got.body).contains("script"));
    assert!(policy().documentation("a\"b").build().is_err());
}

#[test]
fn the_docs_have_a_heading_for_each_type_of_problem() {
    let page = include_str!("../../../../../docs/problems/idempotency.md");
    for kind in super::super::problem::ALL {
        let (_, name) = kind.uri().split_once('#').unwrap();
        let story = format!("//! ## {name}\n//!\n//! Status {}", kind.status().as_u16());
        assert!(
            include_str!("../mod.rs").contains(&story),
            "mod.rs lacks {name}"
        );
        assert!(
            page.contains(&format!("## {name}\n")),
            "the page lacks {name}"
        );
    }
}

#[tokio::test]
async fn a_layer_is_shared_by_all_routes_and_clones() {
    let store = Arc::new(MemoryStore::new());
    let one = Server::over(Arc::clone(&store), policy(), async |_, _| {
        Response::new(Full::from("one"))
    });
    let other = Server::over(store, policy(), async |_, _| {
        Response::new(Full::from("other"))
    });
    one.post("k", "x").await;
    assert_eq!(other.post("k", "x").await.body, "one");
}
