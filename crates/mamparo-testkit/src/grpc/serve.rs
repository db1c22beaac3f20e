//! The service behind a server, and a channel to it.

use super::answer::{self, Act, Answer, Answers};
use super::echo::Echoing;
use super::generated::echo_server::EchoServer;
use crate::server::Server;
use http::{Request, Response};
use hyper::body::Incoming;
use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use tonic::transport::{Channel, Endpoint};
use tower_service::Service;

/// Starts a server that answers by script; it stops when it is dropped.
///
/// It is no server of tonic's: `grpc-timeout` is kept with the request, and not obeyed.
///
/// # Panics
///
/// Panics if no port of 127.0.0.1 can be opened.
pub async fn serve(answers: impl Into<Answers>) -> Server {
    let answers = Arc::new(answers.into());
    Server::with(move |request| answer(answers.next(), request)).await
}

/// Makes a channel that connects when it is first used.
///
/// # Panics
///
/// Panics if an address is no URL, which none is.
#[must_use]
pub fn connect(address: SocketAddr) -> Channel {
    let endpoint = Endpoint::from_shared(format!("http://{address}"));
    endpoint.expect("a URL").connect_lazy()
}

async fn answer(answer: Answer, request: Request<Incoming>) -> Response<tonic::body::Body> {
    if !answer.delay.is_zero() {
        tokio::time::sleep(answer.delay).await;
    }
    match answer.act {
        Act::Echo => match EchoServer::new(Echoing).call(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        },
        Act::Status { fields, late } => answer::respond(fields, late),
        Act::Page { status, html } => answer::page(status, html),
        Act::Hang => pending().await,
    }
}
