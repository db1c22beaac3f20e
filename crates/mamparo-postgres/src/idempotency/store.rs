//! The store.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use mamparo::idempotency::{
    Begin, Begun, IdempotencyStore, IdempotencyTx, KeyId, Lease, Record, SWEEP_BATCH, SealedAnswer,
    Step, StoreError, StoreErrorKind, Written,
};
use sqlx::postgres::PgConnection;
use sqlx::{Error, Transaction};

use super::TransactionError;
use super::error::{at_the_start, store_error};
use super::sql::Statements;
use crate::database::{Database, Work, is_lost};
use crate::schema;
use crate::settings::Settings;
use crate::tasks::{Tasks, Tell, keep_sweeping};

/// Between two looks for keys that are past their retention.
const SWEEP_EVERY: Duration = Duration::from_secs(15);

/// As often as is looked again when a key changes between two statements.
const MAX_CHANGES: u32 = 8;

/// Keeps idempotency keys in PostgreSQL; clones share its connections.
///
/// It is a store for [`IdempotencyLayer`](mamparo::idempotency::IdempotencyLayer), shared by any number of servers, and sweeps itself.
/// Where the handlers write to the same database, [`complete_in`](Self::complete_in) completes a key in the handler's own transaction.
///
/// ```no_run
/// use bytes::Bytes;
/// use http::Response;
/// use mamparo::idempotency::{IdempotencyLayer, IdempotencyPolicy, IdempotencyTx, OnExpiry};
/// use mamparo_postgres::sqlx::{self, PgPool};
/// use mamparo_postgres::{PostgresIdempotency, Settings};
///
/// # async fn begin() -> Result<(), mamparo_core::BoxError> {
/// let store = PostgresIdempotency::connect(Settings::builder("postgres://shop@localhost/shop").build()?).await?;
/// let policy = IdempotencyPolicy::for_all_callers().on_expiry(OnExpiry::RunAgain).build()?;
/// let layer = IdempotencyLayer::new(store.clone(), policy);
/// # let _ = layer;
///
/// // In a handler: the charge and the key's answer, both or neither.
/// async fn charge(
///     shop: &PgPool, keys: &PostgresIdempotency, key: &IdempotencyTx, cents: i64,
/// ) -> Result<Response<Bytes>, mamparo_core::BoxError> {
///     let mut transaction = shop.begin().await?;
///     sqlx::query("INSERT INTO charges (cents) VALUES ($1)").bind(cents).execute(&mut *transaction).await?;
///     let answer = Response::new(Bytes::from(format!("charged {cents}")));
///     keys.complete_in(&mut transaction, key, &answer).await?;
///     transaction.commit().await?;
///     Ok(answer)
/// }
/// # let _ = charge;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PostgresIdempotency {
    database: Database,
    statements: Arc<Statements>,
    /// Ends with the last clone.
    _sweeper: Option<Arc<Tasks>>,
}

impl PostgresIdempotency {
    /// Connects, brings the tables up to date, and starts the task that sweeps, on this runtime.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the server does not answer or does not let us in, or the tables are a newer version's or another program's.
    pub async fn connect(settings: Settings) -> Result<Self, StoreError> {
        let database = Database::new(&settings);
        schema::prepare(&database, &settings)
            .await
            .map_err(at_the_start)?;
        let statements = Arc::new(Statements::of(&settings.schema));
        let swept = Self {
            database,
            statements,
            _sweeper: None,
        };
        let store = swept.clone();
        let sweeper = Tasks::default();
        let tell = Tell::new("keys", &settings.listener);
        sweeper.run(move || {
            let swept = swept.clone();
            keep_sweeping(SWEEP_EVERY, SWEEP_BATCH, tell.clone(), move || {
                let swept = swept.clone();
                async move { swept.sweep(SWEEP_BATCH).await }
            })
        });
        Ok(Self {
            _sweeper: Some(Arc::new(sweeper)),
            ..store
        })
    }

