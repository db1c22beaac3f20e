//! The file, and what a service asks of it.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use mamparo::idempotency::StoreError;
use mamparo_core::clock::{SystemClock, WallClock};
use mamparo_durable::backend::{BackendError, Trouble};
use mamparo_durable::events::{Event, Seen};
use mamparo_durable::machine::Utc;
use rusqlite::{Connection, OpenFlags, params};
use tokio::sync::Notify;

use super::inbox;
use super::schema::PART;
use crate::TransactionError;
use crate::database::{Database, Settings};
use crate::durable::Failed;

/// Events and inbox in a SQLite file: the one that the service's own tables are in. Clones share it.
///
/// It is the store of a [`Relay`](mamparo_durable::events::Relay).
///
/// ```
/// use mamparo_durable::events::{Event, Seen};
/// use mamparo_sqlite::{SqliteEvents, TransactionError};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), mamparo_core::BoxError> {
/// # let folder = tempfile::tempdir()?;
/// # let file = folder.path().join("shop.db");
/// let events = SqliteEvents::open(&file)?;
/// let placed = Event::builder("order-7/placed").key("order-7").to("orders", "order.placed").build()?;
/// let outbox = events.clone();
/// events
///     .transaction(move |tx| {
///         tx.execute_batch("CREATE TABLE orders (number INTEGER); INSERT INTO orders VALUES (7)")?;
///         // Both or neither.
///         outbox.put(tx, &placed)
///     })
///     .await?;
///
/// // In a consumer: the message's effect once, however often it comes.
/// let inbox = events.clone();
/// let seen = events.transaction(move |tx| inbox.processed_once(tx, "stock", "order-7/placed")).await?;
/// assert_eq!(seen, Seen::First);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct SqliteEvents {
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) database: Database,
    pub(super) clock: Arc<dyn WallClock>,
    pub(super) keep_inbox: Duration,
    /// How many messages this process has processed, for the inbox to be swept now and then.
    pub(super) processed: AtomicU32,
    pub(super) changed: Notify,
}

impl SqliteEvents {
    /// Opens a file with the default settings, and makes it where it is missing.
    ///
    /// # Errors
    ///
    /// As [`SqliteEventsBuilder::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, BackendError> {
        Self::builder(path).open()
    }

    /// Starts from the default settings.
    #[must_use]
    pub fn builder(path: impl AsRef<Path>) -> SqliteEventsBuilder {
        SqliteEventsBuilder {
            settings: Settings::at(path.as_ref()),
            clock: Arc::new(SystemClock),
            keep_inbox: Duration::from_secs(14 * 86_400),
            existing: false,
        }
    }

    /// Runs a transaction of yours on the thread that writes, together with whatever else waits there.
    ///
    /// All of it is committed when this returns, or nothing is. The work should be short, since all other writes wait for it; it must not
    /// begin or end a transaction itself.
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
        self.shared.database.writer.transaction(work).await
    }

    /// Puts an event in a transaction of yours: it is published if that commits.
    ///
    /// The connection must be one to this file: that of [`transaction`](Self::transaction), or one of your own in a transaction that began
    /// `IMMEDIATE`. Called twice, the event is published twice, under its one id.
    ///
    /// # Errors
    ///
    /// There is no transaction, or the file fails: roll back.
    pub fn put(&self, transaction: &Connection, event: &Event) -> Result<(), TransactionError> {
        if transaction.is_autocommit() {
            return Err(TransactionError::NO_TRANSACTION);
        }
        let mut put = transaction.prepare_cached(
            "INSERT INTO mamparo_events (ready_at, failures, created_at, id, key, destination, routing_key, head, payload)
             VALUES (0, 0, ?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?;
        put.execute(params![
            event.created_at().millis(),
            event.id(),
            event.key(),
            event.destination(),
            event.routing_key(),
            event.head(),
            &event.payload()[..],
        ])?;
        // Who is woken claims behind this transaction: on the same thread, or under the file's lock.
        self.shared.changed.notify_one();
        Ok(())
    }

    /// Notes, in a transaction of yours, that a consumer processes a message; tells whether it did before.
    ///
    /// If it is [`Seen::Before`], change nothing more, commit and acknowledge. What is older than
    /// [`keep_inbox`](SqliteEventsBuilder::keep_inbox) is forgotten.
    ///
    /// # Errors
    ///
    /// There is no transaction, or the file fails: roll back.
    pub fn processed_once(
        &self,
        transaction: &Connection,
        consumer: &str,
        message_id: &str,
    ) -> Result<Seen, TransactionError> {
        if transaction.is_autocommit() {
            return Err(TransactionError::NO_TRANSACTION);
        }
        Ok(inbox::process(
            &self.shared,
            transaction,
            consumer,
            message_id,
        )?)
    }

    /// Forgets at most `limit` messages of the inbox that are older than it keeps them; returns how many it forgot.
    ///
    /// It does so by itself, now and then, when messages are processed.
    ///
    /// # Errors
    ///
    /// The file's.
    pub async fn sweep_inbox(&self, limit: usize) -> Result<usize, BackendError> {
        let before = inbox::forgotten_before(&self.shared, self.now());
        self.write(move |file| Ok(inbox::sweep(file, before, limit)?))
            .await
    }

    pub(super) fn now(&self) -> Utc {
        Utc::of(&*self.shared.clock)
    }

    /// Writes on the thread that writes, all or nothing.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Failed> + Send + 'static,
    ) -> Result<T, BackendError> {
        let written = self.shared.database.writer.transaction(work).await;
        written.map_err(|Failed(error)| error)
    }

    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Failed> + Send + 'static,
    ) -> Result<T, BackendError> {
        let read = self.shared.database.readers.read(work).await;
        read.map_err(|Failed(error)| error)
    }
}

