//! Both adapters: what a client's error proves, and what the peer sees.

use std::error::Error;
use std::time::Duration;

use ::http::{Method, Request, StatusCode};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use mamparo_core::{BoxError, Kind, NotResent, Rejection, Resend, TransportError};
use mamparo_testkit::body::{Frames, ScriptedBody};
use mamparo_testkit::server::{Reply, Server};
use tower::{Layer, ServiceExt};

use crate::breaker::BreakerPolicy;
use crate::client::*;
use crate::replay::ReplayBody;
use crate::retry::{Ending, RetryError, RetryPolicy};
use crate::stack::Stack;

#[derive(Clone, Copy, Debug)]
enum Adapter {
    Hyper,
    Reqwest,
}

const BOTH: [Adapter; 2] = [Adapter::Hyper, Adapter::Reqwest];

struct Answer {
    status: StatusCode,
    ending: Option<Ending>,
    body: Result<Bytes, BoxError>,
}

fn stack() -> Stack {
    let quick = mamparo_core::Backoff::builder()
        .base(Duration::from_millis(1))
        .cap(Duration::from_millis(2));
    let retry = RetryPolicy::builder().backoff(quick.build().unwrap());
    Stack::http("peer").retry(retry.build().unwrap())
}

fn once() -> Stack {
    let retry = RetryPolicy::builder().max_attempts(1).build().unwrap();
    Stack::http("peer").retry(retry)
}

impl Adapter {
    async fn send<B>(self, stack: &Stack, request: Request<B>) -> Result<Answer, BoxError>
    where
        B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        match self {
            Self::Hyper => {
                let client = hyper(HttpConnector::new(), stack);
                read(client.oneshot(request).await?).await
            }
            Self::Reqwest => {
                let client = reqwest(::reqwest::Client::builder(), stack)?;
                read(client.oneshot(request).await?).await
            }
        }
    }

    /// Over HTTP/2, by prior knowledge.
    async fn send_http2(
        self,
        stack: &Stack,
        request: Request<Full<Bytes>>,
    ) -> Result<Answer, BoxError> {
        match self {
            Self::Hyper => {
                let mut builder = Client::builder(TokioExecutor::new());
                let client = builder
                    .http2_only(true)
                    .build::<_, ReplayBody<Full<Bytes>>>(HttpConnector::new());
                let client = stack.layer(HyperTransport::new(client));
                read(client.oneshot(request).await?).await
            }
            Self::Reqwest => {
                let client = ::reqwest::Client::builder().http2_prior_knowledge();
                read(reqwest(client, stack)?.oneshot(request).await?).await
            }
        }
    }
}

async fn read<B>(response: ::http::Response<B>) -> Result<Answer, BoxError>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let (status, ending) = (response.status(), Ending::of(&response).copied());
    let body = response.into_body().collect().await;
    Ok(Answer {
        status,
        ending,
        body: body
            .map(http_body_util::Collected::to_bytes)
            .map_err(Into::into),
    })
}

fn request(method: Method, url: &str) -> Request<Full<Bytes>> {
    let body = match method {
        Method::GET => Full::default(),
        _ => Full::from("a body"),
    };
    Request::builder()
        .method(method)
        .uri(url)
        .body(body)
        .unwrap()
}

fn proof(error: &BoxError) -> (Kind, Resend) {
    let verdict = TransportError::of(&**error).unwrap().verdict();
    (verdict.kind().unwrap(), verdict.resend())
}

