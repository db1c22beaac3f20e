//! How the file is used.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mamparo_core::clock::{SystemClock, WallClock};
use mamparo_durable::backend::BackendError;

use super::SqliteDurable;
use crate::database::Settings;

/// How often a message is delivered before it is buried.
const REDELIVERY_LIMIT: u32 = 10;

/// The wait for what another process may have written, or a clock that was set.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// The most threads that read.
const MAX_READERS: usize = 64;

/// As much of the file as the thread that writes keeps, in KiB: what does not fit is written twice.
const CACHE_KIB: u32 = 12 * 1024;

/// As much as each thread that reads does.
const READER_CACHE_KIB: u32 = 4 * 1024;

/// As many pages as are logged before they are copied into the file: 32 MiB. A page that changes often is copied seldom then.
const CHECKPOINT_PAGES: u32 = 8_000;

/// Settings of a [`SqliteDurable`].
///
/// ```
/// use mamparo_sqlite::SqliteDurable;
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let file = folder.path().join("engine.db");
/// let store = SqliteDurable::builder(&file).redelivery_limit(5).readers(4).open()?;
/// # let _ = store;
/// # Ok::<(), mamparo_durable::backend::BackendError>(())
/// ```
#[derive(Clone, Debug)]
pub struct SqliteDurableBuilder {
    pub(super) settings: Settings,
    pub(super) clock: Arc<dyn WallClock>,
    pub(super) redelivery_limit: u32,
    pub(super) look_again: Duration,
}

impl SqliteDurableBuilder {
    pub(super) fn at(path: &Path) -> Self {
        let settings = Settings {
            cache_kib: CACHE_KIB,
            reader_cache_kib: READER_CACHE_KIB,
            checkpoint_pages: CHECKPOINT_PAGES,
            ..Settings::at(path)
        };
        Self {
            settings,
            clock: Arc::new(SystemClock),
            redelivery_limit: REDELIVERY_LIMIT,
            look_again: LOOK_AGAIN,
        }
    }

    /// Sets how often a message is delivered before it is buried, 10 by default and 1 at least.
    #[must_use]
    pub fn redelivery_limit(mut self, deliveries: u32) -> Self {
        self.redelivery_limit = deliveries.max(1);
        self
    }

    /// Sets after how long at most a queue is looked at though nothing is known to be in it, 60 s by default.
    ///
    /// What this process writes it knows; this finds what another process has written to the file, and what a clock that was set makes
    /// due.
    #[must_use]
    pub fn look_again(mut self, pause: Duration) -> Self {
        self.look_again = pause.max(Duration::from_millis(1));
        self
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

    /// Sets how long another process's write is waited for, 1.5 s by default.
    #[must_use]
    pub const fn busy_timeout(mut self, timeout: Duration) -> Self {
        self.settings.busy_timeout = timeout;
        self
    }

    /// Sets how much of the file the thread that writes keeps in memory, 12 MiB by default; those that read keep 4 MiB each.
    #[must_use]
    pub const fn cache_kib(mut self, kib: u32) -> Self {
        self.settings.cache_kib = kib;
        self
    }

    /// Sets the wall clock, the machine's by default.
    #[must_use]
    pub fn wall_clock(mut self, clock: impl WallClock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Opens the file, makes it where it is missing, and brings its tables up to date.
    ///
    /// # Errors
    ///
    /// Refuses a file that is no database, one that a newer version has written, and one in which another program has tables of the
    /// same names ([`Trouble::Incompatible`](mamparo_durable::backend::Trouble::Incompatible)).
    pub fn open(self) -> Result<SqliteDurable, BackendError> {
        SqliteDurable::with(self)
    }
}
