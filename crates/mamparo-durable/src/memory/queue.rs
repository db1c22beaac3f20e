use std::time::Duration;

use super::Memory;
use super::world::{Letter, World};
use crate::backend::{
    BackendError, BoxFuture, DeadLetter, Delivery, Depth, Message, Queue, QueueName, Receipt,
};
use crate::machine::{Label, Utc};

/// Without anything to wait for, it looks again after so long.
const LOOK_AGAIN: Duration = Duration::from_secs(3600);

/// One of the queues of a [`Memory`].
#[derive(Debug)]
pub(super) struct MemoryQueue {
    memory: Memory,
    name: QueueName,
}

impl MemoryQueue {
    pub(super) const fn new(memory: Memory, name: QueueName) -> Self {
        Self { memory, name }
    }

    /// When something can be taken next.
    fn next_ready(&self) -> Option<Utc> {
        let mut world = self.memory.world();
        let due = world.next_due().filter(|_| self.name == QueueName::Fires);
        let letters = world.letters(self.name).letters.values();
        letters.map(|letter| letter.ready_at).chain(due).min()
    }
}

impl Queue for MemoryQueue {
    fn publish(&self, messages: Vec<Message>) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async move {
            let now = self.memory.now();
            {
                let mut world = self.memory.world();
                messages
                    .into_iter()
                    .for_each(|message| world.publish(message, now));
            }
            self.memory.changed.notify_waiters();
            Ok(())
        })
    }

    fn take(
        &self,
        max: usize,
        lease: Duration,
    ) -> BoxFuture<'_, Result<Vec<Delivery>, BackendError>> {
        Box::pin(async move {
            let (now, limit) = (self.memory.now(), self.memory.redelivery_limit);
            let mut world = self.memory.world();
            world.fire_due(now);
            bury_spent(&mut world, self.name, now, limit);
            Ok(take(&mut world, self.name, max, now, now.plus(lease)))
        })
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let changed = self.memory.changed.notified();
            tokio::pin!(changed);
            // From here on a change is heard, also one that comes before the first poll.
            changed.as_mut().enable();
            let wait = match self.next_ready() {
                Some(instant) => instant.since(self.memory.now()),
                None => LOOK_AGAIN,
            };
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep(wait) => {}
            }
        })
    }

    fn acknowledge(&self, receipts: Vec<Receipt>) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async move {
            let mut world = self.memory.world();
            for Receipt { message, lease, .. } in receipts {
                world.letters(self.name).settle(message, lease);
            }
            Ok(())
        })
    }

    fn release(
        &self,
        receipt: Receipt,
        delay: Duration,
        spent: bool,
    ) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async move {
            let ready_at = self.memory.now().plus(delay);
            {
                let mut world = self.memory.world();
                if let Some(letter) = held(&mut world, &receipt) {
                    letter.ready_at = ready_at;
                    letter.lease = 0;
                    letter.deliveries -= u32::from(!spent);
                }
            }
            self.memory.changed.notify_waiters();
            Ok(())
        })
    }

    fn bury(&self, receipt: Receipt, why: Label) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async move {
            let now = self.memory.now();
            let mut world = self.memory.world();
            if let Some(letter) = world
                .letters(self.name)
                .settle(receipt.message, receipt.lease)
            {
                bury(&mut world, letter, why, now);
            }
            Ok(())
        })
    }

    fn extend(
        &self,
        receipts: Vec<Receipt>,
        lease: Duration,
    ) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async move {
            let now = self.memory.now();
            let mut world = self.memory.world();
            for receipt in receipts {
                if let Some(letter) =
                    held(&mut world, &receipt).filter(|letter| letter.ready_at > now)
                {
                    letter.ready_at = now.plus(lease);
                }
            }
            Ok(())
        })
    }

    fn depth(&self) -> BoxFuture<'_, Result<Depth, BackendError>> {
        Box::pin(async move {
            let now = self.memory.now();
            let mut world = self.memory.world();
            world.fire_due(now);
            let mut depth = Depth::default();
            if self.name == QueueName::Fires {
                depth.later = world.scheduled() as u64;
            }
            let letters = world.letters(self.name);
            depth.dead = letters.dead.len() as u64;
            for letter in letters.letters.values() {
                let count = match (letter.ready_at <= now, letter.lease) {
                    (true, _) => &mut depth.ready,
                    (false, 0) => &mut depth.later,
                    (false, _) => &mut depth.taken,
                };
                *count += 1;
            }
            Ok(depth)
        })
    }

    fn dead(
        &self,
        after: Option<u64>,
        max: usize,
    ) -> BoxFuture<'_, Result<Vec<DeadLetter>, BackendError>> {
        Box::pin(async move {
            let mut world = self.memory.world();
            let dead = world
                .letters(self.name)
                .dead
                .range(after.map_or(0, |after| after.saturating_add(1))..);
            Ok(dead.take(max).map(|(_, letter)| letter.clone()).collect())
        })
    }

    fn requeue(&self, numbers: Vec<u64>) -> BoxFuture<'_, Result<usize, BackendError>> {
        Box::pin(async move {
            let now = self.memory.now();
            let requeued = {
                let mut world = self.memory.world();
                let dead: Vec<_> = numbers
                    .iter()
                    .filter_map(|number| world.letters(self.name).dead.remove(number))
                    .collect();
                let found = dead.len();
                dead.into_iter()
                    .filter_map(|letter| letter.message)
                    .for_each(|message| world.publish(message, now));
                found
            };
            self.memory.changed.notify_waiters();
            Ok(requeued)
        })
    }

    fn discard(
        &self,
        numbers: Vec<u64>,
        _reason: Label,
    ) -> BoxFuture<'_, Result<usize, BackendError>> {
        Box::pin(async move {
            let mut world = self.memory.world();
            let dead = &mut world.letters(self.name).dead;
            Ok(numbers
                .iter()
                .filter(|number| dead.remove(number).is_some())
                .count())
        })
    }
}

