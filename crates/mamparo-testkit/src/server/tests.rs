//! What real clients see of a scripted server, and what it sees of them.

use super::{Replies, Reply, Server};
use crate::BoxError;
use crate::body::{Frames, ScriptedBody};
use http::{Request, Response, Version};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use mamparo_core::clock;
use std::error::Error;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const SHORT: Duration = Duration::from_millis(40);

type Answered = Result<Response<Incoming>, hyper_util::client::legacy::Error>;

/// Sends over a fresh HTTP/1.1 or HTTP/2 client.
async fn send(request: Request<ScriptedBody>, http2: bool) -> Answered {
    let mut builder = Client::builder(TokioExecutor::new());
    builder.http2_only(http2).retry_canceled_requests(false);
    builder.build_http().request(request).await
}

async fn get(server: &Server, path: &str) -> Answered {
    send(request(server, path), false).await
}

fn request(server: &Server, path: &str) -> Request<ScriptedBody> {
    let request = Request::get(server.url(path));
    request.body(ScriptedBody::empty()).unwrap()
}

async fn text(response: Response<Incoming>) -> Result<String, hyper::Error> {
    let whole = response.into_body().collect().await?;
    Ok(String::from_utf8(whole.to_bytes().into()).unwrap())
}

fn source<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut errors = std::iter::successors(Some(error), |error| (*error).source());
    errors.find_map(|error| error.downcast_ref())
}

/// Sends a request on a bare socket and reads until the server ends the connection.
async fn bare(server: &Server) -> io::Result<Vec<u8>> {
    let mut socket = TcpStream::connect(server.address()).await?;
    socket
        .write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        .await?;
    let mut bytes = Vec::new();
    socket.read_to_end(&mut bytes).await?;
    Ok(bytes)
}

#[tokio::test]
async fn answers_in_order_and_repeats_the_last_reply() {
    let busy = Reply::status(503).header("retry-after", "2").body("busy");
    let server = Server::start([busy, Reply::ok().body("done")]).await;
    let first = get(&server, "/a").await.unwrap();
    assert_eq!(
        (
            first.status().as_u16(),
            &first.headers()["retry-after"] == "2"
        ),
        (503, true)
    );
    assert_eq!(text(first).await.unwrap(), "busy");
    for _ in 0..2 {
        assert_eq!(
            text(get(&server, "/b").await.unwrap()).await.unwrap(),
            "done"
        );
    }
    let paths: Vec<_> = server
        .requests()
        .iter()
        .map(|seen| seen.uri.to_string())
        .collect();
    assert_eq!(
        (paths, server.connections()),
        (vec!["/a".into(), "/b".into(), "/b".to_owned()], 3)
    );
}

#[tokio::test]
async fn answers_by_path_and_404_where_nothing_is_said() {
    let replies = Replies::new()
        .on("/a", [Reply::status(201)])
        .on("/b", [Reply::status(202)]);
    let server = Server::start(replies).await;
    for (path, status) in [("/b?x=1", 202), ("/a", 201), ("/c", 404)] {
        assert_eq!(get(&server, path).await.unwrap().status(), status);
    }
}

#[tokio::test]
async fn sees_the_whole_request_on_both_versions_of_http() {
    let server = Server::start(Reply::ok()).await;
    for (http2, version) in [(false, Version::HTTP_11), (true, Version::HTTP_2)] {
        let frames = Frames::new().data("ab").data("c").trailer("x-end", "1");
        let mut request =
            request(&server, "/in").map(|_| ScriptedBody::new(frames).without_hints());
        *request.method_mut() = http::Method::PUT;
        request
            .headers_mut()
            .insert("trailer", "x-end".parse().unwrap());
        assert_eq!(send(request, http2).await.unwrap().status(), 200);
        let seen = server.requests().pop().unwrap();
        assert_eq!(
            (seen.method.as_str(), seen.version, seen.body.as_ref()),
            ("PUT", version, &b"abc"[..])
        );
        assert_eq!(seen.trailers.unwrap()["x-end"], "1");
    }
}

#[tokio::test]
async fn streams_a_body_with_waits_and_trailers() {
    let server = Server::start(
        Reply::ok()
            .header("trailer", "grpc-status")
            .body(
                Frames::new()
                    .data("a")
                    .wait(SHORT)
                    .data("b")
                    .trailer("grpc-status", "14"),
            )
            .delay(SHORT)
            .streamed(),
    )
    .await;
    for http2 in [false, true] {
        let start = clock::now();
        let mut request = request(&server, "/");
        request
            .headers_mut()
            .insert("te", "trailers".parse().unwrap());
        let response = send(request, http2).await.unwrap();
        assert!(start.elapsed() >= SHORT);
        let whole = response.into_body().collect().await.unwrap();
        assert!(start.elapsed() >= 2 * SHORT);
        assert_eq!(whole.trailers().unwrap()["grpc-status"], "14");
        assert_eq!(whole.to_bytes(), "ab");
    }
}

#[tokio::test]
async fn closes_and_resets_without_a_response() {
    let server = Server::start([Reply::close(), Reply::reset()]).await;
    assert_eq!(bare(&server).await.unwrap(), b"");
    assert_eq!(
        bare(&server).await.unwrap_err().kind(),
        io::ErrorKind::ConnectionReset
    );
}

