//! Takes from one queue, hands each delivery to a service, and settles it by what comes back.

use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use mamparo_core::{BoxError, Rejection, clock};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tower_service::Service;

use super::Task;
use super::hands::Hands;
use super::health::Health;
use crate::backend::{BackendError, Delivery, Queue, Receipt};
use crate::fail_point::FailPoint;
use crate::handler::{Handled, Listener, Settlement};
use crate::machine::{Alert, AlertKind};
use crate::supervise::{Backoff, is_stopped, stopped, until_stop};

/// Between two looks at a queue that called itself ready and had nothing, again and again: no busy loop, whatever the backend says.
const EMPTY_PAUSE: Duration = Duration::from_millis(5);

/// As often may that happen before the pause.
const EMPTY_LOOKS: u32 = 8;

/// The wait before a message is delivered again whose handling failed for the first time; it doubles up to [`LONGEST_DELAY`].
const FIRST_DELAY: Duration = Duration::from_millis(100);
const LONGEST_DELAY: Duration = Duration::from_secs(30);

/// How much of a stop, and how long at most, the backend has to take back what was not done.
const LAST_WORD: (u32, Duration) = (5, Duration::from_secs(1));

/// How a queue is emptied.
#[derive(Clone, Copy, Debug)]
pub(super) struct PumpSettings {
    pub(super) at_once: usize,
    pub(super) lease: Duration,
    pub(super) look_again: Duration,
    pub(super) drain: Duration,
}

/// One queue, the service that handles what is in it, and how.
#[derive(Clone, Debug)]
pub(super) struct Pump<S> {
    pub(super) task: Task,
    pub(super) queue: Arc<dyn Queue>,
    pub(super) service: S,
    pub(super) hands: Hands,
    pub(super) settings: PumpSettings,
    pub(super) health: Arc<Health>,
    pub(super) listener: Arc<dyn Listener>,
    pub(super) stop: watch::Receiver<bool>,
}

