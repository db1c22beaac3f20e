//! The server that a test holds.

use super::connection;
use super::exchange::Exchange;
use crate::sync::lock;
use std::collections::{HashSet, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

/// How long [`ScriptedH2::until_idle`] waits before it gives the test up.
const IDLE_LIMIT: Duration = Duration::from_secs(10);

/// A server that speaks HTTP/2 by script; it stops when it is dropped.
#[derive(Debug)]
pub struct ScriptedH2 {
    address: SocketAddr,
    notes: Arc<Mutex<Notes>>,
    task: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Notes {
    exchanges: VecDeque<Exchange>,
    connections: usize,
    streams: usize,
    open: HashSet<(usize, u32)>,
    resets: Vec<h2::Reason>,
}

impl ScriptedH2 {
    /// Starts a server with the exchanges of its streams, whichever connection they come over; the last one is repeated.
    ///
    /// # Panics
    ///
    /// Panics if no port of 127.0.0.1 can be opened.
    pub async fn start(exchanges: impl IntoIterator<Item = Exchange>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("a free port on 127.0.0.1");
        let address = listener.local_addr().expect("a bound socket's address");
        let notes = Arc::new(Mutex::new(Notes {
            exchanges: exchanges.into_iter().collect(),
            ..Notes::default()
        }));
        let task = tokio::spawn(accept(listener, Arc::clone(&notes)));
        Self {
            address,
            notes,
            task,
        }
    }

    /// Returns the address that the server listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns how many connections were ever accepted.
    #[must_use]
    pub fn connections(&self) -> usize {
        lock(&self.notes).connections
    }

    /// Returns how many requests ever began.
    #[must_use]
    pub fn streams(&self) -> usize {
        lock(&self.notes).streams
    }

    /// Returns how many streams neither side has ended.
    #[must_use]
    pub fn open(&self) -> usize {
        lock(&self.notes).open.len()
    }

    /// Returns why clients reset streams, in order.
    #[must_use]
    pub fn resets(&self) -> Vec<h2::Reason> {
        lock(&self.notes).resets.clone()
    }

    /// Waits until no stream is open.
    ///
    /// # Panics
    ///
    /// Panics if one still is after ten seconds.
    pub async fn until_idle(&self) {
        let idle = async {
            while self.open() > 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let waited = tokio::time::timeout(IDLE_LIMIT, idle).await;
        assert!(
            waited.is_ok(),
            "a stream is still open after {IDLE_LIMIT:?}"
        );
    }
}

impl Drop for ScriptedH2 {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Accepts until it is aborted; the connections go with it.
async fn accept(listener: TcpListener, notes: Arc<Mutex<Notes>>) {
    let mut connections = JoinSet::new();
    while let Ok((socket, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        connections.spawn(connection::serve(socket, Ledger::new(&notes)));
    }
}

/// What one connection notes.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    notes: Arc<Mutex<Notes>>,
    connection: usize,
}

impl Ledger {
    fn new(notes: &Arc<Mutex<Notes>>) -> Self {
        let mut held = lock(notes);
        held.connections += 1;
        Self {
            notes: Arc::clone(notes),
            connection: held.connections,
        }
    }

    /// Notes a new stream, and says what to do with it.
    pub(super) fn begin(&self, stream: u32) -> Exchange {
        let mut notes = lock(&self.notes);
        notes.streams += 1;
        notes.open.insert((self.connection, stream));
        let next = if notes.exchanges.len() > 1 {
            notes.exchanges.pop_front()
        } else {
            notes.exchanges.front().cloned()
        };
        next.unwrap_or_default()
    }

    pub(super) fn ended(&self, stream: u32) {
        lock(&self.notes).open.remove(&(self.connection, stream));
    }

    pub(super) fn was_reset(&self, stream: u32, reason: h2::Reason) {
        self.ended(stream);
        lock(&self.notes).resets.push(reason);
    }

    pub(super) fn closed(&self) {
        let ours = self.connection;
        lock(&self.notes)
            .open
            .retain(|(connection, _)| *connection != ours);
    }
}
