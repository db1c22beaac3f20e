//! What was taken from a queue and is not settled.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mamparo_core::clock::{self, Instant};
use mamparo_durable::backend::Receipt;
use mamparo_durable::machine::Utc;

/// So long after its lease is over, a message that was handled may still be removed.
const LATE: Duration = Duration::from_secs(60);

/// The leases of this process on the messages of one queue. What is not in here, any more or at all, is another's.
///
/// SQS itself lets an old receipt handle delete, or make visible, what another has in hand.
#[derive(Debug, Default)]
pub(super) struct Held(Mutex<HashMap<u64, Hold>>);

/// A message in hand.
#[derive(Clone, Debug)]
pub(super) struct Hold {
    /// The message, whatever the lease.
    of: u64,
    pub(super) until: Instant,
    /// Whether it was given back, and waits for its delay.
    pub(super) later: bool,
    pub(super) message: Arc<Taken>,
}

/// What SQS delivered.
#[derive(Clone, Debug)]
pub(super) struct Taken {
    pub(super) handle: String,
    pub(super) body: String,
    /// Which delivery this is, from 1.
    pub(super) number: u32,
    pub(super) since: Utc,
}

impl Held {
    /// Adds a message under its lease, which ends all leases on it before.
    pub(super) fn add(&self, receipt: &Receipt, until: Instant, message: Taken) {
        let mut held = self.lock();
        let (now, of) = (clock::now(), receipt.message);
        held.retain(|_, hold| hold.of != of && clock::later(hold.until, LATE) > now);
        let hold = Hold {
            of,
            until,
            later: false,
            message: Arc::new(message),
        };
        held.insert(receipt.lease, hold);
    }

    /// Returns the message if its lease is not over.
    pub(super) fn get(&self, receipt: &Receipt) -> Option<Arc<Taken>> {
        let held = self.lock();
        let hold = held.get(&receipt.lease)?;
        let mine = !hold.later && hold.until > clock::now();
        mine.then(|| Arc::clone(&hold.message))
    }

    /// Returns when its lease is over.
    pub(super) fn ends(&self, receipt: &Receipt) -> Option<Instant> {
        self.lock().get(&receipt.lease).map(|hold| hold.until)
    }

    /// Returns the message even if its lease is over, as far as it is known to be nobody else's: whoever has handled it may remove it.
    pub(super) fn handled(&self, receipt: &Receipt) -> Option<Arc<Taken>> {
        let held = self.lock();
        let hold = held.get(&receipt.lease).filter(|hold| !hold.later)?;
        Some(Arc::clone(&hold.message))
    }

    /// Notes a longer lease.
    pub(super) fn extend(&self, receipt: &Receipt, until: Instant) {
        if let Some(hold) = self.lock().get_mut(&receipt.lease) {
            hold.until = until;
        }
    }

    /// Notes that it was given back, and when it comes again.
    pub(super) fn release(&self, receipt: &Receipt, delay: Duration) {
        if let Some(hold) = self.lock().get_mut(&receipt.lease) {
            (hold.later, hold.until) = (true, clock::later(clock::now(), delay));
        }
    }

    /// Forgets a message that is settled.
    pub(super) fn remove(&self, receipt: &Receipt) {
        self.lock().remove(&receipt.lease);
    }

    /// Counts what was given back and waits for its delay.
    pub(super) fn later(&self) -> u64 {
        let now = clock::now();
        let held = self.lock();
        held.values()
            .filter(|hold| hold.later && hold.until > now)
            .count() as u64
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Hold>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
