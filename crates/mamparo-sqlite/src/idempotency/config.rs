//! How a store's file is used.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mamparo::idempotency::StoreError;
use mamparo_core::clock::{SystemClock, WallClock};

use super::SqliteIdempotency;
use crate::database::Settings;

/// The most threads that read.
const MAX_READERS: usize = 64;

/// Settings of a [`SqliteIdempotency`].
///
/// ```
/// use mamparo_sqlite::SqliteIdempotency;
/// use std::time::Duration;
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let file = folder.path().join("keys.db");
/// let store = SqliteIdempotency::builder(&file)
///     .readers(4)
///     .sweep_every(Duration::from_secs(10))
///     .open()?;
/// # let _ = store;
/// # Ok::<(), mamparo::idempotency::StoreError>(())
/// ```
#[derive(Clone, Debug)]
pub struct SqliteBuilder {
    pub(super) settings: Settings,
    pub(super) sweep_every: Option<Duration>,
    pub(super) clock: Arc<dyn WallClock>,
}

impl SqliteBuilder {
    pub(super) fn at(path: &Path) -> Self {
        Self {
            settings: Settings::at(path),
            sweep_every: Some(Duration::from_secs(5)),
            clock: Arc::new(SystemClock),
        }
    }

    /// Sets how many threads read, 2 by default; from 1 to 64.
    #[must_use]
    pub fn readers(mut self, threads: usize) -> Self {
        self.settings.readers = threads.clamp(1, MAX_READERS);
        self
    }

    /// Sets how many writes may wait for their turn, 4096 by default and 1 at least; who comes then waits to get in line.
    #[must_use]
    pub fn queue(mut self, writes: usize) -> Self {
        self.settings.queue = writes.max(1);
        self
    }

    /// Sets how long another process's write is waited for, 1.5 s by default; less than the layer's own timeout of the store.
    #[must_use]
    pub const fn busy_timeout(mut self, timeout: Duration) -> Self {
        self.settings.busy_timeout = timeout;
        self
    }

    /// Sets how much of the file each thread keeps in memory, 16 MiB by default.
    #[must_use]
    pub const fn cache_kib(mut self, kib: u32) -> Self {
        self.settings.cache_kib = kib;
        self.settings.reader_cache_kib = kib;
        self
    }

    /// Sets how often keys past their retention are looked for, every 5 s by default; never with none.
    #[must_use]
    pub fn sweep_every(mut self, pause: impl Into<Option<Duration>>) -> Self {
        self.sweep_every = pause.into().filter(|pause| !pause.is_zero());
        self
    }

    /// Sets the clock by which keys expire, the machine's by default.
    #[must_use]
    pub fn wall_clock(mut self, clock: impl WallClock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Opens the file, makes it where it is missing, and brings its tables up to date.
    ///
    /// # Errors
    ///
    /// Refuses a file that is no database, one that a newer version has written, and one in which another program has a table of the
    /// same name.
    pub fn open(self) -> Result<SqliteIdempotency, StoreError> {
        SqliteIdempotency::with(self)
    }
}
