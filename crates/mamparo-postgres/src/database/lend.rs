//! Connections, lent for one piece of work each.

use std::fmt::{self, Debug};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mamparo_core::clock::{self, Instant};
use mamparo_durable::backend::{BackendError, BoxFuture};
use sqlx::ConnectOptions as _;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};
use tokio::time::timeout;

use super::trouble::{keeps_connection, trouble};
use crate::settings::Settings;

/// What a piece of work returns while it holds a connection.
pub(crate) type Work<'c, T> = BoxFuture<'c, Result<T, sqlx::Error>>;

/// What the network may add to the server's own limit, before the connection is given up.
const GRACE: Duration = Duration::from_secs(1);

/// A connection is renewed after so long: a server behind a name may have moved.
const LIFETIME: Duration = Duration::from_secs(30 * 60);

/// How these statements are planned: each has one good plan, whatever the statistics say, since all of them find rows by an index.
/// So the plan is made once a connection, and rows are locked in the order in which they are named.
const PLANS: [(&str, &str); 7] = [
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("enable_seqscan", "off"),
    ("enable_bitmapscan", "off"),
    ("jit", "off"),
    ("max_parallel_workers_per_gather", "0"),
];

/// Lends connections that see the schema's tables. Clones share them.
#[derive(Clone)]
pub(crate) struct Database {
    pool: PgPool,
    /// When a connection last failed: those that are older are not lent again.
    failed: Arc<Mutex<Option<Instant>>>,
    acquire_timeout: Duration,
    work_timeout: Duration,
}

impl Database {
    /// Connects when the first is needed.
    pub(crate) fn new(settings: &Settings) -> Self {
        let failed: Arc<Mutex<Option<Instant>>> = Arc::default();
        let seen = Arc::clone(&failed);
        let pool = PgPoolOptions::new()
            .max_connections(settings.connections)
            .acquire_timeout(settings.acquire_timeout)
            .max_lifetime(LIFETIME)
            // A round trip each time; what fails is asked again anyway.
            .test_before_acquire(false)
            .before_acquire(move |_, about| {
                let failed = *seen.lock().unwrap_or_else(PoisonError::into_inner);
                let fresh = failed.is_none_or(|failed| clock::now() - about.age > failed);
                Box::pin(std::future::ready(Ok(fresh)))
            })
            .connect_lazy_with(options(settings));
        Self {
            pool,
            failed,
            acquire_timeout: settings.acquire_timeout,
            work_timeout: settings.statement_timeout + GRACE,
        }
    }

    /// Does a piece of work on a connection, within the time that one piece may take.
    pub(crate) async fn with<T: Send>(
        &self,
        work: impl for<'c> FnOnce(&'c mut PgConnection) -> Work<'c, T> + Send,
    ) -> Result<T, BackendError> {
        self.raw(work).await.map_err(trouble)
    }

    /// As [`with`](Self::with), for whoever looks at the error itself.
    pub(crate) async fn raw<T: Send>(
        &self,
        work: impl for<'c> FnOnce(&'c mut PgConnection) -> Work<'c, T> + Send,
    ) -> Result<T, sqlx::Error> {
        // The pool waits while the server refuses, so that nobody asks in a loop without a pause.
        let lent = timeout(self.acquire_timeout + GRACE, self.pool.acquire()).await;
        let mut connection = lent.map_err(|_| sqlx::Error::PoolTimedOut)??;
        let done = self.in_time(work(&mut connection)).await;
        if done.as_ref().is_err_and(|error| !keeps_connection(error)) {
            connection.close_on_drop();
            *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(clock::now());
        }
        done
    }

    /// Ends what takes longer than one piece of work may.
    ///
    /// The server bounds its own work; of a network that swallows its answer it knows nothing.
    pub(crate) async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, sqlx::Error>>,
    ) -> Result<T, sqlx::Error> {
        let done = timeout(self.work_timeout, work).await;
        done.unwrap_or(Err(sqlx::Error::PoolTimedOut))
    }

    #[cfg(test)]
    pub(crate) fn options(&self) -> PgConnectOptions {
        (*self.pool.connect_options()).clone()
    }

    /// Ends all connections, once they are given back.
    pub(crate) async fn close(&self) {
        self.pool.close().await;
    }
}

impl Debug for Database {
    /// Without the password, which the pool would print.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("Database");
        text.field("connections", &self.pool.size())
            .finish_non_exhaustive()
    }
}

/// What every connection is told.
pub(crate) fn options(settings: &Settings) -> PgConnectOptions {
    let millis = settings.statement_timeout.as_millis().to_string();
    let bounds = [
        ("search_path", settings.schema.as_str()),
        ("statement_timeout", &millis),
        ("idle_in_transaction_session_timeout", &millis),
        ("default_transaction_isolation", "read committed"),
        ("client_min_messages", "warning"),
    ];
    let named = match settings.server.get_application_name() {
        Some(_) => settings.server.clone(),
        None => settings.server.clone().application_name("mamparo"),
    };
    named
        .options(bounds)
        .options(PLANS)
        .disable_statement_logging()
}
