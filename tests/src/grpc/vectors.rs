//! The vectors of gRPC over HTTP/2 that take more than one crate: bytes as they come to tonic's server, and leave it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use mamparo::retry::RetryPolicy;
use mamparo::serve;
use mamparo::server_deadline::ServerDeadlinePolicy;
use mamparo::stack::Stack;
use mamparo_testkit::grpc::{Answer, EchoRequest, EchoServer, Echoing, serve};
use mamparo_testkit::server::{Reply, Server};
use tonic::Code;
use tonic::service::Routes;

use super::ours::{Ours, client};

/// An answer of a server: its head, its data, its trailers.
#[derive(Debug)]
struct Got {
    status: StatusCode,
    head: HeaderMap,
    data: Bytes,
    trailers: Option<HeaderMap>,
}

/// Sends a request of `Say` without a message in it, byte for byte as told.
async fn send(ours: &Ours, timeout: Option<&[u8]>) -> Got {
    let http2 = Client::builder(TokioExecutor::new())
        .http2_only(true)
        .build_http();
    let url = format!("http://{}/mamparo.test.v1.Echo/Say", ours.address);
    let mut request = Request::post(url)
        .body(Full::<Bytes>::from(vec![0; 5]))
        .unwrap();
    let headers = request.headers_mut();
    headers.insert("content-type", HeaderValue::from_static("application/grpc"));
    headers.insert("te", HeaderValue::from_static("trailers"));
    if let Some(timeout) = timeout {
        headers.insert("grpc-timeout", HeaderValue::from_bytes(timeout).unwrap());
    }
    let (head, body) = http2.request(request).await.unwrap().into_parts();
    let body = body.collect().await.unwrap();
    Got {
        status: head.status,
        head: head.headers,
        trailers: body.trailers().cloned(),
        data: body.to_bytes(),
    }
}

impl Got {
    /// The status, wherever it is.
    fn code(&self) -> &str {
        let trailers = self
            .trailers
            .as_ref()
            .and_then(|them| them.get("grpc-status"));
        let code = self.head.get("grpc-status").or(trailers);
        code.unwrap().to_str().unwrap()
    }
}

/// Serves with a rule for what can't be read, and counts the calls that reach the handler.
async fn counting(strict: bool) -> (Ours, Arc<AtomicUsize>) {
    let policy = ServerDeadlinePolicy::builder();
    let policy = if strict {
        policy.refuse_malformed()
    } else {
        policy
    };
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let count = move |request: tonic::Request<()>| {
        counted.fetch_add(1, Ordering::Relaxed);
        Ok(request)
    };
    let service = EchoServer::with_interceptor(Echoing, count);
    let layers = serve::grpc().deadline(policy.build().unwrap());
    (Ours::serve_with(Routes::new(service), layers).await, calls)
}

// Rows GT-06, DL-07, GS-07
#[tokio::test]
async fn a_request_whose_time_is_up_is_answered_in_the_head_and_not_handled() {
    let (ours, calls) = counting(true).await;
    for timeout in ["0S", "0n", "00000000S"] {
        let got = send(&ours, Some(timeout.as_bytes())).await;
        assert_eq!(got.status, 200, "{timeout}");
        assert_eq!(got.head["grpc-status"], "4", "{timeout}: {got:?}");
        assert_eq!(got.head["content-type"], "application/grpc");
        assert!(got.data.is_empty() && got.trailers.is_none());
    }
    assert_eq!(calls.load(Ordering::Relaxed), 0);
}

// Rows GT-01 to GT-05
#[tokio::test]
async fn a_timeout_of_every_unit_lets_a_call_pass() {
    let (ours, calls) = counting(true).await;
    let timeouts = [
        "1S",
        "3000000u",
        "999m",
        "1M",
        "3H",
        "99999999S",
        "99999999H",
        "2562048H",
    ];
    for timeout in timeouts {
        let got = send(&ours, Some(timeout.as_bytes())).await;
        assert_eq!(got.code(), "0", "{timeout}: {got:?}");
    }
    assert_eq!(send(&ours, None).await.code(), "0");
    assert_eq!(calls.load(Ordering::Relaxed), timeouts.len() + 1);
    // A nanosecond has passed by the time that anybody looks.
    assert_eq!(send(&ours, Some(b"00000001n")).await.code(), "4");
}

