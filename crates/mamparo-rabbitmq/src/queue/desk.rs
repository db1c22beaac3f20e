//! What the broker has handed over and nobody has settled.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use lapin::options::BasicAckOptions;
use lapin::{Acker, BasicProperties};
use mamparo_core::clock;
use mamparo_durable::backend::Receipt;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use crate::link::{ANSWER, RabbitError};

/// A message that is ours until it is settled, or its connection is lost.
#[derive(Debug)]
pub(super) struct Delivered {
    pub(super) exchange: String,
    pub(super) routing_key: String,
    pub(super) properties: BasicProperties,
    pub(super) body: Bytes,
    pub(super) acker: Acker,
}

impl From<lapin::message::Delivery> for Delivered {
    fn from(delivery: lapin::message::Delivery) -> Self {
        Self {
            exchange: delivery.exchange.to_string(),
            routing_key: delivery.routing_key.to_string(),
            properties: delivery.properties,
            body: delivery.data.into(),
            acker: delivery.acker,
        }
    }
}

/// What was delivered: in line for who takes, or under a lease.
#[derive(Debug, Default)]
pub(super) struct Desk {
    held: Mutex<Held>,
    /// Something is in line, or the connection is lost.
    pub(super) arrived: Notify,
    /// A lease may end earlier than those before it.
    pub(super) leased: Notify,
}

#[derive(Debug, Default)]
struct Held {
    /// Which connection all of it is of: what is of another is delivered again.
    session: u64,
    last: u64,
    line: VecDeque<Arc<Delivered>>,
    leases: HashMap<u64, Lease>,
}

#[derive(Debug)]
struct Lease {
    number: u64,
    until: Instant,
    delivered: Arc<Delivered>,
}

/// A message, taken: what is to be looked at, and the numbers of its receipt.
#[derive(Debug)]
pub(super) struct Leased {
    pub(super) message: u64,
    pub(super) lease: u64,
    pub(super) delivered: Arc<Delivered>,
}

impl Desk {
    /// Begins with what a new connection delivers.
    pub(super) fn begin(&self) -> u64 {
        let mut held = self.held();
        held.line.clear();
        held.leases.clear();
        held.session += 1;
        held.session
    }

    /// Forgets what a connection delivered that is lost.
    pub(super) fn forget(&self, session: u64) {
        let mut held = self.held();
        if held.session == session {
            held.line.clear();
            held.leases.clear();
        }
        drop(held);
        self.arrived.notify_waiters();
    }

    pub(super) fn add(&self, session: u64, delivered: Delivered) {
        let mut held = self.held();
        if held.session != session {
            return;
        }
        held.line.push_back(Arc::new(delivered));
        drop(held);
        self.arrived.notify_waiters();
    }

    /// Takes the first in line.
    pub(super) fn lease(&self, lease: Duration) -> Option<Leased> {
        let mut held = self.held();
        let delivered = held.line.pop_front()?;
        let leased = held.lease(&delivered, clock::now() + lease);
        drop(held);
        self.leased.notify_one();
        Some(leased)
    }

    /// Takes away what is under this lease, to settle it; `None` if it isn't any more.
    pub(super) fn settle(&self, receipt: &Receipt) -> Option<(Settling<'_>, Arc<Delivered>)> {
        let mut held = self.held();
        let lease = held.leases.get(&receipt.message)?;
        if lease.number != receipt.lease {
            return None;
        }
        let lease = held.leases.remove(&receipt.message)?;
        let settling = Settling {
            desk: self,
            session: held.session,
            delivered: Some(Arc::clone(&lease.delivered)),
        };
        Some((settling, lease.delivered))
    }

    /// Holds a lease for longer, unless it is over.
    pub(super) fn extend(&self, receipt: &Receipt, lease: Duration) {
        let now = clock::now();
        if let Some(held) = self.held().leases.get_mut(&receipt.message)
            && held.number == receipt.lease
            && held.until > now
        {
            held.until = now + lease;
        }
    }

    /// Takes those away whose leases are over, for the broker to deliver them again.
    pub(super) fn over(&self) -> Vec<Arc<Delivered>> {
        let now = clock::now();
        let over = |_: &u64, lease: &mut Lease| lease.until <= now;
        let over: Vec<_> = self.held().leases.extract_if(over).collect();
        over.into_iter().map(|(_, lease)| lease.delivered).collect()
    }

    /// When the first lease is over.
    pub(super) fn next_end(&self) -> Option<Instant> {
        self.held().leases.values().map(|lease| lease.until).min()
    }

    /// How many are in line.
    pub(super) fn in_line(&self) -> usize {
        self.held().line.len()
    }

    /// How many are under a lease.
    pub(super) fn taken(&self) -> usize {
        self.held().leases.len()
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn lease(&mut self, delivered: &Arc<Delivered>, until: Instant) -> Leased {
        self.last += 1;
        let number = fastrand::u64(1..);
        let lease = Lease {
            number,
            until,
            delivered: Arc::clone(delivered),
        };
        self.leases.insert(self.last, lease);
        Leased {
            message: self.last,
            lease: number,
            delivered: Arc::clone(delivered),
        }
    }
}

/// A message that nobody else can settle any more. Dropped before it is acknowledged, it is given back.
#[derive(Debug)]
pub(super) struct Settling<'a> {
    desk: &'a Desk,
    session: u64,
    delivered: Option<Arc<Delivered>>,
}

impl Settling<'_> {
    /// Tells the broker that it is done with.
    ///
    /// # Errors
    ///
    /// The connection is lost: it is delivered again.
    pub(super) async fn acknowledge(mut self) -> Result<(), RabbitError> {
        let Some(delivered) = &self.delivered else {
            return Ok(());
        };
        let told = timeout(ANSWER, delivered.acker.ack(BasicAckOptions::default())).await;
        self.delivered = None;
        match told {
            Ok(Ok(true)) => Ok(()),
            _ => Err(RabbitError::lost()),
        }
    }
}

impl Drop for Settling<'_> {
    fn drop(&mut self) {
        let Some(delivered) = self.delivered.take() else {
            return;
        };
        let mut held = self.desk.held();
        if held.session == self.session {
            // Its lease is over at once.
            held.lease(&delivered, clock::now());
        }
        drop(held);
        self.desk.leased.notify_one();
    }
}
