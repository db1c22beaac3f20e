//! Reads of single transactions, gathered.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use mamparo_durable::backend::{BackendError, Trouble};
use mamparo_durable::machine::{Record, TransactionId};
use sqlx::query;
use tokio::sync::{Mutex, mpsc, oneshot};

use super::record::{LOAD, record};
use crate::database::{Database, corrupt, is_lost, stopped, trouble};

/// As many transactions as one statement reads.
const MAX_IDS: usize = 1_000;

type Loaded = Vec<Result<Option<Record>, BackendError>>;

/// Who wants which transactions.
#[derive(Debug)]
pub(crate) struct Wish {
    ids: Vec<TransactionId>,
    reply: oneshot::Sender<Loaded>,
}

/// Takes wishes to the loaders.
#[derive(Clone, Debug)]
pub(crate) struct Loads {
    wishes: mpsc::Sender<Wish>,
    patience: Duration,
}

impl Loads {
    /// Makes a place with room for so many wishes, where one waits at most so long for room.
    pub(crate) fn new(room: usize, patience: Duration) -> (Self, mpsc::Receiver<Wish>) {
        let (wishes, taken) = mpsc::channel(room);
        (Self { wishes, patience }, taken)
    }

    /// Reads transactions, in the order of their ids.
    pub(crate) async fn load(&self, ids: Vec<TransactionId>) -> Loaded {
        let count = ids.len();
        let (reply, loaded) = oneshot::channel();
        if self
            .wishes
            .send_timeout(Wish { ids, reply }, self.patience)
            .await
            .is_err()
        {
            return failed(count, || {
                let message =
                    "too many reads wait for PostgreSQL; ask again later, or let fewer run at once";
                BackendError::new(Trouble::Unavailable, message)
            });
        }
        loaded.await.unwrap_or_else(|_| failed(count, stopped))
    }
}

fn failed(count: usize, error: impl Fn() -> BackendError) -> Loaded {
    (0..count).map(|_| Err(error())).collect()
}

/// One of the few tasks that read for others.
#[derive(Clone, Debug)]
pub(crate) struct Loader {
    pub(crate) database: Database,
    /// Whoever gathers holds it.
    pub(crate) wishes: Arc<Mutex<mpsc::Receiver<Wish>>>,
}

impl Loader {
    /// Reads until nobody wishes anything any more.
    pub(crate) async fn run(self) {
        loop {
            let wishes = self.gather().await;
            if wishes.is_empty() {
                return;
            }
            self.load(wishes).await;
        }
    }

    async fn gather(&self) -> Vec<Wish> {
        let mut taken = self.wishes.lock().await;
        let mut wishes: Vec<Wish> = taken.recv().await.into_iter().collect();
        let mut ids: usize = wishes.iter().map(|wish| wish.ids.len()).sum();
        while ids < MAX_IDS && !wishes.is_empty() {
            let Ok(wish) = taken.try_recv() else { break };
            ids += wish.ids.len();
            wishes.push(wish);
        }
        wishes
    }

    async fn read(&self, ids: Vec<String>) -> Result<There, sqlx::Error> {
        let read = self.database.raw(move |connection| {
            Box::pin(async move {
                let rows = query(LOAD).bind(ids).fetch_all(connection).await?;
                rows.iter().map(record).collect()
            })
        });
        read.await
    }

    async fn load(&self, wishes: Vec<Wish>) {
        let mut ids: Vec<String> = wishes
            .iter()
            .flat_map(|wish| &wish.ids)
            .map(|id| id.as_str().to_owned())
            .collect();
        ids.sort_unstable();
        ids.dedup();
        let there = match self.read(ids.clone()).await {
            // A connection from before a restart: the next is a new one.
            Err(error) if is_lost(&error) => self.read(ids).await,
            there => there,
        };
        let there = there.map_err(trouble);
        for Wish { ids, reply } in wishes {
            let loaded = match &there {
                Ok(there) => ids.iter().map(|id| found(there.get(id.as_str()))).collect(),
                Err(error) => failed(ids.len(), || {
                    BackendError::new(error.trouble(), error.to_string())
                }),
            };
            // Whoever does not wait any more asks again.
            drop(reply.send(loaded));
        }
    }
}

type There = HashMap<String, Result<Record, BackendError>>;

fn found(there: Option<&Result<Record, BackendError>>) -> Result<Option<Record>, BackendError> {
    match there {
        None => Ok(None),
        Some(Ok(record)) => Ok(Some(record.clone())),
        Some(Err(error)) => Err(corrupt(error.to_string())),
    }
}