// Rows GT-07 to GT-15
#[tokio::test]
async fn a_timeout_that_can_t_be_read_is_as_none_or_an_error_as_the_server_is_told() {
    let malformed: [&[u8]; 17] = [
        b"000000000S",
        b"123456789S",
        b"",
        b"S",
        b"1",
        b"1234",
        b"1s",
        b"1h",
        b"1d",
        b"1SS",
        b"1ux",
        b"n1",
        b"82f",
        b"-1S",
        b"+5S",
        b"1 S",
        b"\xff1S",
    ];
    let (lenient, handled) = counting(false).await;
    let (strict, refused) = counting(true).await;
    for timeout in malformed {
        let text = String::from_utf8_lossy(timeout);
        let got = send(&lenient, Some(timeout)).await;
        assert_eq!(got.code(), "0", "{text}: {got:?}");
        let got = send(&strict, Some(timeout)).await;
        assert_eq!(got.code(), "13", "{text}: {got:?}");
        assert_eq!(got.status, 200);
    }
    assert_eq!(handled.load(Ordering::Relaxed), malformed.len());
    assert_eq!(refused.load(Ordering::Relaxed), 0);
}

// Row GS-05: what a generated client makes of an answer with neither gRPC's content type nor a status.
#[tokio::test]
async fn an_answer_without_a_status_has_the_one_that_http_s_stands_for() {
    let table = [
        (200, Code::Unknown),
        (400, Code::Internal),
        (401, Code::Unauthenticated),
        (403, Code::PermissionDenied),
        (404, Code::Unimplemented),
        (429, Code::Unavailable),
        (431, Code::Internal),
        (500, Code::Unknown),
        (502, Code::Unavailable),
        (503, Code::Unavailable),
        (504, Code::Unavailable),
    ];
    let once = RetryPolicy::builder().max_attempts(1).build().unwrap();
    let stack = Stack::grpc("peer").retry(once);
    for (status, code) in table {
        let page = Answer::page(StatusCode::from_u16(status).unwrap(), "<p>a page</p>");
        let server = serve(page).await;
        let mut client = client(server.address(), &stack);
        let got = client.say(EchoRequest::text("a")).await.unwrap_err();
        assert_eq!(got.code(), code, "{status}: {got:?}");
    }
}

// Row GS-05: "If grpc-status was provided, it must be used".
#[tokio::test]
async fn a_status_counts_whatever_http_s_is() {
    let once = RetryPolicy::builder().max_attempts(1).build().unwrap();
    let unavailable = Reply::status(503).header("content-type", "application/grpc");
    let server = Server::start(unavailable.header("grpc-status", "5")).await;
    let mut client = client(server.address(), &Stack::grpc("peer").retry(once));
    let got = client.say(EchoRequest::text("a")).await.unwrap_err();
    assert_eq!(got.code(), Code::NotFound);
}

// Row GS-04
#[tokio::test]
async fn a_text_is_decoded_and_what_is_no_encoding_stays_as_it_is() {
    for (sent, read) in [
        ("%E4%BD%A0", "你"),
        ("100%", "100%"),
        ("%zz", "%zz"),
        ("a%20b", "a b"),
    ] {
        let server = serve(Answer::raw(&[("grpc-status", "5"), ("grpc-message", sent)])).await;
        let mut client = client(server.address(), &Stack::grpc("peer"));
        let got = client.say(EchoRequest::text("a")).await.unwrap_err();
        assert_eq!((got.code(), got.message()), (Code::NotFound, read));
    }
}
