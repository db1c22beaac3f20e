//! How events are kept.

use std::sync::Arc;
use std::time::Duration;

use mamparo_durable::backend::BackendError;
use sqlx::ConnectOptions as _;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use tokio::sync::Notify;

use super::PostgresEvents;
use super::handle::{SWEEP, Shared, sweep};
use super::sql::Statements;
use crate::database::{Database, options};
use crate::schema;
use crate::settings::Settings;
use crate::tasks::{Tasks, Tell, keep_sweeping};
use crate::wake::hear;

/// How often the inbox is swept.
const SWEEP_EVERY: Duration = Duration::from_secs(15);

/// The version of the schema that has brought the tables of events.
const EVENTS_SINCE: usize = 4;

/// As many connections as watchdogs have: a transaction each.
const OF_WATCHDOGS: u32 = 2;

/// Settings of [`PostgresEvents`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `connect` is called"]
pub struct PostgresEventsBuilder {
    settings: Settings,
    keep_inbox: Duration,
    notify: bool,
    existing: bool,
}

impl PostgresEventsBuilder {
    pub(super) const fn new(settings: Settings) -> Self {
        Self {
            settings,
            keep_inbox: Duration::from_secs(14 * 86_400),
            notify: true,
            existing: false,
        }
    }

    /// Sets how long the inbox remembers a message, 14 days by default: longer than any queue may hold it back.
    pub const fn keep_inbox(mut self, retention: Duration) -> Self {
        self.keep_inbox = retention;
        self
    }

    /// Sets whether a put notifies relays when its transaction commits; it does by default.
    ///
    /// PostgreSQL commits transactions that notify one after the other. With thousands a second, let them not, and call
    /// [`PostgresEvents::wake`] after the commit; relays of other processes then find the events when they [look
    /// again](mamparo_durable::events::RelayBuilder::look_again).
    pub const fn notify(mut self, notify: bool) -> Self {
        self.notify = notify;
        self
    }

    /// Connects only if the schema has these tables, and changes none: for who looks after another program's. Nothing sweeps the inbox
    /// then.
    pub const fn existing(mut self) -> Self {
        self.existing = true;
        self
    }

    /// Connects, brings the tables up to date, and starts what listens and sweeps, on this runtime.
    ///
    /// # Errors
    ///
    /// As [`Postgres::connect`](crate::Postgres::connect).
    pub async fn connect(self) -> Result<PostgresEvents, BackendError> {
        let settings = self.settings;
        let database = Database::new(&settings);
        if self.existing {
            schema::require(&database, &settings, EVENTS_SINCE).await?;
        } else {
            schema::prepare(&database, &settings).await?;
        }
        let statements = Statements::of(&settings.schema);
        let changed = Arc::new(Notify::new());
        let channel = format!("mamparo_events_{}", settings.schema);
        let tasks = Tasks::default();
        let heard = (options(&settings), channel.clone(), Arc::clone(&changed));
        let connect = settings.acquire_timeout;
        tasks.run(move || {
            let (server, channel, changed) = heard.clone();
            hear(server, channel, connect, move |_| changed.notify_one())
        });
        let keep = self.keep_inbox;
        // How long another program's inbox remembers is not known here.
        if !self.existing {
            let tell = Tell::new("inbox", &settings.listener);
            sweeping(&tasks, &database, &statements, keep, tell);
        }
        let own = PgPoolOptions::new()
            .max_connections(OF_WATCHDOGS)
            .acquire_timeout(settings.acquire_timeout)
            .connect_lazy_with(services_own(&settings));
        let shared = Shared {
            database,
            statements,
            changed,
            keep_inbox: keep,
            own,
            channel: self.notify.then_some(channel),
            tasks,
        };
        Ok(PostgresEvents {
            shared: Arc::new(shared),
        })
    }
}

/// Has a task forget what the inbox need not remember.
fn sweeping(
    tasks: &Tasks,
    database: &Database,
    statements: &Statements,
    keep: Duration,
    tell: Tell,
) {
    let swept = (database.clone(), statements.clone());
    tasks.run(move || {
        let (database, statements) = swept.clone();
        keep_sweeping(SWEEP_EVERY, SWEEP, tell.clone(), move || {
            let (database, statements) = (database.clone(), statements.clone());
            async move { sweep(&database, &statements, keep, SWEEP).await }
        })
    });
}

/// Bounded, but otherwise as the service itself would connect.
fn services_own(settings: &Settings) -> PgConnectOptions {
    let millis = settings.statement_timeout.as_millis().to_string();
    let bounds = [
        ("statement_timeout", &millis),
        ("idle_in_transaction_session_timeout", &millis),
    ];
    settings
        .server
        .clone()
        .options(bounds)
        .disable_statement_logging()
}