impl<S> Pump<S>
where
    S: Service<Delivery, Response = Handled, Error = BoxError> + Clone + Send + Sync + 'static,
    S::Future: Send,
{
    /// Works until it is told to stop.
    ///
    /// # Errors
    ///
    /// The backend's, if asking it again can't help.
    pub(super) async fn run(self) -> Result<(), BackendError> {
        // Ends with this function, whatever it ends with.
        let mut beats = JoinSet::new();
        beats.spawn(hold_leases(
            Arc::clone(&self.queue),
            self.hands.clone(),
            self.settings.lease,
        ));
        let mut work = JoinSet::new();
        let ended = self.take_all(&mut work).await;
        self.drain(&mut work).await;
        ended
    }

    async fn take_all(&self, work: &mut JoinSet<()>) -> Result<(), BackendError> {
        let mut failing = Backoff::default();
        let mut empty = 0_u32;
        while !is_stopped(&self.stop) {
            let free = self.settings.at_once.saturating_sub(work.len());
            if free == 0 {
                self.reap(work).await;
                continue;
            }
            match self.queue.take(free, self.settings.lease).await {
                Ok(taken) => {
                    self.health.works(self.task, true);
                    failing = Backoff::default();
                    empty = if taken.is_empty() { empty + 1 } else { 0 };
                    let full = taken.len() >= free;
                    if let Some(first) = taken.first() {
                        FailPoint::Taken(first.receipt.queue).reach();
                    }
                    for delivery in taken {
                        work.spawn(self.clone().one(delivery));
                    }
                    let began = clock::now();
                    if !full {
                        self.wait(work, empty).await;
                    }
                    if clock::now() - began >= EMPTY_PAUSE {
                        empty = 0;
                    }
                }
                Err(error) if error.is_transient() => {
                    self.health
                        .backend_fails(self.task, &*self.listener, &error);
                    until_stop(&self.stop, failing.next()).await;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Waits until one of those in hand is done.
    async fn reap(&self, work: &mut JoinSet<()>) {
        tokio::select! {
            () = stopped(&self.stop) => {}
            _ = work.join_next() => {}
        }
        while work.try_join_next().is_some() {}
    }

    /// Waits until there may be something to take.
    async fn wait(&self, work: &mut JoinSet<()>, empty: u32) {
        if empty > EMPTY_LOOKS {
            until_stop(&self.stop, EMPTY_PAUSE).await;
        }
        let mut ready = pin!(self.queue.ready());
        let mut look_again = pin!(tokio::time::sleep(self.settings.look_again));
        let mut stop = pin!(stopped(&self.stop));
        loop {
            tokio::select! {
                () = &mut ready => return,
                () = &mut look_again => return,
                () = &mut stop => return,
                Some(_) = work.join_next() => {}
            }
        }
    }

    async fn one(self, delivery: Delivery) {
        let (receipt, number) = (delivery.receipt.clone(), delivery.number);
        let held = self.hands.hold(receipt.clone());
        let handling = AssertUnwindSafe(handle(self.service.clone(), delivery)).catch_unwind();
        let mut handling = pin!(handling);
        let handled = tokio::select! {
            biased;
            handled = &mut handling => Some(handled),
            () = stopped(&self.stop) => None,
        };
        let handled = match handled {
            Some(handled) => handled,
            None if held.has_begun() => handling.await,
            // It waits for its turn, and nothing was done.
            None => return self.settled(self.queue.release(receipt, Duration::ZERO, false).await),
        };
        let end = match handled {
            Ok(Ok(handled)) => self.settle(receipt, handled).await,
            Ok(Err(error)) => self.give_back(receipt, number, &error).await,
            Err(_) => {
                let why = format!("a handler panicked at a message of {}", self.task.as_str());
                let alert = Alert::general(AlertKind::TaskDied, 1).with_detail(why.as_str());
                self.listener.alert(&alert);
                self.queue.release(receipt, delay(number), true).await
            }
        };
        self.settled(end);
    }

    async fn settle(&self, receipt: Receipt, handled: Handled) -> Result<(), BackendError> {
        let queue = receipt.queue;
        FailPoint::Settling(queue).reach();
        let settled = match handled.settlement {
            Settlement::Acknowledge => self.queue.acknowledge(vec![receipt]).await,
            Settlement::Acknowledged => Ok(()),
            Settlement::Bury => self.queue.bury(receipt, handled.note.as_str().into()).await,
        };
        FailPoint::Settled(queue).reach();
        settled
    }

    /// Gives back what could not be handled. What a layer refused, or a backend that is down, is not the message's fault.
    async fn give_back(
        &self,
        receipt: Receipt,
        number: u32,
        error: &BoxError,
    ) -> Result<(), BackendError> {
        if let Some(rejection) = Rejection::of(&**error).filter(|rejection| !rejection.sent()) {
            let wait = rejection.retry_after().unwrap_or(FIRST_DELAY);
            return self
                .queue
                .release(receipt, wait.min(LONGEST_DELAY), false)
                .await;
        }
        let transient = error
            .downcast_ref::<BackendError>()
            .is_some_and(BackendError::is_transient);
        if transient {
            self.health
                .backend_fails(self.task, &*self.listener, &**error);
        }
        self.queue.release(receipt, delay(number), !transient).await
    }

    /// What could not be settled is delivered again once its lease is over.
    fn settled(&self, end: Result<(), BackendError>) {
        if let Err(error) = end {
            self.health
                .backend_fails(self.task, &*self.listener, &error);
        }
    }

    /// Lets what has begun go on for a while, and gives back what is not done by then: all of it takes no longer than it may.
    async fn drain(&self, work: &mut JoinSet<()>) {
        let drain = self.settings.drain;
        let last_word = (drain / LAST_WORD.0).min(LAST_WORD.1);
        let all = async { while work.join_next().await.is_some() {} };
        if tokio::time::timeout(drain - last_word, all).await.is_ok() {
            return;
        }
        let left = self.hands.receipts();
        work.shutdown().await;
        let given_back = left
            .into_iter()
            .map(|receipt| self.queue.release(receipt, Duration::ZERO, false));
        let given_back = futures_util::future::join_all(given_back);
        // A backend that does not answer now gives them back itself, once their leases are over.
        drop(tokio::time::timeout(last_word, given_back).await);
    }
}

async fn handle<S>(mut service: S, delivery: Delivery) -> Result<Handled, BoxError>
where
    S: Service<Delivery, Response = Handled, Error = BoxError>,
{
    poll_fn(|cx| service.poll_ready(cx)).await?;
    service.call(delivery).await
}

/// Keeps what is in hand from being delivered to others, for as long as it takes.
async fn hold_leases(queue: Arc<dyn Queue>, hands: Hands, lease: Duration) {
    loop {
        tokio::time::sleep(lease / 3).await;
        let receipts = hands.receipts();
        if !receipts.is_empty() {
            // Should it fail, others may take them: the dependency sees the same key twice.
            drop(queue.extend(receipts, lease).await);
        }
    }
}

fn delay(number: u32) -> Duration {
    let doubled = 1_u32 << number.saturating_sub(1).min(16);
    FIRST_DELAY.saturating_mul(doubled).min(LONGEST_DELAY)
}
