//! River's Rust client: `riverqueue URL COUNT SECONDS` puts work off by snoozing; prints figures, see `later.rs`.
//!
//! Set for speed: it looks every 20 ms instead of every second, 5 ms after the look before instead of 100, and its leader makes work
//! available every second instead of every five, for which its interval is how far it looks ahead.

#[path = "../later.rs"]
mod later;

use std::sync::Arc;
use std::time::Duration;

use later::{AT_ONCE, Later, PUT_OFF, Seen, measure};
use riverqueue::jiff::Timestamp;
use riverqueue::migrate::PostgresMigrator;
use riverqueue::sqlx::{self, PgPool};
use riverqueue::{
    BoxError, Client, InsertOpts, Job, JobArgs, MaintenanceConfig, QueueConfig, RunHandle,
    WorkOutcome, Workers,
};
use serde::{Deserialize, Serialize};

const TOGETHER: usize = 1_000;

#[derive(Clone, Debug, Deserialize, JobArgs, Serialize)]
#[river(kind = "work")]
struct Work {
    due: i64,
}

struct River {
    pool: PgPool,
    client: Client,
    running: Option<RunHandle>,
}

impl Later for River {
    fn now(&self) -> i64 {
        Timestamp::now().as_millisecond()
    }

    async fn put(&self, due: &[i64]) {
        for part in due.chunks(TOGETHER) {
            let work = part.iter().map(|&due| {
                let at = Timestamp::from_millisecond(due).unwrap();
                let opts = InsertOpts::default();
                let opts = if due == 0 {
                    opts
                } else {
                    opts.with_scheduled_at(at)
                };
                (Work { due }, opts)
            });
            self.client.insert_many(work).await.unwrap();
        }
    }

    async fn start(&mut self) {
        self.running = Some(self.client.start().unwrap());
    }

    async fn put_off(&self) -> u64 {
        let sql = "SELECT count(*) FROM river_job WHERE state = 'scheduled'";
        let count: i64 = sqlx::query_scalar(sql).fetch_one(&self.pool).await.unwrap();
        count as u64
    }
}

#[tokio::main(worker_threads = 2)]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let pool = PgPool::connect(&arguments[1]).await.unwrap();
    PostgresMigrator::new(pool.clone())
        .migrate_up()
        .await
        .unwrap();
    let seen = Arc::new(Seen::default());
    let mut workers = Workers::new();
    let given = Arc::clone(&seen);
    workers
        .add_fn(move |_, job: Job<Work>| {
            let put_off = given.refuses(job.args.due, Timestamp::now().as_millisecond());
            let outcome = if put_off {
                WorkOutcome::Snooze(PUT_OFF)
            } else {
                WorkOutcome::Complete
            };
            async move { Ok::<_, BoxError>(outcome) }
        })
        .unwrap();
    let queue = QueueConfig::new(AT_ONCE)
        .with_fetch_cooldown(Duration::from_millis(5))
        .with_fetch_poll_interval(Duration::from_millis(20));
    let client = Client::builder(pool.clone())
        .workers(workers)
        .queue("default", queue)
        .maintenance(MaintenanceConfig::default().with_scheduler_interval(Duration::from_secs(1)))
        .build()
        .unwrap();
    let mut river = River {
        pool,
        client,
        running: None,
    };
    let (count, seconds) = (arguments[2].parse().unwrap(), arguments[3].parse().unwrap());
    measure(&mut river, &seen, count, seconds).await;
}
