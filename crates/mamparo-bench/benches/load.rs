//! A client that takes little of the processor itself: prepared bytes over connections that stay open.

use std::time::Duration;

use mamparo_core::clock;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

const CONNECTIONS: u64 = 64;
const BODY: &str = r#"{"amount":100,"currency":"eur"}"#;

/// What is asked.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Ask {
    WithoutKey,
    /// Each key for the first time.
    First,
    /// A key that was answered; the answer must be the same.
    Again,
}

/// Connections to one server, and what it answered to each key.
pub(crate) struct Connections(Vec<Connection>);

struct Connection {
    stream: TcpStream,
    number: u64,
    cookie: String,
    received: Vec<u8>,
    answers: Vec<Vec<u8>>,
}

impl Connections {
    /// Opens them, each with a session of its own from this path where there is one.
    pub(crate) async fn open(port: u16, session: Option<&str>) -> Self {
        let mut all = Vec::new();
        for number in 0..CONNECTIONS {
            let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            stream.set_nodelay(true).unwrap();
            let mut connection = Connection {
                stream,
                number,
                cookie: String::new(),
                received: Vec::new(),
                answers: Vec::new(),
            };
            if let Some(path) = session {
                connection.begin(path).await;
            }
            all.push(connection);
        }
        Self(all)
    }

    /// Makes so many calls, shared out among the connections, with so many keys; returns how long they took.
    pub(crate) async fn ask(&mut self, ask: Ask, calls: u64, keys: u64) -> Duration {
        let begun = clock::now();
        let mut under_way = JoinSet::new();
        for mut connection in self.0.drain(..) {
            under_way.spawn(async move {
                let share = |all: u64| (connection.number..all).step_by(CONNECTIONS as usize);
                let keys: Vec<u64> = share(keys).collect();
                for call in 0..share(calls).count() {
                    connection.one(ask, &keys, call).await;
                }
                connection
            });
        }
        self.0 = under_way.join_all().await;
        begun.elapsed()
    }
}

impl Connection {
    async fn begin(&mut self, path: &str) {
        let head = self.exchange(path, "").await;
        let head = String::from_utf8_lossy(&self.received[..head]).into_owned();
        let cookie = head
            .lines()
            .find_map(|line| line.strip_prefix("set-cookie: "));
        let cookie = cookie.unwrap().split(';').next().unwrap();
        self.cookie = format!("cookie: {cookie}\r\n");
    }

    async fn one(&mut self, ask: Ask, keys: &[u64], call: usize) {
        let place = call % keys.len().max(1);
        let key = match ask {
            Ask::WithoutKey => String::new(),
            _ => format!("idempotency-key: \"key-{:016x}\"\r\n", keys[place]),
        };
        let head = self.exchange("/charges", &key).await;
        let answer = &self.received[head..];
        match ask {
            Ask::WithoutKey => (),
            Ask::First => self.answers.push(answer.to_vec()),
            Ask::Again => assert!(self.answers[place] == answer, "executed twice"),
        }
    }

    /// Sends one request and receives its answer; returns how long the head is.
    async fn exchange(&mut self, path: &str, key: &str) -> usize {
        let (cookie, length) = (&self.cookie, BODY.len());
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n{cookie}{key}\r\n{BODY}"
        );
        self.stream.write_all(request.as_bytes()).await.unwrap();
        self.received.clear();
        loop {
            let read = self.stream.read_buf(&mut self.received).await.unwrap();
            assert!(read > 0, "the server closes the connection");
            if let Some((head, whole)) = lengths(&self.received)
                && self.received.len() >= whole
            {
                assert!(self.received.starts_with(b"HTTP/1.1 200"), "refused");
                return head;
            }
        }
    }
}

/// How long the head is, and the whole answer.
fn lengths(received: &[u8]) -> Option<(usize, usize)> {
    let end = received.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = std::str::from_utf8(&received[..end]).unwrap();
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        let named = name.eq_ignore_ascii_case("content-length");
        named.then(|| value.parse::<usize>().unwrap())
    });
    Some((end, end + length.unwrap()))
}
