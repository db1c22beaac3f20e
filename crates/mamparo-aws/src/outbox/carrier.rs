//! Does what follows from a step.

use std::sync::Arc;

use mamparo_durable::backend::{
    BackendError, Created, Message, Queue, QueueName, Request, Scheduler, Trouble,
};
use mamparo_durable::machine::{Effect, Schedule, TransactionId};

use crate::store::DynamoStore;

/// Carries effects to the scheduler and the queues. Clones share everything.
#[derive(Clone, Debug)]
pub(super) struct Carrier {
    pub(super) store: DynamoStore,
    pub(super) scheduler: Arc<dyn Scheduler>,
    pub(super) queues: [Arc<dyn Queue>; 3],
}

impl Carrier {
    /// Carries them out, one after the other; says whether a schedule of one's name is another. Done twice, it is as if done once.
    pub(super) async fn carry(
        &self,
        id: &TransactionId,
        effects: &[Effect],
    ) -> Result<bool, BackendError> {
        let mut conflict = false;
        for effect in effects {
            match *effect {
                Effect::Schedule(schedule) => conflict |= self.schedule(id, schedule).await?,
                Effect::Unschedule { attempt, seq } => {
                    self.scheduler.delete(id.clone(), attempt, seq).await?;
                }
                Effect::Send { attempt, seq } => self.send(id, attempt, seq).await?,
                Effect::Refire { attempt, seq } => {
                    let id = id.clone();
                    self.publish(Message::Fire { id, attempt, seq }).await?;
                }
                // Alerts are told by whoever decides.
                _ => {}
            }
        }
        Ok(conflict)
    }

    async fn schedule(&self, id: &TransactionId, schedule: Schedule) -> Result<bool, BackendError> {
        let created = self.scheduler.create(vec![(id.clone(), schedule)]).await;
        let created = created.into_iter().next().unwrap_or_else(|| {
            let words = "the scheduler answered for fewer than it was asked";
            Err(BackendError::new(Trouble::Corrupt, words))
        });
        Ok(created? == Created::Conflict)
    }

    /// One that is forgotten meanwhile has nothing to send.
    async fn send(&self, id: &TransactionId, attempt: u32, seq: u32) -> Result<(), BackendError> {
        let Some((record, body)) = self.store.sendable(id).await? else {
            return Ok(());
        };
        let request = Request::new(&record.terms, attempt, seq, body);
        self.publish(Message::Request(request)).await
    }

    async fn publish(&self, message: Message) -> Result<(), BackendError> {
        self.queue(message.queue()).publish(vec![message]).await
    }

    pub(super) fn queue(&self, name: QueueName) -> &dyn Queue {
        let [answers, fires, requests] = &self.queues;
        &**match name {
            QueueName::Answers => answers,
            QueueName::Fires => fires,
            QueueName::Requests => requests,
        }
    }
}
