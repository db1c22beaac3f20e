//! gRPC's requests and answers.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full};
use mamparo_testkit::body::{Frames, ScriptedBody};
use tokio::time::sleep;
use tower::{Layer, ServiceExt, service_fn};

use super::super::{IdempotencyBuilder, IdempotencyLayer, MemoryStore, Stored};
use super::cast::policy;

fn call(key: &str, message: &'static str) -> Request<Full<Bytes>> {
    let request = Request::post("/shop.Shop/Buy").header("content-type", "application/grpc");
    let request = request
        .header("idempotency-key", key)
        .header("te", "trailers");
    request.body(Full::from(message)).unwrap()
}

struct Said {
    head: HeaderMap,
    body: Bytes,
    trailers: Option<HeaderMap>,
}

/// Calls a method that answers with a message and this status, twice; returns both answers.
async fn twice(policy: IdempotencyBuilder, status: &'static str) -> [Said; 2] {
    let layer = IdempotencyLayer::new(MemoryStore::new(), policy.build().unwrap());
    let service = layer.layer(service_fn(move |_| async move {
        let body = Frames::new().data("message").trailer("grpc-status", status);
        let body = ScriptedBody::new(body.trailer("grpc-message", "why"));
        let response = Response::builder().header("content-type", "application/grpc");
        Ok::<_, Infallible>(response.body(body).unwrap())
    }));
    let mut said = Vec::new();
    for _ in 0..2 {
        let response = service.clone().oneshot(call("k", "x")).await.unwrap();
        let head = response.headers().clone();
        let body = response.into_body().collect().await.unwrap();
        let trailers = body.trailers().cloned();
        let body = body.to_bytes();
        said.push(Said {
            head,
            body,
            trailers,
        });
    }
    said.try_into().map_err(|_| ()).unwrap()
}

#[tokio::test]
async fn message_and_trailers_are_given_again() {
    let [first, again] = twice(policy(), "0").await;
    assert!(!first.head.contains_key("idempotent-replayed"));
    assert_eq!(again.head["idempotent-replayed"], "true");
    assert_eq!((again.body, again.trailers), (first.body, first.trailers));
}

/// By the codes that are server's errors, which stand in the trailers.
#[tokio::test]
async fn a_servers_error_is_told_by_its_code() {
    for (code, stored, replayed) in [
        ("0", Stored::Successes, true),
        ("3", Stored::Successes, false),
        ("3", Stored::NotServerErrors, true),
        ("14", Stored::NotServerErrors, false),
        ("13", Stored::All, true),
    ] {
        let [_, again] = twice(policy().stored(stored), code).await;
        assert_eq!(
            again.head.contains_key("idempotent-replayed"),
            replayed,
            "{code} {stored:?}"
        );
    }
}

/// Refusals are Trailers-Only: nothing but a head.
#[tokio::test(start_paused = true)]
async fn refusals_are_told_in_grpcs_words() {
    let layer = IdempotencyLayer::new(MemoryStore::new(), policy().required().build().unwrap());
    let service = layer.layer(service_fn(async |_| {
        sleep(Duration::from_secs(5)).await;
        Ok::<_, Infallible>(Response::new(Full::<Bytes>::default()))
    }));
    let send = async |request: Request<Full<Bytes>>| {
        let response = service.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), 200);
        let head = response.headers().clone();
        assert!(
            response
                .into_body()
                .collect()
                .await
                .unwrap()
                .to_bytes()
                .is_empty()
        );
        let text = |name: &str| {
            head.get(name)
                .map(|value| value.to_str().unwrap().to_owned())
        };
        (text("grpc-status").unwrap(), text("grpc-retry-pushback-ms"))
    };
    let mut bare = call("k", "x");
    bare.headers_mut().remove("idempotency-key");
    assert_eq!(send(bare).await, ("3".into(), Some("-1".into())));
    assert_eq!(
        send(call("a b", "x")).await,
        ("3".into(), Some("-1".into()))
    );
    let running = tokio::spawn(service.clone().oneshot(call("k", "x")));
    sleep(Duration::from_secs(1)).await;
    assert_eq!(
        send(call("k", "x")).await,
        ("10".into(), Some("1000".into()))
    );
    assert_eq!(send(call("k", "y")).await, ("3".into(), Some("-1".into())));
    running.await.unwrap().unwrap();
}

/// With tonic's own server and client: one call, two attempts.
#[tokio::test]
async fn a_generated_service_is_called_once_for_a_key() {
    use mamparo_testkit::grpc::{EchoClient, EchoRequest, EchoServer, Echoing, connect};
    use tonic::transport::Server;
    use tonic::transport::server::TcpIncoming;

    let heard = std::sync::Arc::new(super::cast::Heard::default());
    let layer = IdempotencyLayer::new(MemoryStore::new(), policy().build().unwrap());
    let layers = tower::ServiceBuilder::new()
        .layer(crate::serve::grpc())
        .layer(layer.observer(heard.clone()));
    let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = incoming.local_addr().unwrap();
    let mut server = Server::builder().layer(layers);
    let server = server.add_service(EchoServer::new(Echoing));
    tokio::spawn(server.serve_with_incoming(incoming));
    let mut echo = EchoClient::new(connect(address));
    for replayed in [false, true] {
        let mut request = tonic::Request::new(EchoRequest::text("hola"));
        let key = "\"k\"".parse().unwrap();
        request.metadata_mut().insert("idempotency-key", key);
        let answer = echo.say(request).await.unwrap();
        let marked = answer.metadata().contains_key("idempotent-replayed");
        assert_eq!((answer.get_ref().text.as_str(), marked), ("hola", replayed));
    }
    let mut other = tonic::Request::new(EchoRequest::text("adios"));
    other
        .metadata_mut()
        .insert("idempotency-key", "k".parse().unwrap());
    let status = echo.say(other).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::InvalidArgument);
    assert!(heard.has(mamparo_core::KeyStep::Mismatch));
}
