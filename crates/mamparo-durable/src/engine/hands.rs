//! What was taken from a queue and is not settled yet.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tower_service::Service;

use crate::backend::{Delivery, Receipt};

/// The deliveries of one pump. Whoever stops it can tell those that still wait for their turn from those that have begun.
#[derive(Clone, Debug, Default)]
pub(super) struct Hands {
    held: Arc<Mutex<HashMap<Receipt, Arc<AtomicBool>>>>,
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub(super) struct Held {
    hands: Hands,
    receipt: Receipt,
    begun: Arc<AtomicBool>,
}

impl Hands {
    pub(super) fn hold(&self, receipt: Receipt) -> Held {
        let begun = Arc::new(AtomicBool::new(false));
        self.held().insert(receipt.clone(), Arc::clone(&begun));
        Held {
            hands: self.clone(),
            receipt,
            begun,
        }
    }

    pub(super) fn receipts(&self) -> Vec<Receipt> {
        self.held().keys().cloned().collect()
    }

    fn begin(&self, receipt: &Receipt) {
        if let Some(begun) = self.held().get(receipt) {
            begun.store(true, Ordering::Relaxed);
        }
    }

    fn held(&self) -> MutexGuard<'_, HashMap<Receipt, Arc<AtomicBool>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    pub(super) fn has_begun(&self) -> bool {
        self.begun.load(Ordering::Relaxed)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.hands.held().remove(&self.receipt);
    }
}

/// Notes that a delivery has passed all layers and begins.
#[derive(Clone, Debug)]
pub(super) struct Begins<S> {
    inner: S,
    hands: Hands,
}

impl<S> Begins<S> {
    pub(super) const fn new(inner: S, hands: Hands) -> Self {
        Self { inner, hands }
    }
}

impl<S: Service<Delivery>> Service<Delivery> for Begins<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, delivery: Delivery) -> S::Future {
        self.hands.begin(&delivery.receipt);
        self.inner.call(delivery)
    }
}