    /// Completes a key in a transaction of yours, with the answer that you are about to send.
    ///
    /// Effect and key are then committed together, or neither is. The transaction must be one of the same database. Called twice for one
    /// key, the first answer stays, and the second call succeeds. Whoever wants to take the key over waits until the transaction ends.
    ///
    /// # Errors
    ///
    /// Another run has taken the key over ([`TransactionError::is_lost`]), or the server fails: roll back.
    pub async fn complete_in(
        &self,
        transaction: &mut Transaction<'_, sqlx::Postgres>,
        key: &IdempotencyTx,
        response: &Response<Bytes>,
    ) -> Result<(), TransactionError> {
        let answer = key.answer(response);
        let sealed = answer.seal();
        let written = self
            .statements
            .complete(&mut *transaction, key.lease(), &sealed, key.retention())
            .await?;
        match written {
            Written::Done => key.wrote(answer),
            Written::Before => {}
            _ => return Err(TransactionError::LOST),
        }
        Ok(())
    }

    /// Starts a key or reads it; `None` when it changed in between.
    async fn begin_once(&self, begin: Begin) -> Result<Option<Begun>, StoreError> {
        let begun = self.with(|statements| {
            piece(move |connection| {
                Box::pin(async move { try_begin(connection, &statements, &begin).await })
            })
        });
        begun.await
    }

    /// Does a piece of work, of which nothing was done if its connection was lost; on one from before a restart, once more.
    async fn with<T: Send>(
        &self,
        work: impl Fn(Arc<Statements>) -> Piece<T> + Send + Sync,
    ) -> Result<T, StoreError> {
        let first = self.database.raw(work(Arc::clone(&self.statements))).await;
        let done = match first {
            Err(error) if is_lost(&error) => {
                self.database.raw(work(Arc::clone(&self.statements))).await
            }
            done => done,
        };
        done.map_err(store_error)
    }
}

/// A piece of work for one connection.
type Piece<T> = Box<dyn for<'c> FnOnce(&'c mut PgConnection) -> Work<'c, T> + Send>;

/// Spelled out, so that the compiler takes the closure for one that works on any connection.
fn piece<T>(
    work: impl for<'c> FnOnce(&'c mut PgConnection) -> Work<'c, T> + Send + 'static,
) -> Piece<T> {
    Box::new(work)
}

impl IdempotencyStore for PostgresIdempotency {
    async fn begin(&self, begin: &Begin) -> Result<Begun, StoreError> {
        for _ in 0..MAX_CHANGES {
            if let Some(begun) = self.begin_once(*begin).await? {
                return Ok(begun);
            }
        }
        let reason = "others keep beginning and releasing the same key";
        Err(StoreError::new(StoreErrorKind::Overloaded, reason))
    }

    async fn find(&self, id: KeyId) -> Result<Option<Record>, StoreError> {
        let found = self.with(|statements| {
            piece(move |connection| Box::pin(async move { statements.find(connection, id).await }))
        });
        Ok(found.await?.map(Record::from))
    }

    async fn renew(&self, lease: Lease, term: Duration) -> Result<Written, StoreError> {
        let renewed = self.with(|statements| {
            piece(move |connection| {
                Box::pin(async move { statements.renew(connection, lease, term).await })
            })
        });
        renewed.await
    }

    async fn complete(
        &self,
        lease: Lease,
        answer: &SealedAnswer,
        retention: Duration,
    ) -> Result<Written, StoreError> {
        let completed = self.with(|statements| {
            let answer = answer.clone();
            piece(move |connection| {
                Box::pin(async move {
                    statements
                        .complete(connection, lease, &answer, retention)
                        .await
                })
            })
        });
        completed.await
    }

    async fn release(&self, lease: Lease) -> Result<Written, StoreError> {
        let released = self.with(|statements| {
            piece(move |connection| {
                Box::pin(async move { statements.release(connection, lease).await })
            })
        });
        released.await
    }

    async fn sweep(&self, limit: usize) -> Result<usize, StoreError> {
        let swept = self.with(|statements| {
            piece(move |connection| {
                Box::pin(async move { statements.sweep(connection, limit).await })
            })
        });
        swept.await
    }
}

/// Starts a key or reads it; `None` when it changed in between.
async fn try_begin(
    connection: &mut PgConnection,
    statements: &Statements,
    begin: &Begin,
) -> Result<Option<Begun>, Error> {
    if let Some(again) = statements.begin(connection, begin).await? {
        return Ok(Some(Begun::Run { again }));
    }
    let row = statements.find(connection, begin.id).await?;
    Ok(match begin.over(row) {
        Step::Held => Some(Begun::Run { again: false }),
        Step::Found(record) => Some(Begun::Found(record)),
        _ => None,
    })
}

impl fmt::Debug for PostgresIdempotency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("PostgresIdempotency");
        text.field("database", &self.database)
            .finish_non_exhaustive()
    }
}
