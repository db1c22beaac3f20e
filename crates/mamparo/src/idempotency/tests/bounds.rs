//! Bodies over the bound, and nonsense in settings.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body_util::{BodyExt, Full};
use mamparo_core::KeyStep;
use proptest::prelude::*;

use super::super::body::{Read, read};
use super::super::{IdempotencyPolicy, MemoryStore};
use super::cast::{Server, policy};
use mamparo_testkit::body::{Frames, ScriptedBody};

/// A request that can't be compared whole is served, and never run a second time.
#[tokio::test]
async fn a_request_over_the_bound_is_served_and_its_repetition_is_refused() {
    let server = Server::counting(policy().request_limit(4));
    let got = server.post("k", "12345").await;
    assert_eq!(got.body, "run 1: 12345");
    assert_eq!(got.header("idempotency-recorded"), Some("without-answer"));
    for body in ["12345", "12349"] {
        let again = server.post("k", body).await;
        assert_eq!(
            (again.status.as_u16(), again.problem().as_str()),
            (409, "idempotency-answer-not-kept")
        );
    }
    assert_eq!(
        server.post("k", "x2345").await.status,
        422,
        "what was compared differs"
    );
    assert_eq!(server.runs(), 1);
    assert!(server.heard.has(KeyStep::CompletedWithoutAnswer));
}

/// IV-13.
#[tokio::test]
async fn an_answer_over_the_bound_is_served_and_its_repetition_is_refused() {
    let server = Server::counting(policy().answer_limit(8));
    let got = server.post("k", "x").await;
    assert_eq!(got.body, "run 1: x");
    assert_eq!(got.header("idempotency-recorded"), None);
    let got = server.post("l", "xy").await;
    assert_eq!(got.body, "run 2: xy");
    assert_eq!(got.header("idempotency-recorded"), Some("without-answer"));
    assert_eq!(
        server.post("l", "xy").await.problem(),
        "idempotency-answer-not-kept"
    );
    assert_eq!(server.runs(), 2);
}

/// IV-14.
#[tokio::test]
async fn another_boundary_of_a_multipart_body_is_another_request() {
    let server = Server::counting(policy());
    let form = |boundary: &str| format!("--{boundary}\r\n\r\nx\r\n--{boundary}--");
    server.post("k", &form("one")).await;
    assert_eq!(server.post("k", &form("two")).await.status, 422);
}

/// An answer that breaks off is passed on as far as it came, and is not run again.
#[tokio::test]
async fn an_answer_that_breaks_off_completes_its_key_without_an_answer() {
    let store = MemoryStore::new();
    let layer = super::super::IdempotencyLayer::new(store, policy().build().unwrap());
    let handler = tower::service_fn(async |_| {
        Ok::<_, Infallible>(Response::new(ScriptedBody::new(
            Frames::new().data("half").error("broken"),
        )))
    });
    let server = tower::Layer::layer(&layer, handler);
    let send = |body: &'static str| {
        tower::ServiceExt::oneshot(server.clone(), super::cast::post("k", body))
    };
    let mut body = send("x").await.unwrap().into_body();
    let first = body.frame().await.unwrap().unwrap();
    assert_eq!(first.into_data().unwrap(), "half");
    assert!(body.frame().await.unwrap().is_err());
    let again = send("x").await.unwrap();
    assert_eq!(again.status(), 409);
}

#[test]
fn nonsense_is_refused_when_the_policy_is_built() {
    const HOUR: Duration = Duration::from_secs(3600);
    let refused = |builder: super::super::IdempotencyBuilder| {
        builder.build().unwrap_err().setting().to_owned()
    };
    assert_eq!(refused(policy().lease(Duration::ZERO)), "lease");
    assert_eq!(
        refused(policy().lease(HOUR).retention(HOUR / 2)),
        "retention"
    );
    assert_eq!(
        refused(policy().retention(HOUR).retry_horizon(2 * HOUR)),
        "retention"
    );
    assert_eq!(refused(policy().retention(Duration::MAX)), "retention");
    assert_eq!(
        refused(policy().store_timeout(Duration::ZERO)),
        "store_timeout"
    );
    assert_eq!(refused(policy().retry_after(Duration::ZERO)), "retry_after");
    assert_eq!(refused(policy().methods([])), "methods");
    assert_eq!(refused(policy().request_limit(usize::MAX)), "request_limit");
    assert_eq!(refused(policy().answer_limit(17 << 20)), "answer_limit");
    assert_eq!(refused(policy().left_behind(usize::MAX)), "left_behind");
    assert_eq!(
        refused(policy().indeterminate_status(http::StatusCode::OK)),
        "indeterminate_status"
    );
    let many = (0..40).map(|n| format!("x-{n}").parse().unwrap());
    assert_eq!(refused(policy().compare_headers(many)), "compare_headers");
    let many = (0..40).fold(policy(), |policy, n| {
        policy.keep_header(format!("x-{n}").parse().unwrap())
    });
    assert_eq!(refused(many), "keep_header");
}

/// IS-01: it is published.
#[test]
fn a_policy_describes_itself_to_callers() {
    let policy = IdempotencyPolicy::per_principal(|_| None).required();
    let policy = policy.retention(Duration::from_secs(7200)).build().unwrap();
    let words = policy.describe().to_string();
    for part in [
        "POST and PATCH requests need",
        "Each account has its own keys",
        "kept for 2h",
        "answered with 500",
    ] {
        assert!(words.contains(part), "{part} is missing: {words}");
    }
}

proptest! {
    /// However a body is cut into frames, the same bytes are seen, at most the bound, and all of them are passed on.
    #[test]
    fn a_body_is_read_the_same_however_it_is_cut(
        frames in proptest::collection::vec("[a-z]{0,6}", 0..8),
        bound in 0_usize..30,
    ) {
        let whole: String = frames.concat();
        let (seen, passed) = tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
            let body = ScriptedBody::new(frames.iter().fold(Frames::new(), |frames, frame| frames.data(frame.clone())));
            let mut seen = Vec::new();
            let passed: Bytes = match read(body, bound, |data| seen.extend_from_slice(data)).await {
                Read::Whole { data, .. } => data,
                Read::Larger(body) => body.collect().await.unwrap().to_bytes(),
                Read::Broken(_) => Bytes::from_static(b"broken"),
            };
            (seen, passed)
        });
        prop_assert_eq!(&passed, whole.as_bytes());
        prop_assert_eq!(&seen[..], &whole.as_bytes()[..whole.len().min(bound)]);
    }
}

/// A limit of nothing keeps nothing: empty bodies still fit.
#[tokio::test]
async fn an_empty_body_fits_a_limit_of_nothing() {
    let server = Server::over(
        MemoryStore::new(),
        policy().request_limit(0).answer_limit(0),
        async |_, _| Response::new(Full::default()),
    );
    server.post("k", "").await;
    assert!(server.post("k", "").await.is_replayed());
}
