//! The socket of one connection, and how a reply ends it.

use bytes::Bytes;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::watch;

/// What a reply wants done with its whole connection.
#[derive(Clone, Debug)]
pub(super) enum Order {
    /// Goes on.
    Serve,
    /// Takes no further request: `connection: close`, or GOAWAY.
    Drain,
    /// Ends with FIN.
    Close,
    /// Ends with RST.
    Reset,
    /// Writes these bytes past HTTP, then ends with FIN.
    Raw(Bytes),
}

/// Carries orders from a reply to its connection.
#[derive(Clone, Debug)]
pub(super) struct Link(Arc<watch::Sender<Order>>);

impl Link {
    pub(super) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(Order::Serve)))
    }

    pub(super) fn order(&self, order: Order) {
        self.0.send_replace(order);
    }

    pub(super) fn orders(&self) -> watch::Receiver<Order> {
        self.0.subscribe()
    }
}

/// A socket that ends as its link was ordered.
#[derive(Debug)]
pub(super) struct Wire {
    stream: TcpStream,
    link: Link,
}

impl Wire {
    pub(super) fn new(stream: TcpStream, link: Link) -> Self {
        stream.set_nodelay(true).expect("a fresh socket's option");
        Self { stream, link }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        // A peer that is gone already needs neither.
        match &*self.link.0.borrow() {
            Order::Reset => drop(self.stream.set_zero_linger()),
            Order::Raw(bytes) => drop(self.stream.try_write(bytes)),
            Order::Serve | Order::Drain | Order::Close => {}
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
