//! A client that sends one request after the other, by hand, so that nothing is sent again behind our backs.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How a client's requests ended.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Whole answers.
    pub(super) answered: usize,
    /// Answers that broke off after their first byte.
    pub(super) torn: usize,
    /// Connections that ended without an answer.
    pub(super) lost: usize,
    /// Attempts at a connection that were refused.
    pub(super) refused: usize,
}

impl Seen {
    pub(super) fn add(&mut self, other: &Self) {
        self.answered += other.answered;
        self.torn += other.torn;
        self.lost += other.lost;
        self.refused += other.refused;
    }
}

/// What one request on a connection came to.
enum Ended {
    /// Answered; whether the connection may be used again.
    Answered(bool),
    Torn,
    Lost,
}

/// Sends requests on a connection that is kept, until the server says that an answer was its last.
pub(super) async fn until_told(address: SocketAddr, path: &str) -> Seen {
    let mut seen = Seen::default();
    let Ok(mut socket) = TcpStream::connect(address).await else {
        seen.refused += 1;
        return seen;
    };
    loop {
        match exchange(&mut socket, path).await {
            Ended::Answered(goes_on) => {
                seen.answered += 1;
                if !goes_on {
                    return seen;
                }
            }
            Ended::Torn => {
                seen.torn += 1;
                return seen;
            }
            Ended::Lost => {
                seen.lost += 1;
                return seen;
            }
        }
    }
}

/// The same, with another connection after each that has ended, until none is taken any more.
pub(super) async fn until_refused(address: SocketAddr, path: &str) -> Seen {
    let mut seen = Seen::default();
    while seen.refused == 0 && seen.lost < 100 {
        let more = until_told(address, path).await;
        seen.add(&more);
    }
    seen
}

async fn exchange(socket: &mut TcpStream, path: &str) -> Ended {
    let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n");
    if socket.write_all(request.as_bytes()).await.is_err() {
        return Ended::Lost;
    }
    let mut answer = Vec::new();
    loop {
        match socket.read_buf(&mut answer).await {
            Ok(0) | Err(_) if answer.is_empty() => return Ended::Lost,
            Ok(0) | Err(_) => return Ended::Torn,
            Ok(_) if answer.ends_with(b"\r\n\r\ndone\n") => break,
            Ok(_) => {}
        }
    }
    let text = String::from_utf8(answer).unwrap();
    assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
    Ended::Answered(!text.contains("connection: close\r\n"))
}
