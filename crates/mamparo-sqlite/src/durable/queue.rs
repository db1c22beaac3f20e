//! The queues.

use std::time::Duration;

use mamparo_durable::backend::{
    BackendError, BoxFuture, DeadLetter, Delivery, Depth, Message, Queue, QueueName, Receipt,
};
use mamparo_durable::machine::Label;

use super::SqliteDurable;
use super::letters::{self, Terms};
use super::message::{self, Kept};

/// As many messages as are taken together.
const MAX_TAKE: usize = 1_024;

/// As many dead letters as are read together.
const MAX_DEAD: usize = 10_000;

/// One of the queues of a [`SqliteDurable`].
#[derive(Debug)]
pub(super) struct SqliteQueue {
    file: SqliteDurable,
    name: QueueName,
}

impl SqliteQueue {
    pub(super) const fn new(file: SqliteDurable, name: QueueName) -> Self {
        Self { file, name }
    }
}

impl Queue for SqliteQueue {
    fn publish(&self, messages: Vec<Message>) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async move {
            let publish = self.file.write(move |file, this| {
                let now = this.now();
                messages.iter().try_for_each(|message| {
                    message::publish(file, &Kept::from(message), now, this.wakes())
                })
            });
            publish.await.map_err(|failed| failed.0)
        })
    }

    fn take(
        &self,
        max: usize,
        lease: Duration,
    ) -> BoxFuture<'_, Result<Vec<Delivery>, BackendError>> {
        let queue = self.name;
        Box::pin(async move {
            let take = self.file.write(move |file, this| {
                let terms = Terms {
                    queue,
                    max: max.min(MAX_TAKE),
                    lease,
                    now: this.now(),
                    limit: this.redelivery_limit(),
                };
                letters::take(file, terms, this.wakes())
            });
            let taken = take.await.map_err(|failed| failed.0)?;
            self.file.wakes().of(queue).heard(taken.told, taken.next);
            Ok(taken.deliveries)
        })
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.file.ready(self.name))
    }

    fn acknowledge(&self, receipts: Vec<Receipt>) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async move {
            let acknowledge = self.file.write(move |file, _| {
                receipts
                    .iter()
                    .try_for_each(|receipt| message::settle(file, receipt))
            });
            acknowledge.await.map_err(|failed| failed.0)
        })
    }

    fn release(
        &self,
        receipt: Receipt,
        delay: Duration,
        spent: bool,
    ) -> BoxFuture<'_, Result<(), BackendError>> {
        let queue = self.name;
        Box::pin(async move {
            let release = self.file.write(move |file, this| {
                let ready_at = this.now().plus(delay);
                if letters::release(file, &receipt, ready_at, spent)? {
                    this.wakes().of(queue).tell(ready_at);
                }
                Ok(())
            });
            release.await.map_err(|failed| failed.0)
        })
    }

    fn bury(&self, receipt: Receipt, why: Label) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async move {
            let bury = self
                .file
                .write(move |file, this| letters::bury_held(file, &receipt, &why, this.now()));
            bury.await.map_err(|failed| failed.0)
        })
    }

    fn extend(
        &self,
        receipts: Vec<Receipt>,
        lease: Duration,
    ) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async move {
            let extend = self.file.write(move |file, this| {
                let now = this.now();
                let until = now.plus(lease);
                receipts
                    .iter()
                    .try_for_each(|receipt| letters::extend(file, receipt, until, now))
            });
            extend.await.map_err(|failed| failed.0)
        })
    }

    fn depth(&self) -> BoxFuture<'_, Result<Depth, BackendError>> {
        let (queue, now) = (self.name, self.file.now());
        Box::pin(async move {
            let depth = self.file.read(move |file| letters::depth(file, queue, now));
            depth.await.map_err(|failed| failed.0)
        })
    }

    fn dead(
        &self,
        after: Option<u64>,
        max: usize,
    ) -> BoxFuture<'_, Result<Vec<DeadLetter>, BackendError>> {
        let queue = self.name;
        Box::pin(async move {
            let dead = self
                .file
                .read(move |file| letters::dead(file, queue, after, max.min(MAX_DEAD)));
            dead.await.map_err(|failed| failed.0)
        })
    }

    fn requeue(&self, numbers: Vec<u64>) -> BoxFuture<'_, Result<usize, BackendError>> {
        let queue = self.name;
        Box::pin(async move {
            let requeue = self.file.write(move |file, this| {
                let now = this.now();
                let mut found = 0;
                for number in numbers {
                    found += usize::from(letters::requeue(file, queue, number, now)?);
                }
                this.wakes().of(queue).tell(now);
                Ok(found)
            });
            requeue.await.map_err(|failed| failed.0)
        })
    }

    fn discard(
        &self,
        numbers: Vec<u64>,
        reason: Label,
    ) -> BoxFuture<'_, Result<usize, BackendError>> {
        let queue = self.name;
        Box::pin(async move {
            let discard = self.file.write(move |file, this| {
                let now = this.now();
                let mut found = 0;
                for number in numbers {
                    found += usize::from(letters::discard(file, queue, number, &reason, now)?);
                }
                Ok(found)
            });
            discard.await.map_err(|failed| failed.0)
        })
    }
}
