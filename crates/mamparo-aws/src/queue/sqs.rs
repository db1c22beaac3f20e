//! One of the three queues.

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_sqs::types::QueueAttributeName as Attribute;
use mamparo_core::clock;
use mamparo_durable::backend::{
    BackendError, BoxFuture, DeadLetter, Delivery, Depth, Message, Queue, QueueName, Receipt,
};
use mamparo_durable::machine::Label;

use super::entries::{self, Delete, Hide, Outgoing};
use super::held::Held;
use super::letters::Letters;
use super::take::{self, Kept};
use super::{Place, body};
use crate::Aws;
use crate::connection::{Service, trouble};
use crate::gather::Gather;
use crate::scheduler::{self, Recalled};

/// A queue on SQS. Clones are the same queue, and know the same messages in hand.
#[derive(Clone, Debug)]
pub(crate) struct SqsQueue(Arc<Core>);

#[derive(Debug)]
pub(super) struct Core {
    pub(super) name: QueueName,
    pub(super) place: Arc<Place>,
    pub(super) held: Held,
    pub(super) kept: Kept,
    pub(super) recalled: Recalled,
    letters: Letters,
    outgoing: Gather<Outgoing>,
    deletes: Gather<Delete>,
    hides: Gather<Hide>,
}

impl SqsQueue {
    pub(crate) fn new(aws: &Aws, name: QueueName) -> Self {
        let place = Arc::new(Place::new(aws.clone(), aws.names().queue(name)));
        Self(Arc::new(Core {
            name,
            held: Held::default(),
            kept: Kept::default(),
            recalled: Recalled::default(),
            letters: Letters::new(aws, name),
            outgoing: entries::gather(&place),
            deletes: entries::gather(&place),
            hides: entries::gather(&place),
            place,
        }))
    }

    /// Where it is.
    pub(crate) fn place(&self) -> &Place {
        &self.0.place
    }

    /// The schedules whose fires are not to be delivered.
    pub(crate) fn recalled(&self) -> &Recalled {
        &self.0.recalled
    }

    /// Sends messages.
    pub(crate) async fn send(&self, messages: Vec<Outgoing>) -> Result<(), BackendError> {
        self.0.send(messages).await
    }
}

impl Core {
    async fn send(&self, messages: Vec<Outgoing>) -> Result<(), BackendError> {
        let sized = messages.into_iter().map(|message| {
            let bytes = message.bytes();
            (message, bytes)
        });
        self.outgoing.all(sized.collect()).await
    }

    pub(super) async fn acknowledge(&self, receipts: Vec<Receipt>) -> Result<(), BackendError> {
        let mine = receipts.iter().filter_map(|it| self.held.handled(it));
        let deletes = mine
            .map(|taken| (Delete(taken.handle.clone()), 0))
            .collect();
        self.deletes.all(deletes).await?;
        for receipt in &receipts {
            self.held.remove(receipt);
        }
        Ok(())
    }

    async fn hide(&self, receipts: &[Receipt], wait: Duration) -> Result<(), BackendError> {
        let mine = receipts.iter().filter_map(|it| self.held.get(it));
        let hides = mine.map(|taken| (Hide(taken.handle.clone(), wait), 0));
        self.hides.all(hides.collect()).await
    }

    pub(super) async fn extend(
        &self,
        receipts: Vec<Receipt>,
        lease: Duration,
    ) -> Result<(), BackendError> {
        let until = clock::later(clock::now(), entries::whole(lease));
        self.hide(&receipts, lease).await?;
        for receipt in &receipts {
            self.held.extend(receipt, until);
        }
        Ok(())
    }

    async fn release(
        &self,
        receipt: Receipt,
        delay: Duration,
        spent: bool,
    ) -> Result<(), BackendError> {
        if !spent {
            return self.copy(&receipt, delay).await;
        }
        let receipts = [receipt];
        self.hide(&receipts, delay).await?;
        let [receipt] = receipts;
        self.held.release(&receipt, delay);
        Ok(())
    }

    /// Puts a copy into the queue for which this delivery does not count, and removes what is in hand.
    pub(super) async fn copy(
        &self,
        receipt: &Receipt,
        delay: Duration,
    ) -> Result<(), BackendError> {
        let Some(taken) = self.held.get(receipt) else {
            return Ok(());
        };
        self.send(vec![Outgoing::again(&taken, delay)]).await?;
        self.acknowledge(vec![receipt.clone()]).await
    }

