//! A backend whose caller dies, at one call that changes something, before it or after it; or who reads what was true before.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use crate::backend::{
    Backend, BackendError, Begun, BoxFuture, Census, Committed, Created, DeadLetter, Delivery,
    Depth, Filter, Message, NewTransaction, Outbox, PostponeDue, Queue, QueueName, Receipt,
    Scheduler, Step, Store, Trouble, Written,
};
use crate::machine::{AuditEvent, Label, Patience, Record, Schedule, TransactionId, Utc, Write};

/// When whoever calls dies.
#[derive(Clone, Debug)]
pub(super) struct Death {
    /// How many calls it still lives through.
    calls: Arc<AtomicI64>,
    /// Whether the call that it dies at is done.
    after: bool,
    /// What the first read returns.
    stale: Arc<Mutex<Option<Record>>>,
}

impl Death {
    /// It lives for ever, and first reads this.
    pub(super) fn reads(stale: Record) -> Self {
        Self {
            stale: Arc::new(Mutex::new(Some(stale))),
            ..Self::at(i64::MAX, false)
        }
    }

    pub(super) fn at(call: i64, after: bool) -> Self {
        Self {
            calls: Arc::new(AtomicI64::new(call)),
            after,
            stale: Arc::default(),
        }
    }

    /// Whether it has died.
    pub(super) fn came(&self) -> bool {
        self.calls.load(Ordering::SeqCst) < 0
    }

    /// Whether this call is the one.
    fn comes(&self) -> bool {
        self.calls.fetch_sub(1, Ordering::SeqCst) == 0
    }

    /// Carries out a call, or dies at it.
    async fn call<T>(
        &self,
        call: impl Future<Output = T> + Send,
        died: impl FnOnce(BackendError) -> T + Send,
    ) -> T {
        let comes = self.comes();
        if comes && !self.after {
            return died(Self::error());
        }
        let done = call.await;
        if comes { died(Self::error()) } else { done }
    }

    fn error() -> BackendError {
        BackendError::new(Trouble::Unavailable, "the caller died")
    }

    /// The same backend, for a caller that dies so.
    pub(super) fn of(&self, backend: &Backend) -> Backend {
        let queues =
            QueueName::ALL.map(|name| Arc::new(self.with(backend.queue(name))) as Arc<dyn Queue>);
        let mortal = Backend::new(
            Arc::new(self.with(backend.store())),
            Arc::new(self.with(backend.scheduler())),
            queues,
        );
        match backend.outbox() {
            Some(outbox) => mortal.with_outbox(Arc::new(self.with(outbox))),
            None => mortal,
        }
    }

    fn with<T: ?Sized>(&self, part: &Arc<T>) -> Mortal<T> {
        Mortal {
            part: Arc::clone(part),
            death: self.clone(),
        }
    }
}

#[derive(Debug)]
struct Mortal<T: ?Sized> {
    part: Arc<T>,
    death: Death,
}

impl Store for Mortal<dyn Store> {
    fn begin(&self, new: NewTransaction) -> BoxFuture<'_, Result<Begun, BackendError>> {
        Box::pin(self.death.call(self.part.begin(new), Err))
    }

    fn load(
        &self,
        ids: Vec<TransactionId>,
    ) -> BoxFuture<'_, Vec<Result<Option<Record>, BackendError>>> {
        let stale = self
            .death
            .stale
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        match stale {
            Some(record) => Box::pin(async move { vec![Ok(Some(record))] }),
            None => self.part.load(ids),
        }
    }

    fn request(&self, id: TransactionId) -> BoxFuture<'_, Result<Option<Bytes>, BackendError>> {
        self.part.request(id)
    }

    fn write(
        &self,
        writes: Vec<(TransactionId, Write)>,
    ) -> BoxFuture<'_, Vec<Result<Written, BackendError>>> {
        Box::pin(
            self.death
                .call(self.part.write(writes), |died| vec![Err(died)]),
        )
    }

    fn history(
        &self,
        id: TransactionId,
        skip: usize,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<AuditEvent>, BackendError>> {
        self.part.history(id, skip, limit)
    }

    fn stuck(
        &self,
        now: Utc,
        patience: Patience,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, BackendError>> {
        self.part.stuck(now, patience, limit)
    }

    fn list(
        &self,
        filter: Filter,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, BackendError>> {
        self.part.list(filter, limit)
    }

    fn forget(&self, ended_by: Utc, limit: usize) -> BoxFuture<'_, Result<u64, BackendError>> {
        self.part.forget(ended_by, limit)
    }

    fn census(&self, now: Utc) -> BoxFuture<'_, Result<Census, BackendError>> {
        self.part.census(now)
    }
}

impl Scheduler for Mortal<dyn Scheduler> {
    fn create(
        &self,
        schedules: Vec<(TransactionId, Schedule)>,
    ) -> BoxFuture<'_, Vec<Result<Created, BackendError>>> {
        Box::pin(
            self.death
                .call(self.part.create(schedules), |died| vec![Err(died)]),
        )
    }

    fn delete(
        &self,
        id: TransactionId,
        attempt: u32,
        seq: u32,
    ) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(self.death.call(self.part.delete(id, attempt, seq), Err))
    }
}

impl Outbox for Mortal<dyn Outbox> {
    fn commit(&self, steps: Vec<Step>) -> BoxFuture<'_, Vec<Result<Committed, BackendError>>> {
        Box::pin(
            self.death
                .call(self.part.commit(steps), |died| vec![Err(died)]),
        )
    }

    fn postpone(&self, due: PostponeDue) -> BoxFuture<'_, Result<u64, BackendError>> {
        self.part.postpone(due)
    }
}

impl Queue for Mortal<dyn Queue> {
    fn publish(&self, messages: Vec<Message>) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(self.death.call(self.part.publish(messages), Err))
    }

    fn take(
        &self,
        max: usize,
        lease: Duration,
    ) -> BoxFuture<'_, Result<Vec<Delivery>, BackendError>> {
        self.part.take(max, lease)
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        self.part.ready()
    }

    fn acknowledge(&self, receipts: Vec<Receipt>) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(self.death.call(self.part.acknowledge(receipts), Err))
    }

    fn release(
        &self,
        receipt: Receipt,
        delay: Duration,
        spent: bool,
    ) -> BoxFuture<'_, Result<(), BackendError>> {
        self.part.release(receipt, delay, spent)
    }

    fn bury(&self, receipt: Receipt, why: Label) -> BoxFuture<'_, Result<(), BackendError>> {
        self.part.bury(receipt, why)
    }

    fn extend(
        &self,
        receipts: Vec<Receipt>,
        lease: Duration,
    ) -> BoxFuture<'_, Result<(), BackendError>> {
        self.part.extend(receipts, lease)
    }

    fn depth(&self) -> BoxFuture<'_, Result<Depth, BackendError>> {
        self.part.depth()
    }

    fn dead(
        &self,
        after: Option<u64>,
        max: usize,
    ) -> BoxFuture<'_, Result<Vec<DeadLetter>, BackendError>> {
        self.part.dead(after, max)
    }

    fn requeue(&self, numbers: Vec<u64>) -> BoxFuture<'_, Result<usize, BackendError>> {
        self.part.requeue(numbers)
    }

    fn discard(
        &self,
        numbers: Vec<u64>,
        reason: Label,
    ) -> BoxFuture<'_, Result<usize, BackendError>> {
        self.part.discard(numbers, reason)
    }
}