/// The message, if that lease still has it.
fn held<'a>(world: &'a mut World, receipt: &Receipt) -> Option<&'a mut Letter> {
    let letter = world
        .letters(receipt.queue)
        .letters
        .get_mut(&receipt.message)?;
    (letter.lease == receipt.lease).then_some(letter)
}

fn take(world: &mut World, queue: QueueName, max: usize, now: Utc, until: Utc) -> Vec<Delivery> {
    let lease = world.next_number();
    let letters = world.letters(queue).letters.iter_mut();
    let ready = letters
        .filter(|(_, letter)| letter.ready_at <= now)
        .take(max);
    let delivered = ready.map(|(number, letter)| {
        letter.ready_at = until;
        letter.lease = lease;
        letter.deliveries += 1;
        let receipt = Receipt {
            queue,
            message: *number,
            lease,
            handle: None,
        };
        Delivery::new(
            letter.message.clone(),
            letter.deliveries,
            letter.since,
            receipt,
        )
    });
    delivered.collect()
}

fn bury_spent(world: &mut World, queue: QueueName, now: Utc, limit: u32) {
    let letters = &mut world.letters(queue).letters;
    let spent = letters.extract_if(.., |_, letter| {
        letter.ready_at <= now && letter.deliveries >= limit
    });
    for (_, letter) in spent.collect::<Vec<_>>() {
        let why = format!("delivered {} times", letter.deliveries);
        bury(world, letter, why.into(), now);
    }
}

fn bury(world: &mut World, letter: Letter, why: Label, now: Utc) {
    let number = world.next_number();
    let queue = letter.message.queue();
    let dead = DeadLetter::new(number, Some(letter.message), why, now, letter.deliveries);
    world.letters(queue).dead.insert(number, dead);
}
