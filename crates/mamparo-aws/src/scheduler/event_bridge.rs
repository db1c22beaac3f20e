//! The scheduler.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use mamparo_durable::backend::{BackendError, BoxFuture, Created, Scheduler, Trouble};
use mamparo_durable::machine::{Schedule, TransactionId, schedule_name};
use tokio::sync::{OnceCell, Semaphore};

use super::create::{self, Asked, Destination, Known};
use super::expression;
use crate::Aws;
use crate::queue::{self, Outgoing, Place, SqsQueue};

/// As often is a schedule asked for that is just being made or deleted, and the pause before the second time; it doubles.
const TRIES: u32 = 6;
const PAUSE: Duration = Duration::from_millis(50);

/// Schedules in EventBridge Scheduler.
#[derive(Clone, Debug)]
pub(crate) struct EventBridge(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    aws: Aws,
    fires: SqsQueue,
    undelivered: Place,
    destination: OnceCell<Destination>,
    /// Whoever is refused for asking too much waits in here, and with it all that would ask for more.
    turns: Semaphore,
    /// Straight to the queue goes what is due within this; of `None`, nothing.
    near: Option<Duration>,
}

impl EventBridge {
    /// Makes one that fires into this queue.
    pub(crate) fn new(aws: &Aws, fires: &SqsQueue) -> Self {
        Self::nearer(aws, fires, Some(aws.settings().schedule_from))
    }

    /// Makes one that leaves more, or less, to the service.
    pub(crate) fn nearer(aws: &Aws, fires: &SqsQueue, near: Option<Duration>) -> Self {
        Self(Arc::new(Inner {
            fires: fires.clone(),
            undelivered: Place::new(aws.clone(), aws.names().undelivered()),
            destination: OnceCell::new(),
            turns: Semaphore::new(aws.settings().in_flight),
            near,
            aws: aws.clone(),
        }))
    }
}

impl Inner {
    async fn create(
        &self,
        id: &TransactionId,
        schedule: Schedule,
    ) -> Result<Created, BackendError> {
        // It is never closed.
        let _turn = self.turns.acquire().await;
        let known = Known {
            name: schedule.name(id),
            expression: expression::at(schedule.fire_at),
            input: queue::fire(id, &schedule),
        };
        self.fires.recalled().forget(&known.name);
        let soon = |near| schedule.fire_at <= self.aws.now().plus(near);
        if self.near.is_some_and(soon) {
            return self.soon(known, schedule).await;
        }
        let to = self.destination().await?;
        let mut pause = PAUSE;
        for _ in 0..TRIES {
            match create::make(&self.aws, &known, to).await? {
                Asked::Made => return Ok(Created::New),
                Asked::Past => return self.soon(known, schedule).await,
                Asked::Taken => {}
            }
            if let Some(found) = create::read(&self.aws, &known.name).await? {
                return Ok(compare(&found, &known));
            }
            tokio::time::sleep(pause.mul_f64(0.5 + fastrand::f64())).await;
            pause *= 2;
        }
        let message = format!(
            "EventBridge Scheduler neither has nor makes schedule {}",
            known.name
        );
        Err(BackendError::new(Trouble::Unavailable, message))
    }

    /// Puts a fire into the queue, with its delay, unless a schedule of its name is there.
    async fn soon(&self, known: Known, schedule: Schedule) -> Result<Created, BackendError> {
        if let Some(found) = create::read(&self.aws, &known.name).await? {
            return Ok(compare(&found, &known));
        }
        let message = Outgoing {
            body: known.input,
            delay: schedule.fire_at.since(self.aws.now()),
            ..Outgoing::default()
        };
        self.fires.send(vec![message]).await?;
        self.fires.recalled().sent(known.name, schedule.fire_at);
        Ok(Created::New)
    }

    async fn destination(&self) -> Result<&Destination, BackendError> {
        let find = async || {
            let queue = self.fires.place().address().await?.arn.clone();
            let undelivered = self.undelivered.address().await?.arn.clone();
            let role = match &self.aws.settings().scheduler_role {
                Some(role) => role.clone(),
                None => role(&queue, &self.aws.names().scheduler_role()),
            };
            Ok(Destination {
                queue,
                role,
                undelivered,
            })
        };
        self.destination.get_or_try_init(find).await
    }

    async fn delete(&self, name: String) -> Result<(), BackendError> {
        let _turn = self.turns.acquire().await;
        if !create::delete(&self.aws, &name).await? {
            self.fires.recalled().add(name);
        }
        Ok(())
    }
}

fn compare(found: &Known, asked: &Known) -> Created {
    if found == asked {
        Created::Same
    } else {
        Created::Conflict
    }
}

/// The ARN of a role in the partition and account of a queue.
fn role(queue: &str, name: &str) -> String {
    let mut parts = queue.split(':').skip(1);
    let partition = parts.next().unwrap_or("aws");
    let account = parts.nth(2).unwrap_or_default();
    format!("arn:{partition}:iam::{account}:role/{name}")
}

impl Scheduler for EventBridge {
    fn create(
        &self,
        schedules: Vec<(TransactionId, Schedule)>,
    ) -> BoxFuture<'_, Vec<Result<Created, BackendError>>> {
        Box::pin(async move {
            let all = schedules
                .iter()
                .map(|(id, schedule)| self.0.create(id, *schedule));
            join_all(all).await
        })
    }

    fn delete(
        &self,
        id: TransactionId,
        attempt: u32,
        seq: u32,
    ) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(self.0.delete(schedule_name(&id, attempt, seq)))
    }
}

#[cfg(test)]
mod tests {
    use super::role;

    #[test]
    fn the_role_is_of_the_account_and_partition_of_the_queue() {
        let arn = "arn:aws-cn:sqs:cn-north-1:123456789012:mamparo-fires";
        assert_eq!(
            role(arn, "mamparo-scheduler"),
            "arn:aws-cn:iam::123456789012:role/mamparo-scheduler"
        );
    }
}
