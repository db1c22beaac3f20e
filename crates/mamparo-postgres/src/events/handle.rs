//! What a service asks.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mamparo_durable::backend::BackendError;
use mamparo_durable::events::{Event, Seen};
use sqlx::postgres::{PgConnection, PgPool};
use sqlx::{AssertSqlSafe, query};
use tokio::sync::Notify;

use super::PostgresEventsBuilder;
use super::sql::Statements;
use crate::database::{Database, Work, trouble};
use crate::settings::Settings;
use crate::tasks::Tasks;

/// As many messages as one sweep forgets.
pub(super) const SWEEP: usize = 1_000;

/// Events and inbox in PostgreSQL, in a schema beside the service's own tables. Clones share it.
///
/// It is the store of a [`Relay`](mamparo_durable::events::Relay), which works on connections of its own: requests that use up the
/// service's pool don't stop it.
///
/// ```no_run
/// use mamparo_durable::events::{Event, Seen};
/// use mamparo_postgres::sqlx::{self, PgPool};
/// use mamparo_postgres::{PostgresEvents, Settings};
///
/// # async fn begin() -> Result<(), mamparo_core::BoxError> {
/// let events = PostgresEvents::connect(Settings::builder("postgres://shop@localhost/shop").build()?).await?;
///
/// async fn place(shop: &PgPool, outbox: &PostgresEvents, order: &str) -> Result<(), mamparo_core::BoxError> {
///     let placed = Event::builder(format!("{order}/placed")).key(order).to("orders", "order.placed").build()?;
///     let mut tx = shop.begin().await?;
///     sqlx::query("INSERT INTO orders (id) VALUES ($1)").bind(order).execute(&mut *tx).await?;
///     outbox.put(&mut tx, &placed).await?;
///     tx.commit().await?; // both or neither
///     Ok(())
/// }
///
/// // In a consumer: the message's effect once, however often it comes.
/// async fn reserve(shop: &PgPool, inbox: &PostgresEvents, message_id: &str) -> Result<(), mamparo_core::BoxError> {
///     let mut tx = shop.begin().await?;
///     if inbox.processed_once(&mut tx, "stock", message_id).await? == Seen::First {
///         sqlx::query("UPDATE stock SET free = free - 1").execute(&mut *tx).await?;
///     }
///     tx.commit().await?;
///     Ok(())
/// }
/// # let _ = (place, reserve, events);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PostgresEvents {
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) database: Database,
    pub(super) statements: Statements,
    pub(super) changed: Arc<Notify>,
    pub(super) keep_inbox: Duration,
    /// For what is the service's own, and looks for tables where the service does.
    pub(super) own: PgPool,
    /// What puts notify; nothing if they don't.
    pub(super) channel: Option<String>,
    /// Ends with the last clone.
    pub(super) tasks: Tasks,
}

impl PostgresEvents {
    /// Connects with the default settings, brings the tables up to date, and starts what listens and sweeps, on this runtime.
    ///
    /// # Errors
    ///
    /// As [`PostgresEventsBuilder::connect`].
    pub async fn connect(settings: Settings) -> Result<Self, BackendError> {
        Self::builder(settings).connect().await
    }

    /// Starts from where the server is, and the default settings.
    pub const fn builder(settings: Settings) -> PostgresEventsBuilder {
        PostgresEventsBuilder::new(settings)
    }

    /// Puts an event in a transaction of yours: it is published if that commits. Called twice, it is published twice, under its one id.
    ///
    /// The transaction must be one of the same database. It has an order with other transactions that put events of the same key
    /// only if one of them waits for the other, as where both first lock or update the same row.
    ///
    /// # Errors
    ///
    /// The server's: roll back.
    pub async fn put(
        &self,
        transaction: &mut PgConnection,
        event: &Event,
    ) -> Result<(), BackendError> {
        self.put_in(transaction, event).await.map_err(trouble)
    }