fn lines(error: &(dyn Error + 'static)) -> String {
    let causes: Vec<_> = std::iter::successors(Some(error), |e| (*e).source())
        .map(ToString::to_string)
        .collect();
    causes.join(": ")
}

#[tokio::test]
async fn a_failed_request_is_sent_again_with_the_same_body_until_it_succeeds() {
    for adapter in BOTH {
        let server = Server::start([
            Reply::status(503),
            Reply::status(503),
            Reply::ok().body("done"),
        ])
        .await;
        let answer = adapter
            .send(&stack(), request(Method::PUT, &server.url("/")))
            .await
            .unwrap();
        assert_eq!(
            (answer.status, answer.body.unwrap()),
            (StatusCode::OK, "done".into()),
            "{adapter:?}"
        );
        let bodies: Vec<_> = server
            .requests()
            .into_iter()
            .map(|seen| seen.body)
            .collect();
        assert_eq!(bodies, ["a body", "a body", "a body"]);
    }
}

/// Row P-B2: chunks, order and trailers survive, over a body that is not all there yet.
#[tokio::test]
async fn a_streamed_upload_is_replayed_whole() {
    for adapter in BOTH {
        let server = Server::start([Reply::status(503).early(), Reply::ok()]).await;
        let frames = Frames::new()
            .data("one ")
            .wait(Duration::from_millis(20))
            .data("two ")
            .data("three");
        let request = Request::put(server.url("/"))
            .body(ScriptedBody::new(frames))
            .unwrap();
        let answer = adapter.send(&stack(), request).await.unwrap();
        assert_eq!(answer.status, StatusCode::OK, "{adapter:?}");
        assert_eq!(server.requests().last().unwrap().body, "one two three");
    }
}

/// RM-05, ES-06: nothing listens, so nothing was sent, whatever the method.
#[tokio::test]
async fn a_refused_connection_is_tried_again_for_any_method_and_told_in_one_line() {
    for adapter in BOTH {
        let server = Server::start(Reply::ok()).await;
        let url = server.url("/");
        server.stop().await;
        let error = adapter
            .send(&stack(), request(Method::POST, &url))
            .await
            .err()
            .unwrap();
        assert_eq!(proof(&error), (Kind::Connect, Resend::Always));
        let text = lines(&*error);
        assert!(
            text.starts_with("peer: failed after 3 attempts: could not connect: "),
            "{text}"
        );
        assert!(
            !text.contains("http://"),
            "the address may hold a secret: {text}"
        );
    }
}

/// RM-01, RM-03, P-B8.
#[tokio::test]
async fn a_reset_is_sent_again_for_a_get_and_not_for_a_post() {
    for adapter in BOTH {
        let server = Server::start([Reply::reset(), Reply::ok()]).await;
        let answer = adapter
            .send(&stack(), request(Method::GET, &server.url("/")))
            .await;
        assert_eq!(answer.unwrap().status, StatusCode::OK, "{adapter:?}");
        for lost in [Reply::reset(), Reply::close()] {
            let server = Server::start(lost).await;
            let sent = adapter
                .send(&stack(), request(Method::POST, &server.url("/")))
                .await;
            let error = sent.err().unwrap();
            assert_eq!(
                proof(&error),
                (Kind::Reset, Resend::IfIdempotent),
                "{adapter:?}"
            );
            let ending = RetryError::of(&*error).unwrap().ending();
            assert_eq!((ending.attempts(), ending.is_indeterminate()), (1, true));
            assert_eq!(server.requests().len(), 1);
        }
    }
}

/// RM-06: the stream was closed before any processing.
#[tokio::test]
async fn a_refused_stream_is_sent_again_for_a_post_and_by_us_alone() {
    for adapter in BOTH {
        let server = Server::start([Reply::refused_stream(), Reply::ok()]).await;
        let post = request(Method::POST, &server.url("/"));
        let answer = adapter.send_http2(&stack(), post).await.unwrap();
        assert_eq!(answer.status, StatusCode::OK, "{adapter:?}");
        assert_eq!(answer.ending.unwrap().attempts(), 2, "one owner of resends");

        let server = Server::start([Reply::refused_stream(), Reply::ok()]).await;
        let get = request(Method::GET, &server.url("/"));
        let error = adapter.send_http2(&once(), get).await.err().unwrap();
        assert_eq!(proof(&error), (Kind::Unavailable, Resend::Always));
        assert_eq!(
            server.requests().len(),
            1,
            "the client itself does not resend"
        );
    }
}

#[tokio::test]
async fn a_peer_that_speaks_no_http_is_not_asked_again() {
    for adapter in BOTH {
        let server = Server::start(Reply::raw("220 mail.example ESMTP\r\n")).await;
        let error = adapter
            .send(&stack(), request(Method::GET, &server.url("/")))
            .await
            .err()
            .unwrap();
        assert_eq!(proof(&error), (Kind::Other, Resend::Never), "{adapter:?}");
        let ending = RetryError::of(&*error).unwrap().ending();
        assert_eq!(ending.not_resent(), Some(NotResent::NotRetryable));
    }
}

#[tokio::test]
async fn a_half_response_is_an_error_of_its_body_and_is_not_sent_again() {
    for adapter in BOTH {
        let server = Server::start(Reply::half()).await;
        let answer = adapter
            .send(&stack(), request(Method::GET, &server.url("/")))
            .await
            .unwrap();
        assert!(answer.body.is_err(), "{adapter:?}");
        assert_eq!(server.requests().len(), 1);
    }
}

/// P-A2, DL-04: each attempt says what then remains.
#[tokio::test]
async fn a_later_attempt_is_given_less_time() {
    for adapter in BOTH {
        let slow = Reply::status(503).delay(Duration::from_millis(60));
        let server = Server::start([slow, Reply::ok()]).await;
        let mut request = request(Method::GET, &server.url("/"));
        request
            .headers_mut()
            .insert("x-request-timeout-ms", "99999".parse().unwrap());
        adapter.send(&stack(), request).await.unwrap();
        let told: Vec<u64> = server
            .requests()
            .iter()
            .map(|seen| {
                seen.header("x-request-timeout-ms")
                    .unwrap()
                    .parse()
                    .unwrap()
            })
            .collect();
        assert!(
            told[0] <= 9_950 && told[1] + 60 <= told[0],
            "{adapter:?} {told:?}"
        );
    }
}

/// OT-04: a hop that the client takes by itself is seen by nobody.
#[tokio::test]
async fn a_client_does_not_follow_redirects_by_itself() {
    for adapter in BOTH {
        let server = Server::start(Reply::status(302).header("location", "/elsewhere")).await;
        let answer = adapter
            .send(&stack(), request(Method::GET, &server.url("/")))
            .await
            .unwrap();
        assert_eq!(
            (answer.status, server.requests().len()),
            (StatusCode::FOUND, 1),
            "{adapter:?}"
        );
    }
}

/// Row C15: discarded answers give their connections up.
#[tokio::test]
async fn fifty_resends_leave_no_connection_behind() {
    let server = Server::start(Reply::status(503).body("busy")).await;
    let policy = RetryPolicy::builder()
        .max_attempts(2)
        .budget(mamparo_core::Budget::unlimited());
    let client = hyper(
        HttpConnector::new(),
        &Stack::http("peer")
            .retry(policy.build().unwrap())
            .breaker(BreakerPolicy::off()),
    );
    for _ in 0..25 {
        let answer = client
            .clone()
            .oneshot(request(Method::GET, &server.url("/")))
            .await
            .unwrap();
        drop(answer);
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(server.requests().len(), 50);
    assert!(
        server.connections() <= 2,
        "{} connections",
        server.connections()
    );
}

/// The documents promise that a rejection made in a connector is ours, and not a connect failure.
#[tokio::test]
async fn a_connect_timeout_is_found_in_the_error_of_either_client() {
    let limit =
        crate::connect_timeout::ConnectTimeoutLayer::new(Duration::from_millis(30)).unwrap();
    let listener = full_listener();
    for adapter in BOTH {
        let stack = once().connect_timeout(limit);
        let error = adapter
            .send(&stack, request(Method::POST, &listener.url))
            .await
            .err()
            .unwrap();
        let rejection = Rejection::of(&*error).unwrap();
        assert!(
            rejection.is_connect_timeout() && !rejection.sent(),
            "{adapter:?}: {error:?}"
        );
        assert_eq!(rejection.dependency().as_str(), "peer");
    }
}

/// A listener whose queue of connections is full: it neither accepts nor refuses another.
pub(super) struct FullListener {
    pub(super) url: String,
    _held: (tokio::net::TcpListener, Vec<std::net::TcpStream>),
}

pub(super) fn full_listener() -> FullListener {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let fill = || std::net::TcpStream::connect_timeout(&address, Duration::from_millis(100));
    let queued = std::iter::from_fn(|| fill().ok()).take(8).collect();
    FullListener {
        url: format!("http://{address}/"),
        _held: (listener, queued),
    }
}

/// A relative address, or a version that the connection does not speak: the client sends nothing.
#[tokio::test]
async fn a_request_that_the_client_refuses_has_not_taken_effect() {
    for adapter in BOTH {
        let server = Server::start(Reply::ok()).await;
        let mut newer = request(Method::POST, &server.url("/"));
        *newer.version_mut() = ::http::Version::HTTP_2;
        for refused in [request(Method::POST, "/relative"), newer] {
            let error = adapter.send(&stack(), refused).await.err().unwrap();
            assert_eq!(proof(&error), (Kind::Client, Resend::Never), "{adapter:?}");
            let ending = RetryError::of(&*error).unwrap().ending();
            assert!(!ending.is_indeterminate(), "{adapter:?}: {error}");
        }
        assert_eq!(server.requests().len(), 0);
    }
}

/// P-B8: a connection that was idle may break as it is used; nobody knows how far the request came.
#[tokio::test]
async fn a_reset_of_a_connection_that_was_used_before_is_as_any_other() {
    let connections = [(Method::GET, 3, true), (Method::POST, 2, false)];
    for (method, requests, answered) in connections {
        let server = Server::start([Reply::ok(), Reply::reset(), Reply::ok()]).await;
        let client = hyper(HttpConnector::new(), &stack());
        let send = async || {
            let request = request(method.clone(), &server.url("/"));
            read(client.clone().oneshot(request).await?).await
        };
        send().await.unwrap();
        assert_eq!(send().await.is_ok(), answered, "{method}");
        assert_eq!(server.requests().len(), requests, "{method}");
    }
}

/// RM-13: what the caller's own stream does is not the dependency's failure.
#[tokio::test]
async fn an_upload_whose_source_breaks_is_the_requests_own_fault() {
    for adapter in BOTH {
        let server = Server::start(Reply::hang()).await;
        let frames = Frames::new().data("one").error("the source broke");
        let body = ScriptedBody::new(frames).without_hints();
        let upload = Request::put(server.url("/")).body(body).unwrap();
        let error = adapter.send(&stack(), upload).await.err().unwrap();
        assert_eq!(proof(&error), (Kind::Client, Resend::Never), "{adapter:?}");
        assert!(lines(&*error).ends_with("the source broke"), "{error}");
    }
}