    /// Puts what is in hand among the dead letters.
    pub(super) async fn file(
        &self,
        receipt: &Receipt,
        why: Label,
        deliveries: u32,
    ) -> Result<(), BackendError> {
        let Some(taken) = self.held.get(receipt) else {
            return Ok(());
        };
        self.letters.file(&taken.body, &why, deliveries).await?;
        self.acknowledge(vec![receipt.clone()]).await
    }

    async fn bury(&self, receipt: Receipt, why: Label) -> Result<(), BackendError> {
        let number = self.held.get(&receipt).map_or(0, |taken| taken.number);
        self.file(&receipt, why, number).await
    }

    async fn depth(&self) -> Result<Depth, BackendError> {
        let aws = self.place.aws();
        let asked = aws
            .sqs()
            .get_queue_attributes()
            .queue_url(&self.place.address().await?.url)
            .attribute_names(Attribute::ApproximateNumberOfMessages)
            .attribute_names(Attribute::ApproximateNumberOfMessagesDelayed)
            .attribute_names(Attribute::ApproximateNumberOfMessagesNotVisible)
            .send()
            .await
            .map_err(|error| trouble(Service::Sqs, &self.place.about(), error))?;
        let counts = asked.attributes.unwrap_or_default();
        let count = |name| {
            counts
                .get(&name)
                .and_then(|count| count.parse().ok())
                .unwrap_or(0)
        };
        let hidden: u64 = count(Attribute::ApproximateNumberOfMessagesNotVisible);
        // SQS does not tell apart what is in hand and what was given back with a delay; of the latter only our own is known.
        let given_back = self.held.later().min(hidden);
        let delayed: u64 = count(Attribute::ApproximateNumberOfMessagesDelayed);
        let mut later = delayed.saturating_sub(self.recalled.waiting(aws.now())) + given_back;
        if self.name == QueueName::Fires {
            later += scheduler::count(aws).await?;
        }
        Ok(Depth {
            ready: count(Attribute::ApproximateNumberOfMessages),
            later,
            taken: hidden - given_back,
            dead: self.letters.count().await?,
        })
    }

    async fn requeue(&self, numbers: Vec<u64>) -> Result<usize, BackendError> {
        let mut found = 0;
        for number in numbers {
            let Some(body) = self.letters.body(number).await? else {
                continue;
            };
            // First into the queue: whoever dies in between leaves it in both, and never in neither.
            let message = Outgoing {
                body,
                ..Outgoing::default()
            };
            self.send(vec![message]).await?;
            found += usize::from(self.letters.remove(number).await?);
        }
        Ok(found)
    }
}

impl Queue for SqsQueue {
    fn publish(&self, messages: Vec<Message>) -> BoxFuture<'_, Result<(), BackendError>> {
        let outgoing = messages.iter().map(|message| Outgoing {
            body: body::write(message),
            ..Outgoing::default()
        });
        Box::pin(self.0.send(outgoing.collect()))
    }

    fn take(
        &self,
        max: usize,
        lease: Duration,
    ) -> BoxFuture<'_, Result<Vec<Delivery>, BackendError>> {
        self.0.kept.note_lease(lease);
        Box::pin(take::now(&self.0, max, lease))
    }

    /// What a long poll finds when nobody waits any more is delivered by the next take, or else again once its lease is over.
    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(take::until_found(&self.0))
    }

    fn acknowledge(&self, receipts: Vec<Receipt>) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(self.0.acknowledge(receipts))
    }

    /// An unspent delivery waits for 15 minutes at most, which is as long as SQS delays.
    fn release(
        &self,
        receipt: Receipt,
        delay: Duration,
        spent: bool,
    ) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(self.0.release(receipt, delay, spent))
    }

    fn bury(&self, receipt: Receipt, why: Label) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(self.0.bury(receipt, why))
    }

    fn extend(
        &self,
        receipts: Vec<Receipt>,
        lease: Duration,
    ) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(self.0.extend(receipts, lease))
    }

    /// What others have given back with a delay counts as taken; of schedules no more than a thousand are counted.
    fn depth(&self) -> BoxFuture<'_, Result<Depth, BackendError>> {
        Box::pin(self.0.depth())
    }

    fn dead(
        &self,
        after: Option<u64>,
        max: usize,
    ) -> BoxFuture<'_, Result<Vec<DeadLetter>, BackendError>> {
        Box::pin(self.0.letters.list(after, max))
    }

    fn requeue(&self, numbers: Vec<u64>) -> BoxFuture<'_, Result<usize, BackendError>> {
        Box::pin(self.0.requeue(numbers))
    }

    fn discard(
        &self,
        numbers: Vec<u64>,
        reason: Label,
    ) -> BoxFuture<'_, Result<usize, BackendError>> {
        Box::pin(self.0.letters.discard(numbers, reason))
    }
}
