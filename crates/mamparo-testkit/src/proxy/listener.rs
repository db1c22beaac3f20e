//! The proxy that a test holds.

use super::fault::Fault;
use super::forward::forward;
use super::weather::Switch;
use crate::sync::lock;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio::task::{JoinHandle, JoinSet};

/// A proxy on a free port of 127.0.0.1 in front of one address; it stops when it is dropped.
#[derive(Debug)]
pub struct FaultProxy {
    address: SocketAddr,
    traffic: Arc<Traffic>,
    listening: Mutex<Option<JoinHandle<()>>>,
}

impl FaultProxy {
    /// Starts a proxy without a fault.
    ///
    /// # Panics
    ///
    /// Panics if no port of 127.0.0.1 can be opened.
    pub async fn start(target: SocketAddr) -> Self {
        let listener = bind(0).await;
        let address = listener.local_addr().expect("a bound socket's address");
        let traffic = Arc::new(Traffic::new(target));
        let task = tokio::spawn(Arc::clone(&traffic).accept(listener));
        Self {
            address,
            traffic,
            listening: Mutex::new(Some(task)),
        }
    }

    /// Switches the fault; on return it holds, for new connections and for open ones.
    ///
    /// # Panics
    ///
    /// Panics if the port can't be opened again after [`Fault::Refuse`].
    pub async fn set(&self, fault: Fault) {
        self.set_for(1.0, fault).await;
    }

    /// Switches the fault for a share of the connections, from 0 to 1, spread evenly; the others are forwarded unspoiled.
    ///
    /// Which ones is the same in every run. [`Fault::Refuse`] refuses all, whatever the share.
    ///
    /// # Panics
    ///
    /// As [`set`](Self::set).
    pub async fn set_for(&self, share: f64, fault: Fault) {
        let mut listening = self.listening.lock().await;
        self.traffic.switch.set(fault, share);
        if fault != Fault::Refuse {
            if listening.is_none() {
                let listener = bind(self.address.port()).await;
                *listening = Some(tokio::spawn(Arc::clone(&self.traffic).accept(listener)));
            }
        } else if let Some(task) = listening.take() {
            task.abort();
            // The port is closed once the task is gone; it ends by this abort.
            drop(task.await);
        }
    }

    /// Returns the address that the proxy listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL of a path, which begins with `/`, through the proxy.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns how many connections were ever accepted.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.traffic.accepted.load(Ordering::SeqCst)
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        if let Some(task) = self.listening.get_mut() {
            task.abort();
        }
        lock(&self.traffic.open).abort_all();
    }
}

async fn bind(port: u16) -> TcpListener {
    let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await;
    bound.expect("a port on 127.0.0.1")
}

/// What outlives one listening: the open connections and the fault.
#[derive(Debug)]
struct Traffic {
    target: SocketAddr,
    switch: Switch,
    open: std::sync::Mutex<JoinSet<()>>,
    accepted: AtomicUsize,
}

impl Traffic {
    fn new(target: SocketAddr) -> Self {
        Self {
            target,
            switch: Switch::new(),
            open: std::sync::Mutex::default(),
            accepted: AtomicUsize::new(0),
        }
    }

    async fn accept(self: Arc<Self>, listener: TcpListener) {
        while let Ok((client, _)) = listener.accept().await {
            self.accepted.fetch_add(1, Ordering::SeqCst);
            let mut open = lock(&self.open);
            while open.try_join_next().is_some() {}
            open.spawn(forward(client, self.target, self.switch.weather()));
        }
    }
}
