//! The backend.

use std::sync::Arc;
use std::time::Duration;

use mamparo_durable::backend::{Backend, BackendError, Queue, QueueName};
use mamparo_durable::machine::Utc;
use tokio::sync::Mutex;

use crate::database::{Database, options};
use crate::limits::EngineLimits;
use crate::queue::PostgresQueue;
use crate::read::{Loader, Loads};
use crate::schema;
use crate::settings::Settings;
use crate::tasks::Tasks;
use crate::wake::{Ready, Wake, hear, tell};
use crate::write::{Desk, Writer};

/// As many tasks read single transactions for all who ask: one reads while the other gathers.
const LOADERS: u32 = 2;

/// A backend on PostgreSQL. Clones share its connections; it ends with the last of them.
///
/// Any number of processes may have one on the same tables.
///
/// ```no_run
/// use mamparo_postgres::{Postgres, Settings};
///
/// # async fn begin() -> Result<(), Box<dyn std::error::Error>> {
/// let settings = Settings::builder("postgres://engine@localhost/shop").build()?;
/// let backend = Postgres::connect(settings).await?.backend();
/// assert!(backend.outbox().is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Postgres {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    database: Database,
    desk: Desk,
    loads: Loads,
    wake: Arc<Wake>,
    settings: Settings,
    tasks: Tasks,
}

impl Postgres {
    /// Connects, brings the tables up to date, and starts the tasks that write, read and listen, on this runtime.
    ///
    /// # Errors
    ///
    /// [`Trouble::Unavailable`](mamparo_durable::backend::Trouble::Unavailable) when the server does not answer,
    /// [`Trouble::Refused`](mamparo_durable::backend::Trouble::Refused) when it does not let us in or lacks a right or the encoding
    /// UTF8, [`Trouble::Incompatible`](mamparo_durable::backend::Trouble::Incompatible) when the tables are a newer version's or
    /// another program's.
    pub async fn connect(settings: Settings) -> Result<Self, BackendError> {
        let database = Database::new(&settings);
        schema::prepare(&database, &settings).await?;
        let wake = Arc::new(Wake::new());
        let (desk, jobs) = Desk::new(settings.waiting, settings.acquire_timeout);
        let (loads, wishes) = Loads::new(settings.waiting, settings.acquire_timeout);
        let tasks = Tasks::default();
        let writer = Writer {
            database: database.clone(),
            jobs: Arc::new(Mutex::new(jobs)),
            wake: Arc::clone(&wake),
            clock: Arc::clone(&settings.clock),
        };
        let loader = Loader {
            database: database.clone(),
            wishes: Arc::new(Mutex::new(wishes)),
        };
        for _ in 0..settings.writers {
            let writer = writer.clone();
            tasks.run(move || writer.clone().run());
        }
        for _ in 0..LOADERS {
            let loader = loader.clone();
            tasks.run(move || loader.clone().run());
        }
        listen(&tasks, &settings, &database, &wake);
        let shared = Shared {
            database,
            desk,
            loads,
            wake,
            settings,
            tasks,
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Returns it as the parts that handlers work with, whole steps at once included.
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
        Arc::new(PostgresQueue::new(self.clone(), name))
    }

    /// Ends the tasks and the connections. What is called later, fails.
    pub async fn close(&self) {
        self.shared.tasks.stop();
        self.shared.database.close().await;
    }

    pub(crate) fn database(&self) -> &Database {
        &self.shared.database
    }

    pub(crate) fn desk(&self) -> &Desk {
        &self.shared.desk
    }

    pub(crate) fn loads(&self) -> &Loads {
        &self.shared.loads
    }

    pub(crate) fn wake(&self) -> &Wake {
        &self.shared.wake
    }

    pub(crate) fn now(&self) -> Utc {
        Utc::of(&*self.shared.settings.clock)
    }

    pub(crate) fn poll(&self) -> Duration {
        self.shared.settings.poll
    }

    pub(crate) fn redelivery_limit(&self) -> u32 {
        self.shared.settings.redelivery_limit
    }

    /// Another engine on the same tables.
    #[cfg(test)]
    pub(crate) async fn beside(&self) -> Self {
        Self::connect(self.shared.settings.clone())
            .await
            .expect("a server that runs")
    }

    #[cfg(test)]
    pub(crate) fn schema(&self) -> &str {
        &self.shared.settings.schema
    }

    /// Something was committed to that queue, that is ready now.
    pub(crate) fn published(&self, queue: QueueName) {
        let mut ready = Ready::default();
        ready.at(queue, self.now().millis());
        self.shared.wake.written(&ready);
    }
}

/// Engines on the same tables share a channel.
fn listen(tasks: &Tasks, settings: &Settings, database: &Database, wake: &Arc<Wake>) {
    let channel = format!("mamparo_{}", settings.schema);
    let told = (
        database.clone(),
        Arc::clone(wake),
        Arc::clone(&settings.clock),
        channel.clone(),
    );
    tasks.run(move || {
        let (database, wake, clock, channel) = told.clone();
        tell(database, wake, clock, channel)
    });
    let heard = (options(settings), Arc::clone(wake), channel);
    let connect = settings.acquire_timeout;
    tasks.run(move || {
        let (server, wake, channel) = heard.clone();
        hear(server, channel, connect, move |payload| wake.told(payload))
    });
}
