//! The one thread that writes.
//!
//! It takes what waits, runs all of it in one transaction, and commits: one synced write serves all of them, and each hears
//! of its own after that.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use mamparo::idempotency::{StoreError, StoreErrorKind};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::checkpoint::Rest;
use super::error::{kind, store_error};

/// The most that is committed together: it bounds what all wait for, and what is lost when the disk is full.
const MAX_BATCH: usize = 256;

/// Where writes are sent to; clones share the thread, which ends with the last of them.
#[derive(Clone)]
pub(crate) struct Writer {
    queue: mpsc::Sender<Box<dyn Job>>,
}

/// One write: it is run, and hears what became of it.
trait Job: Send {
    /// Runs it. What fails, or panics, changes nothing of the others.
    fn run(&mut self, connection: &mut Connection);

    /// Tells who waits that it was committed, or why not.
    fn end(self: Box<Self>, committed: Result<(), Failure>);
}

/// Why a commit failed: one reason for all who shared it.
type Failure = (StoreErrorKind, Arc<str>);

impl Writer {
    pub(super) fn start(
        connection: Connection,
        queue: usize,
        rest: Rest,
    ) -> Result<Self, StoreError> {
        let (sender, receiver) = mpsc::channel(queue);
        let thread = thread::Builder::new().name("mamparo-writer".to_owned());
        let started = thread.spawn(move || serve(connection, receiver, &rest));
        started.map_err(|error| StoreError::new(StoreErrorKind::Other, error))?;
        Ok(Self { queue: sender })
    }

    /// Runs a write, and waits until it is on the disk.
    ///
    /// It changes something in its last statement only, or may be done in part. When this future is dropped, it may be done all the same.
    pub(crate) async fn write<T, E>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        self.ask(|connection: &mut Connection| work(connection))
            .await
    }

    /// As [`write`](Self::write), for any number of statements: either all are done or none is.
    pub(crate) async fn transaction<T, E>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        self.ask(|connection: &mut Connection| in_savepoint(connection, work))
            .await
    }

    async fn ask<T, E>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let job = Box::new(Write {
            work: Some(work),
            result: None,
            reply,
        });
        if self.queue.send(job).await.is_err() {
            return Err(gone().into());
        }
        answer.await.unwrap_or_else(|_| Err(gone().into()))
    }

    /// Asks for a write, and does not wait for it; false where it can't be asked for now, or ever again.
    pub(crate) fn try_write(
        &self,
        work: impl FnOnce(&Connection) -> Result<(), StoreError> + Send + 'static,
    ) -> bool {
        let (reply, _) = oneshot::channel();
        let job = Box::new(Write {
            work: Some(|connection: &mut Connection| work(connection)),
            result: None,
            reply,
        });
        self.queue.try_send(job).is_ok()
    }
}

fn gone() -> StoreError {
    let reason = "the thread that writes has ended: an earlier write broke it";
    StoreError::new(StoreErrorKind::Unavailable, reason)
}

struct Write<F, T, E> {
    work: Option<F>,
    result: Option<Result<T, E>>,
    reply: oneshot::Sender<Result<T, E>>,
}

impl<F, T, E> Job for Write<F, T, E>
where
    F: FnOnce(&mut Connection) -> Result<T, E> + Send,
    T: Send,
    E: From<StoreError> + Send,
{
    fn run(&mut self, connection: &mut Connection) {
        let Some(work) = self.work.take() else { return };
        let ran = catch_unwind(AssertUnwindSafe(|| work(connection)));
        self.result = Some(ran.unwrap_or_else(|_| {
            let panicked = StoreError::new(StoreErrorKind::Other, "the work panicked");
            Err(panicked.into())
        }));
    }

    fn end(self: Box<Self>, committed: Result<(), Failure>) {
        let result = match (self.result, committed) {
            (Some(Ok(_)) | None, Err((kind, why))) => Err(StoreError::new(kind, &*why).into()),
            (Some(result), _) => result,
            (None, Ok(())) => return,
        };
        // Whoever asked may be gone.
        let _gone = self.reply.send(result);
    }
}

fn in_savepoint<T, E: From<StoreError>>(
    connection: &mut Connection,
    work: impl FnOnce(&Connection) -> Result<T, E>,
) -> Result<T, E> {
    // Rolled back when it is dropped.
    let savepoint = connection.savepoint().map_err(store_error)?;
    let result = work(&savepoint)?;
    savepoint.commit().map_err(store_error)?;
    Ok(result)
}

fn serve(mut connection: Connection, mut queue: mpsc::Receiver<Box<dyn Job>>, rest: &Rest) {
    let mut batch = Vec::with_capacity(MAX_BATCH);
    while queue.blocking_recv_many(&mut batch, MAX_BATCH) > 0 {
        let mut left = batch.drain(..).peekable();
        // More than once only where SQLite itself has rolled the transaction back in the middle.
        while left.peek().is_some() {
            commit_some(&mut connection, &mut left);
        }
        rest.settle(&connection);
    }
}

/// Runs jobs in one transaction, commits it, and tells them.
fn commit_some(connection: &mut Connection, jobs: &mut impl Iterator<Item = Box<dyn Job>>) {
    let mut ran = Vec::with_capacity(MAX_BATCH);
    let mut committed = connection.execute_batch("BEGIN IMMEDIATE");
    if committed.is_ok() {
        for mut job in jobs {
            job.run(connection);
            ran.push(job);
            // On a full disk, say, SQLite gives up the whole transaction (https://sqlite.org/lang_transaction.html), or a job does.
            if connection.is_autocommit() {
                break;
            }
        }
        if connection.is_autocommit() {
            return fail(ran, &(StoreErrorKind::Unavailable, Arc::from(TAKEN_ALONG)));
        }
        committed = connection.execute_batch("COMMIT");
        if committed.is_err() && !connection.is_autocommit() {
            // What can't be committed must not stand in the way of the next.
            let _closed = connection.execute_batch("ROLLBACK");
        }
    } else {
        ran.extend(jobs);
    }
    match committed {
        Ok(()) => ran.into_iter().for_each(|job| job.end(Ok(()))),
        Err(error) => fail(ran, &(kind(&error), Arc::from(error.to_string()))),
    }
}

/// What is said of a write that failed only because it shared its commit with another.
const TAKEN_ALONG: &str = "another write of the same commit failed, and took this one along";

/// Tells all of them why. One that failed for a reason of its own says that one.
fn fail(jobs: Vec<Box<dyn Job>>, failure: &Failure) {
    for job in jobs {
        job.end(Err(failure.clone()));
    }
}
