//! Accepts connections and serves each until its end, or until a reply cuts it.

use super::log::{Exchange, Log};
use super::play::AnswerBody;
use super::wire::{Link, Order, Wire};
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// What answers one request; its error is how an HTTP/2 stream is reset, and HTTP/1 closes on any.
pub(super) type Handler = Arc<dyn Fn(Request<Incoming>, Exchange) -> Answer + Send + Sync>;
pub(super) type Answer =
    Pin<Box<dyn Future<Output = Result<Response<AnswerBody>, h2::Error>> + Send>>;

/// Accepts until it is aborted; the connections go with it.
pub(super) async fn accept(listener: TcpListener, log: Arc<Log>, handler: Handler) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        log.connected();
        connections.spawn(serve(stream, Arc::clone(&log), Arc::clone(&handler)));
    }
}

async fn serve(stream: TcpStream, log: Arc<Log>, handler: Handler) {
    let link = Link::new();
    let mut orders = link.orders();
    let wire = TokioIo::new(Wire::new(stream, link.clone()));
    let service = service_fn(move |request: Request<Incoming>| {
        let exchange = Log::open(&log, &request, link.clone());
        handler(request, exchange)
    });
    let builder = auto::Builder::new(TokioExecutor::new());
    let mut connection = pin!(builder.serve_connection(wire, service));
    loop {
        tokio::select! {
            biased; // an order comes before the response of the reply that gave it
            Ok(()) = orders.changed() => match *orders.borrow_and_update() {
                Order::Serve => {}
                Order::Drain => connection.as_mut().graceful_shutdown(),
                Order::Close | Order::Reset | Order::Raw(_) => return,
            },
            _ = connection.as_mut() => return,
        }
    }
}
