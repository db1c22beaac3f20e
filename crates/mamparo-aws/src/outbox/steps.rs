//! The outbox's trait: whole steps, and moving what is due together.

use std::sync::Arc;
use std::time::Duration;

use mamparo_durable::backend::{
    BackendError, BoxFuture, Committed, Outbox, PostponeDue, Queue, Receipt, Scheduler, Step,
    Written,
};
use mamparo_durable::handler::Listener;
use mamparo_durable::supervise::{Supervised, Supervisor};

use super::carrier::Carrier;
use super::notes::{Note, Notes};
use super::relay::{EVERY, Relay};
use crate::store::{DynamoStore, in_turn};

/// Steps in DynamoDB, and the relay, which ends with it.
#[derive(Debug)]
pub(crate) struct DynamoOutbox {
    pub(super) store: DynamoStore,
    pub(super) carrier: Carrier,
    notes: Notes,
    _relay: Supervised,
}

impl DynamoOutbox {
    /// Starts the relay, on this runtime. The queues are answers, fires and requests.
    pub(crate) fn start(
        store: DynamoStore,
        scheduler: Arc<dyn Scheduler>,
        queues: [Arc<dyn Queue>; 3],
        listener: Arc<dyn Listener>,
    ) -> Self {
        Self::looking(store, scheduler, queues, listener, EVERY)
    }

    /// Its relay looks so often.
    pub(super) fn looking(
        store: DynamoStore,
        scheduler: Arc<dyn Scheduler>,
        queues: [Arc<dyn Queue>; 3],
        listener: Arc<dyn Listener>,
        every: Duration,
    ) -> Self {
        let carrier = Carrier {
            store: store.clone(),
            scheduler,
            queues,
        };
        let notes = Notes::new(store.clone());
        let relay = Relay {
            carrier: carrier.clone(),
            notes: notes.clone(),
            every,
        };
        let relay = Supervisor::new().listener(listener).worker(relay).run();
        Self {
            store,
            carrier,
            notes,
            _relay: relay,
        }
    }

    pub(super) async fn step(&self, step: Step) -> Result<Committed, BackendError> {
        if step.begin.is_none() && step.writes.is_empty() {
            return self.effects(step).await;
        }
        let noted = (!step.effects.is_empty())
            .then(|| Note::new(&step.id, step.effects.clone(), self.store.now()));
        let put = noted
            .as_ref()
            .map(|note| self.notes.put(note))
            .transpose()?;
        if let Written::Missed(stored) = self.store.commit(&step, put).await? {
            return Ok(Committed::Missed(stored));
        }
        let (conflict, ()) = tokio::join!(self.carry(noted), self.settle(step.settle));
        Ok(Committed::Applied { conflict })
    }

    /// Carries out what is committed. What fails is left to the relay.
    async fn carry(&self, noted: Option<Note>) -> bool {
        let Some(note) = noted else {
            return false;
        };
        let Ok(conflict) = self.carrier.carry(&note.id, &note.effects).await else {
            return false;
        };
        // A note that stays is carried out again.
        drop(self.notes.delete(&note).await);
        conflict
    }

    /// What is not acknowledged is delivered again, and finds what is committed.
    async fn settle(&self, receipt: Option<Receipt>) {
        if let Some(receipt) = receipt {
            let queue = self.carrier.queue(receipt.queue);
            drop(queue.acknowledge(vec![receipt]).await);
        }
    }

    /// Without a write there is nothing to be at once with: the message is acknowledged when all is done.
    async fn effects(&self, step: Step) -> Result<Committed, BackendError> {
        let mut conflict = false;
        if !step.effects.is_empty() {
            if self.store.stored(&step.id).await?.is_none() {
                return Ok(Committed::Missed(None));
            }
            conflict = self.carrier.carry(&step.id, &step.effects).await?;
        }
        self.settle(step.settle).await;
        Ok(Committed::Applied { conflict })
    }
}

impl Outbox for DynamoOutbox {
    fn commit(&self, steps: Vec<Step>) -> BoxFuture<'_, Vec<Result<Committed, BackendError>>> {
        Box::pin(async move {
            let steps = steps.into_iter().map(|step| (step.id.clone(), step));
            in_turn(steps, self.store.in_flight(), |_, step| self.step(step)).await
        })
    }

    fn postpone(&self, due: PostponeDue) -> BoxFuture<'_, Result<u64, BackendError>> {
        Box::pin(self.postpone_all(due))
    }
}
