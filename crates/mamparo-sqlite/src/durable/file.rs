//! The file, and what all parts of the backend share.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use mamparo_core::clock::WallClock;
use mamparo_durable::backend::{Backend, BackendError, Queue, QueueName, Trouble};
use mamparo_durable::machine::Utc;
use rusqlite::Connection;

use super::SqliteDurableBuilder;
use super::error::{Failed, whole};
use super::limits::EngineLimits;
use super::queue::SqliteQueue;
use super::schema::PART;
use super::wake::Wakes;
use crate::database::Database;

/// Everything of the defer plane in one SQLite file. Clones share it; its threads end with the last of them.
///
/// Its guarantees, sizes and backup are told in `docs/durable.md`.
#[derive(Clone)]
pub struct SqliteDurable {
    shared: Arc<Shared>,
}

struct Shared {
    database: Database,
    path: PathBuf,
    clock: Arc<dyn WallClock>,
    wakes: Wakes,
    redelivery_limit: u32,
    look_again: Duration,
}

impl SqliteDurable {
    /// Opens a file with the default settings, and makes it where it is missing.
    ///
    /// # Errors
    ///
    /// As [`SqliteDurableBuilder::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, BackendError> {
        Self::builder(path).open()
    }

    /// Starts from the default settings.
    #[must_use]
    pub fn builder(path: impl AsRef<Path>) -> SqliteDurableBuilder {
        SqliteDurableBuilder::at(path.as_ref())
    }

    pub(super) fn with(builder: SqliteDurableBuilder) -> Result<Self, BackendError> {
        let database = Database::open(&builder.settings, &[PART]);
        let path = builder.settings.path;
        let database = database.map_err(|error| opening(&path, Failed::from(error).0))?;
        let shared = Shared {
            database,
            path,
            clock: builder.clock,
            wakes: Wakes::default(),
            redelivery_limit: builder.redelivery_limit,
            look_again: builder.look_again,
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Returns it as the parts that handlers work with; whole steps are one transaction.
    #[must_use]
    pub fn backend(&self) -> Backend {
        let this = Arc::new(self.clone());
        let queues = QueueName::ALL.map(|name| self.queue(name));
        Backend::new(this.clone(), this.clone(), queues)
            .with_outbox(this)
            .with_limits(Arc::new(EngineLimits(self.clone())))
    }

    /// Returns one of the queues.
    #[must_use]
    pub fn queue(&self, name: QueueName) -> Arc<dyn Queue> {
        Arc::new(SqliteQueue::new(self.clone(), name))
    }

    pub(super) fn now(&self) -> Utc {
        Utc::of(&*self.shared.clock)
    }

    pub(super) fn clock(&self) -> &dyn WallClock {
        &*self.shared.clock
    }

    pub(super) fn wakes(&self) -> &Wakes {
        &self.shared.wakes
    }

    pub(super) fn path(&self) -> &Path {
        &self.shared.path
    }

    pub(super) fn redelivery_limit(&self) -> u32 {
        self.shared.redelivery_limit
    }

    pub(super) async fn ready(&self, queue: QueueName) {
        let Shared {
            wakes,
            clock,
            look_again,
            ..
        } = &*self.shared;
        wakes.of(queue).ready(&**clock, *look_again).await;
    }

    /// Writes on the thread that writes, all or nothing, and waits until it is on the disk.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection, &Self) -> Result<T, Failed> + Send + 'static,
    ) -> Result<T, Failed> {
        let this = self.clone();
        let work = move |file: &Connection| whole(file, |file| work(file, &this));
        self.shared.database.writer.write(work).await
    }

    /// Reads on one of the threads that read.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Failed> + Send + 'static,
    ) -> Result<T, Failed> {
        self.shared.database.readers.read(work).await
    }
}

/// Says which file it is.
fn opening(path: &Path, error: BackendError) -> BackendError {
    let trouble = match error.trouble() {
        // Its schema could not be made: tables of these names are there.
        Trouble::Refused => Trouble::Incompatible,
        trouble => trouble,
    };
    BackendError::new(trouble, format!("{}: {error}", path.display())).from_source(error)
}

impl fmt::Debug for SqliteDurable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteDurable")
            .field("path", &self.shared.path)
            .finish_non_exhaustive()
    }
}