    pub(super) async fn put_in(
        &self,
        transaction: &mut PgConnection,
        event: &Event,
    ) -> Result<(), sqlx::Error> {
        let Shared {
            statements,
            channel,
            ..
        } = &*self.shared;
        query(AssertSqlSafe(Arc::clone(&statements.put)))
            .bind(event.created_at().millis())
            .bind(event.id())
            .bind(event.key())
            .bind(event.destination())
            .bind(event.routing_key())
            .bind(event.head())
            .bind(&event.payload()[..])
            .execute(&mut *transaction)
            .await?;
        if let Some(channel) = channel {
            // Delivered when the transaction commits, and once however often it is said.
            let notify = query("SELECT pg_notify($1, '')").bind(channel);
            notify.execute(transaction).await?;
        }
        Ok(())
    }

    /// Wakes the relays of this process: for after the commit, where puts [don't notify](PostgresEventsBuilder::notify).
    pub fn wake(&self) {
        self.shared.changed.notify_one();
    }

    /// Notes, in a transaction of yours, that a consumer processes a message; tells whether it did before.
    ///
    /// If it is [`Seen::Before`], change nothing more, commit and acknowledge. Of two that ask at once, one waits for the other's commit.
    /// What is older than [`keep_inbox`](PostgresEventsBuilder::keep_inbox) is forgotten.
    ///
    /// # Errors
    ///
    /// The server's: roll back.
    pub async fn processed_once(
        &self,
        transaction: &mut PgConnection,
        consumer: &str,
        message_id: &str,
    ) -> Result<Seen, BackendError> {
        let noted = query(AssertSqlSafe(Arc::clone(&self.shared.statements.process)))
            .bind(consumer)
            .bind(message_id)
            .execute(transaction)
            .await;
        Ok(match noted.map_err(trouble)?.rows_affected() {
            0 => Seen::Before,
            _ => Seen::First,
        })
    }

    /// Forgets at most `limit` messages of the inbox that are older than it keeps them; returns how many it forgot.
    ///
    /// A task does so by itself, every 15 seconds.
    ///
    /// # Errors
    ///
    /// The server's.
    pub async fn sweep_inbox(&self, limit: usize) -> Result<usize, BackendError> {
        let Shared {
            database,
            statements,
            keep_inbox,
            ..
        } = &*self.shared;
        sweep(database, statements, *keep_inbox, limit).await
    }

    /// Ends the tasks and the connections. What is called later, fails.
    pub async fn close(&self) {
        self.shared.tasks.stop();
        self.shared.own.close().await;
        self.shared.database.close().await;
    }

    pub(super) async fn with<T: Send>(
        &self,
        work: impl for<'c> FnOnce(&'c mut PgConnection) -> Work<'c, T> + Send,
    ) -> Result<T, BackendError> {
        self.shared.database.with(work).await
    }
}

pub(super) async fn sweep(
    database: &Database,
    statements: &Statements,
    keep: Duration,
    limit: usize,
) -> Result<usize, BackendError> {
    let (keep, limit) = (millis(keep), i64::try_from(limit).unwrap_or(i64::MAX));
    let sweep = Arc::clone(&statements.sweep);
    let swept = database
        .with(move |connection| {
            let sweep = query(AssertSqlSafe(sweep)).bind(keep).bind(limit);
            Box::pin(sweep.execute(connection))
        })
        .await?;
    Ok(usize::try_from(swept.rows_affected()).unwrap_or(usize::MAX))
}

/// No wait and no retention is longer: a hundred years, far from where PostgreSQL's time ends.
const LONGEST: i64 = 100 * 366 * 86_400_000;

pub(super) fn millis(duration: Duration) -> i64 {
    let millis = i64::try_from(duration.as_millis()).unwrap_or(LONGEST);
    millis.min(LONGEST)
}

impl fmt::Debug for PostgresEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresEvents")
            .field("database", &self.shared.database)
            .finish_non_exhaustive()
    }
}
