//! Opening a file.

use std::convert::Infallible;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use mamparo::idempotency::StoreError;
use rusqlite::{Connection, OpenFlags};

use super::checkpoint::{self, Rest};
use super::error::store_error;
use super::readers::Readers;
use super::schema::Part;
use super::writer::Writer;

/// How a file is used.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) path: PathBuf,
    /// How many threads read.
    pub(crate) readers: usize,
    /// How many writes may wait, and how many reads for each thread.
    pub(crate) queue: usize,
    /// How long another process's write is waited for.
    pub(crate) busy_timeout: Duration,
    /// How much of the file the thread that writes keeps in memory, in KiB.
    pub(crate) cache_kib: u32,
    /// And each that reads.
    pub(crate) reader_cache_kib: u32,
    /// How many pages are written to the log before they are copied into the file.
    pub(crate) checkpoint_pages: u32,
}

/// A file that is open; clones share its threads, which end with the last of them.
#[derive(Clone)]
pub(crate) struct Database {
    pub(crate) writer: Writer,
    pub(crate) readers: Readers,
    /// Ends the checkpoints when the last clone is gone.
    _checkpoints: Arc<SyncSender<Infallible>>,
}

impl Database {
    /// Opens a file, makes it where it is missing, and brings the parts up to date.
    pub(crate) fn open(settings: &Settings, parts: &[Part]) -> Result<Self, StoreError> {
        let mut connection = settings.connect(false).map_err(store_error)?;
        for part in parts {
            part.migrate(&mut connection)?;
        }
        let pages = checkpoint::VERY_LONG_PAGES;
        let kept = connection.pragma_update(None, "wal_autocheckpoint", pages);
        kept.map_err(store_error)?;
        let rest = Rest::default();
        let writer = Writer::start(connection, settings.queue, rest.clone());
        let readers = (0..settings.readers.max(1)).map(|_| settings.connect(true));
        let readers: Result<Vec<_>, _> = readers.collect();
        let readers = Readers::start(readers.map_err(store_error)?, settings.queue);
        let connection = settings.connect(false).map_err(store_error)?;
        let checkpoints = checkpoint::start(connection, settings.log(), rest)?;
        Ok(Self {
            writer: writer?,
            readers: readers?,
            _checkpoints: Arc::new(checkpoints),
        })
    }
}

impl Settings {
    fn connect(&self, only_reads: bool) -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags)?;
        connection.busy_timeout(self.busy_timeout)?;
        let mode: String =
            connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
        debug_assert_eq!(mode, "wal");
        // A commit is on the disk before anybody is told of it.
        connection.pragma_update(None, "synchronous", "full")?;
        let cache = match only_reads {
            true => self.reader_cache_kib,
            false => self.cache_kib,
        };
        connection.pragma_update(None, "cache_size", -i64::from(cache))?;
        connection.pragma_update(None, "wal_autocheckpoint", self.checkpoint_pages)?;
        connection.pragma_update(None, "query_only", only_reads)?;
        connection.set_prepared_statement_cache_capacity(64);
        Ok(connection)
    }

    /// Where SQLite keeps the log.
    fn log(&self) -> PathBuf {
        let mut log = self.path.clone().into_os_string();
        log.push("-wal");
        log.into()
    }

    pub(crate) fn at(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            readers: 2,
            queue: 4096,
            busy_timeout: Duration::from_millis(1500),
            cache_kib: 16 * 1024,
            reader_cache_kib: 16 * 1024,
            checkpoint_pages: 1_000,
        }
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").finish_non_exhaustive()
    }
}
