//! What one caller wants written, and what came of it.

use std::time::Duration;

use mamparo_durable::backend::{BackendError, Committed, Created, Message, Receipt, Step, Trouble};
use mamparo_durable::machine::{Label, Schedule, TransactionId, Utc};
use tokio::sync::{mpsc, oneshot};

use crate::database::stopped;

/// Something to be written wholly or not at all.
#[derive(Debug)]
pub(crate) enum Wanted {
    /// A step; beginning a transaction and writing one transition are steps of one part.
    Step(Box<Step>),
    Publish(Message),
    Create(TransactionId, Schedule),
    Delete {
        id: TransactionId,
        attempt: u32,
        seq: u32,
    },
    Acknowledge(Receipt),
    Release {
        receipt: Receipt,
        ready_at: Utc,
        spent: bool,
    },
    Bury {
        receipt: Receipt,
        why: Label,
        spent: bool,
    },
    Extend {
        receipt: Receipt,
        until: Utc,
    },
}

impl Wanted {
    /// The transaction that it is about: two of the same one are not in one batch, where the second would not see what the first
    /// wrote.
    pub(super) const fn key(&self) -> Option<&TransactionId> {
        match self {
            Self::Step(step) => Some(&step.id),
            Self::Create(id, _) | Self::Delete { id, .. } => Some(id),
            Self::Publish(_)
            | Self::Acknowledge(_)
            | Self::Release { .. }
            | Self::Bury { .. }
            | Self::Extend { .. } => None,
        }
    }

    /// About as many bytes as it sends, beyond what every one does.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Step(step) => step.begin.as_ref().map_or(0, |new| new.request.len()),
            _ => 0,
        }
    }
}

/// What came of it.
#[derive(Debug)]
pub(crate) enum Done {
    Committed(Committed),
    Created(Created),
    Written,
}

/// What is wanted, and who waits for it.
#[derive(Debug)]
pub(crate) struct Job {
    pub(super) wanted: Wanted,
    pub(super) reply: oneshot::Sender<Result<Done, BackendError>>,
}

/// Takes what is wanted to the writers, and brings back what came of it.
#[derive(Clone, Debug)]
pub(crate) struct Desk {
    jobs: mpsc::Sender<Job>,
    patience: Duration,
}

impl Desk {
    /// Makes a desk with room for so many jobs, where one waits at most so long for room.
    pub(crate) fn new(room: usize, patience: Duration) -> (Self, mpsc::Receiver<Job>) {
        let (jobs, taken) = mpsc::channel(room);
        (Self { jobs, patience }, taken)
    }

    /// Has one thing written.
    pub(crate) async fn write(&self, wanted: Wanted) -> Result<Done, BackendError> {
        match self.hand_in(wanted).await {
            Ok(reply) => reply.await.unwrap_or_else(|_| Err(stopped())),
            Err(error) => Err(error),
        }
    }

    /// Has many things written, each by itself; they share commits.
    pub(crate) async fn write_all(
        &self,
        wanted: impl Iterator<Item = Wanted> + Send,
    ) -> Vec<Result<Done, BackendError>> {
        let mut replies = Vec::new();
        for wanted in wanted {
            replies.push(self.hand_in(wanted).await);
        }
        let mut done = Vec::with_capacity(replies.len());
        for reply in replies {
            done.push(match reply {
                Ok(reply) => reply.await.unwrap_or_else(|_| Err(stopped())),
                Err(error) => Err(error),
            });
        }
        done
    }

    async fn hand_in(
        &self,
        wanted: Wanted,
    ) -> Result<oneshot::Receiver<Result<Done, BackendError>>, BackendError> {
        let (reply, done) = oneshot::channel();
        let job = Job { wanted, reply };
        match self.jobs.try_send(job) {
            Ok(()) => return Ok(done),
            Err(mpsc::error::TrySendError::Closed(_)) => return Err(stopped()),
            Err(mpsc::error::TrySendError::Full(job)) => {
                self.jobs
                    .send_timeout(job, self.patience)
                    .await
                    .map_err(|_| full())?;
            }
        }
        Ok(done)
    }
}

fn full() -> BackendError {
    let message = "too many writes wait for PostgreSQL; ask again later, or let fewer run at once";
    BackendError::new(Trouble::Unavailable, message)
}
