//! The store.

use std::convert::Infallible;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use mamparo::idempotency::{
    Begin, Begun, IdempotencyStore, KeyId, Lease, Record, SealedAnswer, Step, StoreError,
    StoreErrorKind, Written,
};
use mamparo_core::clock::WallClock;
use rusqlite::Connection;

use super::sql::{self, Millis, PART, millis};
use super::{SqliteBuilder, sweep};
use crate::TransactionError;
use crate::database::Database;

/// Keeps idempotency keys in a SQLite file; clones share it.
///
/// It sweeps itself. See the [crate's documentation](crate).
#[derive(Clone)]
pub struct SqliteIdempotency {
    database: Database,
    clock: Arc<dyn WallClock>,
    /// Ends the sweeper when the last clone is gone.
    _sweeper: Option<Arc<SyncSender<Infallible>>>,
}

impl SqliteIdempotency {
    /// Opens a file with the default settings, and makes it where it is missing.
    ///
    /// # Errors
    ///
    /// As [`SqliteBuilder::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::builder(path).open()
    }

    /// Starts from the default settings.
    #[must_use]
    pub fn builder(path: impl AsRef<Path>) -> SqliteBuilder {
        SqliteBuilder::at(path.as_ref())
    }

    pub(super) fn with(builder: SqliteBuilder) -> Result<Self, StoreError> {
        let database = Database::open(&builder.settings, &[PART])?;
        let clock = builder.clock;
        let sweeper = match builder.sweep_every {
            Some(every) => Some(Arc::new(start_sweeper(&database, &clock, every)?)),
            None => None,
        };
        Ok(Self {
            database,
            clock,
            _sweeper: sweeper,
        })
    }

    /// Runs a transaction of yours on the thread that writes, together with whatever else waits there.
    ///
    /// All of it is committed when this returns, or nothing is. Inside, [`complete`](crate::complete) completes the request's key. The work
    /// should be short, since all other writes wait for it; it must not begin or end a transaction itself.
    ///
    /// # Errors
    ///
    /// The work's own error, or the file's: nothing is committed then.
    pub async fn transaction<T, E>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        self.database.writer.transaction(work).await
    }

    /// Reads on one of the threads that read.
    ///
    /// # Errors
    ///
    /// The work's own error, or the file's.
    pub async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, TransactionError> + Send + 'static,
    ) -> Result<T, TransactionError> {
        self.database.readers.read(work).await
    }

    fn now(&self) -> Millis {
        millis(&*self.clock)
    }

    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.database.writer.write(work).await
    }
}

fn start_sweeper(
    database: &Database,
    clock: &Arc<dyn WallClock>,
    every: Duration,
) -> Result<SyncSender<Infallible>, StoreError> {
    let (keep, stop) = sync_channel(1);
    let (database, clock) = (database.clone(), Arc::clone(clock));
    let thread = thread::Builder::new().name("mamparo-sweeper".to_owned());
    let started = thread.spawn(move || sweep::keep_sweeping(database, clock, every, stop));
    started.map_err(|error| StoreError::new(StoreErrorKind::Other, error))?;
    Ok(keep)
}

impl IdempotencyStore for SqliteIdempotency {
    /// A key that is completed or taken is only read; others go to the thread that writes, which looks again.
    async fn begin(&self, begin: &Begin) -> Result<Begun, StoreError> {
        let (begin, now) = (*begin, self.now());
        let found = self.database.readers.read(move |connection| {
            let row = sql::find(connection, begin.id, now)?;
            Ok(begin.over(row))
        });
        if let Step::Found(record) = found.await? {
            return Ok(Begun::Found(record));
        }
        let clock = Arc::clone(&self.clock);
        self.write(move |connection| sql::begin(connection, &begin, millis(&*clock)))
            .await
    }

    async fn find(&self, id: KeyId) -> Result<Option<Record>, StoreError> {
        let now = self.now();
        let found = self
            .database
            .readers
            .read(move |connection| sql::find(connection, id, now));
        Ok(found.await?.map(Record::from))
    }

    async fn renew(&self, lease: Lease, term: Duration) -> Result<Written, StoreError> {
        let clock = Arc::clone(&self.clock);
        self.write(move |connection| sql::renew(connection, lease, term, millis(&*clock)))
            .await
    }

    async fn complete(
        &self,
        lease: Lease,
        answer: &SealedAnswer,
        retention: Duration,
    ) -> Result<Written, StoreError> {
        let (clock, answer) = (Arc::clone(&self.clock), answer.clone());
        self.write(move |connection| {
            sql::store(connection, lease, &answer, retention, millis(&*clock))
        })
        .await
    }

    async fn release(&self, lease: Lease) -> Result<Written, StoreError> {
        let clock = Arc::clone(&self.clock);
        self.write(move |connection| sql::release(connection, lease, millis(&*clock)))
            .await
    }

    async fn sweep(&self, limit: usize) -> Result<usize, StoreError> {
        let now = self.now();
        self.write(move |connection| sweep::sweep(connection, limit, now))
            .await
    }
}

impl fmt::Debug for SqliteIdempotency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteIdempotency").finish_non_exhaustive()
    }
}