#[tokio::test]
async fn a_reset_reaches_clients_of_both_versions_of_http() {
    let server = Server::start(Reply::reset()).await;
    for http2 in [false, true] {
        let error = send(request(&server, "/"), http2).await.unwrap_err();
        let io: &io::Error = source(&error).expect("an error of the socket");
        assert_eq!(io.kind(), io::ErrorKind::ConnectionReset);
    }
}

#[tokio::test]
async fn half_a_response_fails_in_its_body() {
    let server = Server::start(Reply::half()).await;
    for http2 in [false, true] {
        let response = send(request(&server, "/"), http2).await.unwrap();
        let mut body = response.into_body();
        assert_eq!(
            body.frame().await.unwrap().unwrap().into_data().unwrap(),
            "first half"
        );
        assert!(body.frame().await.unwrap().is_err());
    }
}

#[tokio::test]
async fn raw_bytes_are_written_past_http() {
    let server = Server::start(Reply::raw("not http at all\r\n\r\n")).await;
    assert_eq!(bare(&server).await.unwrap(), b"not http at all\r\n\r\n");
    assert!(get(&server, "/").await.is_err());
}

#[tokio::test]
async fn a_refused_stream_says_so_in_its_reset() {
    let server = Server::start([Reply::refused_stream(), Reply::ok()]).await;
    let error = send(request(&server, "/"), true).await.unwrap_err();
    let h2: &h2::Error = source(&error).expect("an error of HTTP/2");
    assert!(h2.is_remote() && h2.is_reset());
    assert_eq!(h2.reason(), Some(h2::Reason::REFUSED_STREAM));
    assert_eq!(
        send(request(&server, "/"), true).await.unwrap().status(),
        200
    );
}

#[tokio::test]
async fn the_last_reply_of_a_connection_ends_it() {
    let server = Server::start(Reply::ok().last()).await;
    for http2 in [false, true] {
        let mut builder = Client::builder(TokioExecutor::new());
        let client = builder.http2_only(http2).build_http();
        for _ in 0..2 {
            let response = client.request(request(&server, "/")).await.unwrap();
            assert_eq!(response.headers().contains_key("connection"), !http2);
            text(response).await.unwrap();
            tokio::time::sleep(SHORT).await;
        }
    }
    assert_eq!(server.connections(), 4);
}

#[tokio::test]
async fn a_lost_response_leaves_its_effect_once_for_each_key() {
    let lost = Reply::close().commits("idempotency-key");
    let made = Reply::status(201).commits("idempotency-key");
    let server = Server::start([lost.clone(), made.clone(), lost, made]).await;
    for (key, lost) in [("\"k\"", true), ("\"k\"", false), ("", true), ("", false)] {
        let mut request = request(&server, "/pay");
        request
            .headers_mut()
            .insert("idempotency-key", key.parse().unwrap());
        assert_eq!(send(request, false).await.is_err(), lost);
    }
    let effects = server.effects();
    assert_eq!((effects["\"k\""], effects[""]), (1, 2));
}

#[tokio::test]
async fn a_handler_stops_soon_after_its_client_went_away() {
    let server = Server::start(Reply::hang()).await;
    for http2 in [false, true] {
        let call = send(request(&server, "/"), http2);
        assert!(tokio::time::timeout(SHORT, call).await.is_err());
        let gone = clock::now();
        assert!(server.running() <= 1);
        server.until_idle().await;
        let stopped = server.stopped_at().unwrap();
        assert!(stopped.saturating_duration_since(gone) < Duration::from_secs(1));
    }
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn a_handler_runs_until_its_body_is_over() {
    let server = Server::start(Reply::ok().body(Frames::new().data("a").hang()).streamed()).await;
    let response = get(&server, "/").await.unwrap();
    assert_eq!(server.running(), 1);
    drop(response);
    server.until_idle().await;
}

#[tokio::test]
async fn an_early_reply_does_not_wait_for_the_upload() {
    let server = Server::start(Reply::status(503).early()).await;
    let stuck = ScriptedBody::new(Frames::new().data("a").hang()).without_hints();
    let mut request = request(&server, "/").map(|_| stuck);
    *request.method_mut() = http::Method::POST;
    assert_eq!(send(request, true).await.unwrap().status(), 503);
}

#[tokio::test]
async fn a_closure_may_answer_instead_of_a_script() {
    let server = Server::with(async |request: Request<Incoming>| {
        Response::new(Full::from(request.uri().path().to_owned()))
    })
    .await;
    assert_eq!(
        text(get(&server, "/echo").await.unwrap()).await.unwrap(),
        "/echo"
    );
}

#[tokio::test]
async fn a_stopped_server_refuses_connections_and_drops_those_that_it_had() -> Result<(), BoxError>
{
    let server = Server::start(Reply::ok()).await;
    let address = server.address();
    let mut open = TcpStream::connect(address).await?;
    server.stop().await;
    let refused = TcpStream::connect(address).await.unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    assert_eq!(open.read(&mut [0; 8]).await.unwrap_or(0), 0);
    Ok(())
}
