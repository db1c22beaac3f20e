//! A file in a folder of its own, and a clock that is turned by hand.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use mamparo_core::clock::WallClock;
use mamparo_durable::backend::{Backend, Delivery, NewTransaction, QueueName, Step};
use mamparo_durable::handler::{Runner, plan};
use mamparo_durable::machine::{
    Answer, Context, Input, Outcome, Record, Reply, Run, TransactionId, Utc,
};
use mamparo_durable::policy::Policy;
use tempfile::TempDir;

use crate::durable::{SqliteDurable, SqliteDurableBuilder};

/// As long as a lease lasts here.
pub(super) const LEASE: Duration = Duration::from_secs(30);

#[derive(Clone, Debug)]
pub(super) struct Hands(Arc<AtomicI64>);

impl Hands {
    pub(super) fn turn(&self, by: Duration) {
        self.0.fetch_add(by.as_millis() as i64, Ordering::Relaxed);
    }

    pub(super) fn back(&self, by: Duration) {
        self.0.fetch_sub(by.as_millis() as i64, Ordering::Relaxed);
    }

    pub(super) fn now(&self) -> Utc {
        Utc::from_millis(self.0.load(Ordering::Relaxed)).unwrap()
    }
}

impl WallClock for Hands {
    fn now(&self) -> SystemTime {
        Self::now(self).to_system_time()
    }
}

pub(super) struct Disk {
    pub(super) folder: TempDir,
    pub(super) hands: Hands,
}

impl Disk {
    pub(super) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            hands: Hands(Arc::new(AtomicI64::new(1_700_000_000_000))),
        }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join("engine.db")
    }

    pub(super) fn builder(&self) -> SqliteDurableBuilder {
        SqliteDurable::builder(self.path())
            .wall_clock(self.hands.clone())
            .busy_timeout(Duration::from_millis(50))
    }

    pub(super) fn open(&self) -> Backend {
        self.builder().open().unwrap().backend()
    }

    pub(super) fn raw(&self) -> rusqlite::Connection {
        let raw = rusqlite::Connection::open(self.path()).unwrap();
        raw.busy_timeout(Duration::from_secs(5)).unwrap();
        raw
    }

    pub(super) fn runner(&self, backend: &Backend) -> Runner {
        Runner::builder(backend.clone())
            .wall_clock(self.hands.clone())
            .build()
    }
}

pub(super) fn id(name: &str) -> TransactionId {
    TransactionId::new(name).unwrap()
}

pub(super) fn refused(attempt: u32) -> Input {
    Input::Answer(Answer::new(attempt, 0, Outcome::Refused).with_reason("CANCELLED"))
}

pub(super) fn new(runner: &Runner, name: &str) -> NewTransaction {
    let mut terms = runner.terms(id(name), "payment", Some("acme".into()));
    terms.dependency = Some("psp".into());
    terms.trace = Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into());
    NewTransaction::new(Record::in_flight(terms), format!("pay {name}")).unwrap()
}

pub(super) async fn begin(runner: &Runner, name: &str) {
    runner.begin(new(runner, name), None).await.unwrap();
}

/// Begins it, and lets its original be refused.
pub(super) async fn defer(runner: &Runner, name: &str) {
    runner
        .begin(new(runner, name), Some(refused(1)))
        .await
        .unwrap();
}

pub(super) async fn take(backend: &Backend, queue: QueueName) -> Vec<Delivery> {
    backend.queue(queue).take(100, LEASE).await.unwrap()
}

/// The step that this input leads to, as a handler with an outbox makes it.
pub(super) fn step(record: &Record, input: Input, now: Utc) -> Step {
    let policy = Policy::default();
    let context = Context::new(now, 0.0, &policy);
    let mut run = Run::new(input);
    let loaded = Reply::Loaded(Some(record.progress.clone()));
    run.reply(loaded, &record.terms, &context);
    plan(run, &record.terms, &context).step
}
