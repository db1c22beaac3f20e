//! The threads that read.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use mamparo::idempotency::{StoreError, StoreErrorKind};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

/// The most that is read from one snapshot.
const MAX_BATCH: usize = 64;

/// Where reads are sent to; clones share the threads, which end with the last of them.
#[derive(Clone)]
pub(crate) struct Readers {
    queues: Arc<[mpsc::Sender<Job>]>,
    next: Arc<AtomicUsize>,
}

type Job = Box<dyn FnOnce(&Connection) + Send>;

impl Readers {
    pub(super) fn start(connections: Vec<Connection>, queue: usize) -> Result<Self, StoreError> {
        let queues = connections.into_iter().map(|connection| {
            let (sender, receiver) = mpsc::channel(queue);
            let thread = thread::Builder::new().name("mamparo-reader".to_owned());
            let started = thread.spawn(move || serve(&connection, receiver));
            started.map_err(|error| StoreError::new(StoreErrorKind::Other, error))?;
            Ok(sender)
        });
        Ok(Self {
            queues: queues.collect::<Result<_, StoreError>>()?,
            next: Arc::default(),
        })
    }

    /// Reads what was committed when this was called, or later.
    pub(crate) async fn read<T, E>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |connection| {
            // Whoever asked may be gone.
            let _gone = reply.send(work(connection));
        });
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let queue = &self.queues[turn % self.queues.len()];
        if queue.send(job).await.is_err() {
            return Err(gone().into());
        }
        answer.await.unwrap_or_else(|_| Err(gone().into()))
    }
}

fn gone() -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, "the read broke")
}

/// All that wait are read from one snapshot, which is taken after the last of them has come: half of a small read's cost is
/// that of its lock.
fn serve(connection: &Connection, mut queue: mpsc::Receiver<Job>) {
    let mut batch: Vec<Job> = Vec::with_capacity(MAX_BATCH);
    while queue.blocking_recv_many(&mut batch, MAX_BATCH) > 0 {
        let begun = batch.len() > 1 && connection.execute_batch("BEGIN").is_ok();
        for job in batch.drain(..) {
            // One that panics answers nobody, and the others are read.
            let _panicked = catch_unwind(AssertUnwindSafe(|| job(connection)));
        }
        if begun {
            // Nothing was changed: to fail here loses nothing.
            let _ended = connection.execute_batch("COMMIT");
        }
    }
}
