//! apalis with its PostgreSQL or SQLite storage: `apalis URL COUNT SECONDS`; prints figures, see `later.rs`.
//!
//! What a worker tells to be retried later is not kept for later (the duration of its `RetryAfterError` is read nowhere), so that
//! a worker stores a task for later, and is done. Set for speed: it looks every 10 ms, for 512 at once, and SQLite has one
//! connection, so that nobody waits for a lock. SQLite is durable as ours is; its own setup would have `synchronous=OFF`.

#[path = "../later.rs"]
mod later;

use std::str::FromStr as _;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use apalis::prelude::*;
use apalis_postgres::PostgresStorage;
use apalis_sqlite::SqliteStorage;
use later::{AT_ONCE, Later, PUT_OFF, Seen, measure};
use sqlx::postgres::PgPoolOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use tokio::runtime::Handle;
use tokio::time::{Interval, MissedTickBehavior};

const QUEUE: &str = "work";
const LOOK: Duration = Duration::from_millis(10);

fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(now.as_millis()).unwrap()
}

/// It keeps whole seconds; what is due within one is due at its end, for nothing to be early.
fn task(due: i64) -> Task<i64> {
    let task = TaskBuilder::new(due);
    match due {
        0 => task.build(),
        _ => task.run_at_timestamp((due as u64).div_ceil(1_000)).build(),
    }
}

/// Looks often. apalis's own strategy of an interval forgets to wake when a look takes longer than its interval.
struct Often(Interval);

impl PollStrategy for Often {
    fn poll_drive(&mut self, context: &mut Context<'_>, _: &PollSnapshot) -> Poll<Option<()>> {
        // Until it is pending, which is when it will wake.
        while self.0.poll_tick(context).is_ready() {}
        Poll::Ready(Some(()))
    }
}

fn often() -> Often {
    let mut interval = tokio::time::interval(LOOK);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    Often(interval)
}

fn for_later() -> Task<i64> {
    TaskBuilder::new(1_i64).run_after(PUT_OFF).build()
}

/// The same for each storage, whose types have nothing in common to write it once.
macro_rules! system {
    ($name:ident, $storage:ident, $pool:ty, $config:path, $done:literal) => {
        struct $name {
            pool: $pool,
            seen: Arc<Seen>,
        }

        impl $name {
            fn storage(&self) -> $storage<i64> {
                let config = <$config>::default().queue(QUEUE).batch_size(AT_ONCE);
                $storage::new(&self.pool).with_config(config)
            }
        }

        impl Later for $name {
            fn now(&self) -> i64 {
                now()
            }

            async fn put(&self, due: &[i64]) {
                let mut storage = self.storage();
                for part in due.chunks(AT_ONCE) {
                    let tasks: Vec<_> = part.iter().map(|&due| task(due)).collect();
                    let mut tasks = futures::stream::iter(tasks);
                    storage.push_all(&mut tasks).await.unwrap();
                }
            }

            async fn start(&mut self) {
                let backend = self.storage();
                let (seen, later) = (Arc::clone(&self.seen), self.storage());
                let work = move |due: i64| {
                    let put_off = seen.refuses(due, now());
                    let mut later = later.clone();
                    async move {
                        if put_off {
                            later.push_task(for_later()).await?;
                        }
                        Ok::<_, BoxDynError>(())
                    }
                };
                let worker = WorkerBuilder::new("worker")
                    .backend(backend.poll_with_strategy(often()))
                    .parallelize(tokio::spawn)
                    .build(work);
                // Its future is too general for the compiler to see that it may be spawned.
                let runtime = Handle::current();
                thread::spawn(move || runtime.block_on(worker.run()).unwrap());
            }

            async fn put_off(&self) -> u64 {
                let count: i64 = sqlx::query_scalar($done)
                    .fetch_one(&self.pool)
                    .await
                    .unwrap();
                count as u64
            }
        }
    };
}

system!(
    Postgres,
    PostgresStorage,
    sqlx::PgPool,
    apalis_postgres::Config,
    "SELECT count(*) FROM apalis.jobs WHERE status = 'Done'"
);
system!(
    Sqlite,
    SqliteStorage,
    sqlx::SqlitePool,
    apalis_sqlite::Config,
    "SELECT count(*) FROM Jobs WHERE status = 'Done'"
);

#[tokio::main(worker_threads = 2)]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let (url, seen) = (&arguments[1], Arc::new(Seen::default()));
    let (count, seconds) = (arguments[2].parse().unwrap(), arguments[3].parse().unwrap());
    if url.starts_with("postgres:") {
        let pool = PgPoolOptions::new()
            .max_connections(16)
            .connect(url)
            .await
            .unwrap();
        PostgresStorage::setup(&pool).await.unwrap();
        let mut system = Postgres {
            pool,
            seen: Arc::clone(&seen),
        };
        measure(&mut system, &seen, count, seconds).await;
    } else {
        let options = SqliteConnectOptions::from_str(url).unwrap();
        let options = options
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full);
        let pool = SqlitePoolOptions::new()
            .max_connections(1)
            .connect_with(options);
        let pool = pool.await.unwrap();
        SqliteStorage::migrations().run(&pool).await.unwrap();
        let mut system = Sqlite {
            pool,
            seen: Arc::clone(&seen),
        };
        measure(&mut system, &seen, count, seconds).await;
    }
}