impl fmt::Debug for SqliteEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteEvents").finish_non_exhaustive()
    }
}

/// Settings of [`SqliteEvents`].
#[derive(Clone, Debug)]
pub struct SqliteEventsBuilder {
    settings: Settings,
    clock: Arc<dyn WallClock>,
    keep_inbox: Duration,
    existing: bool,
}

impl SqliteEventsBuilder {
    /// Sets how long another process's write is waited for, 1.5 s by default.
    #[must_use]
    pub const fn busy_timeout(mut self, timeout: Duration) -> Self {
        self.settings.busy_timeout = timeout;
        self
    }

    /// Sets how long the inbox remembers a message, 14 days by default: longer than any queue may hold it back.
    #[must_use]
    pub const fn keep_inbox(mut self, retention: Duration) -> Self {
        self.keep_inbox = retention;
        self
    }

    /// Sets the wall clock, the machine's by default.
    #[must_use]
    pub fn wall_clock(mut self, clock: impl WallClock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Opens a file only if it has these tables as this version makes them, and changes none: for who looks after another program's.
    #[must_use]
    pub const fn existing(mut self) -> Self {
        self.existing = true;
        self
    }

    /// Opens the file, makes it where it is missing, and brings its tables up to date.
    ///
    /// # Errors
    ///
    /// Refuses a file that is no database, one that a newer version has written, and one in which another program has tables of the
    /// same names ([`Trouble::Incompatible`]).
    pub fn open(self) -> Result<SqliteEvents, BackendError> {
        let path = self.settings.path.display().to_string();
        if self.existing && !is_there(&self.settings.path) {
            let why = format!("{path}: there are no events in it that this version knows");
            return Err(BackendError::new(Trouble::Incompatible, why));
        }
        let database = Database::open(&self.settings, &[PART]).map_err(|error| {
            let Failed(error) = error.into();
            let trouble = match error.trouble() {
                Trouble::Refused => Trouble::Incompatible,
                trouble => trouble,
            };
            BackendError::new(trouble, format!("{path}: {error}")).from_source(error)
        })?;
        let shared = Shared {
            database,
            clock: self.clock,
            keep_inbox: self.keep_inbox,
            processed: AtomicU32::new(inbox::SWEEP_AFTER - 1),
            changed: Notify::new(),
        };
        Ok(SqliteEvents {
            shared: Arc::new(shared),
        })
    }
}

/// Tells whether a file has the tables, as this version makes them.
fn is_there(path: &Path) -> bool {
    let version = || {
        let file = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let asked = "SELECT version FROM mamparo_schema WHERE part = ?1";
        file.query_row(asked, [PART.name], |row| row.get::<_, u32>(0))
    };
    version().is_ok_and(|version| usize::try_from(version) == Ok(PART.steps.len()))
}
