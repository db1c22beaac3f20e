//! Gathers jobs and has them written together.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mamparo_core::clock::WallClock;
use mamparo_durable::machine::{TransactionId, Utc};
use tokio::sync::{Mutex, mpsc};

use super::batch::{self, Written};
use super::job::{Job, Wanted};
use crate::database::{Database, is_conflict, is_lost, is_of_a_row, shared_trouble};
use crate::wake::Wake;

/// As many jobs as share a transaction: past this a commit is a small part of their cost.
const MAX_JOBS: usize = 1_000;

/// And as many bytes of requests.
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// As often as a transaction is repeated that others got in the way of.
const MAX_CONFLICTS: u32 = 8;

/// The wait before it is repeated: that times the number of the conflict, at random up to twice.
const CONFLICT_WAIT: Duration = Duration::from_millis(2);

/// As often as another connection is tried at once when one turns out to be lost.
const MAX_LOST: u32 = 2;

/// After so many batches the counts are summed up.
const SUM_UP_EVERY: u32 = 256;

/// One of the few tasks that write.
#[derive(Clone, Debug)]
pub(crate) struct Writer {
    pub(crate) database: Database,
    /// Whoever gathers holds it.
    pub(crate) jobs: Arc<Mutex<mpsc::Receiver<Job>>>,
    pub(crate) wake: Arc<Wake>,
    pub(crate) clock: Arc<dyn WallClock>,
}

impl Writer {
    /// Writes until nobody wants anything any more.
    pub(crate) async fn run(self) {
        let mut next_time = VecDeque::new();
        let mut batches = 0_u32;
        loop {
            let jobs = self.gather(&mut next_time).await;
            if jobs.is_empty() {
                return;
            }
            self.write(jobs).await;
            batches = batches.wrapping_add(1);
            if batches.is_multiple_of(SUM_UP_EVERY) {
                // The next time does as well.
                drop(
                    self.database
                        .with(|connection| Box::pin(batch::sum_up(connection)))
                        .await,
                );
            }
        }
    }

    /// Takes what is there, at least one job. What must not share a batch is left for the next time.
    async fn gather(&self, next_time: &mut VecDeque<Job>) -> Vec<Job> {
        let mut gathered = Gathered::default();
        for job in std::mem::take(next_time) {
            gathered.add(job, next_time);
        }
        let mut jobs = if gathered.jobs.is_empty() {
            let mut jobs = self.jobs.lock().await;
            match jobs.recv().await {
                Some(job) => gathered.add(job, next_time),
                None => return Vec::new(),
            }
            jobs
        } else if let Ok(jobs) = self.jobs.try_lock() {
            jobs
        } else {
            // Another writer waits there, for the next that comes.
            return gathered.jobs;
        };
        while gathered.has_room() && next_time.len() < MAX_JOBS {
            match jobs.try_recv() {
                Ok(job) => gathered.add(job, next_time),
                Err(_) => break,
            }
        }
        gathered.jobs
    }

    /// Writes jobs in one transaction. If the server refuses one of the rows, the halves are written by themselves, and so on.
    async fn write(&self, jobs: Vec<Job>) {
        let mut parts = vec![jobs];
        while let Some(mut jobs) = parts.pop() {
            // One order for all: by id. Rows are locked in it.
            jobs.sort_by(|one, other| one.wanted.key().cmp(&other.wanted.key()));
            let (wanted, replies): (Vec<Wanted>, Vec<_>) =
                jobs.into_iter().map(|job| (job.wanted, job.reply)).unzip();
            let wanted = Arc::new(wanted);
            match self.transact(&wanted).await {
                Ok(written) => {
                    self.wake.written(&written.ready);
                    for (reply, done) in replies.into_iter().zip(written.done) {
                        // Whoever does not wait any more asks again.
                        drop(reply.send(done));
                    }
                }
                Err(error) if is_of_a_row(&error) && replies.len() > 1 => {
                    let wanted = Arc::into_inner(wanted).unwrap_or_default();
                    let jobs = wanted.into_iter().zip(replies);
                    let mut jobs: Vec<Job> =
                        jobs.map(|(wanted, reply)| Job { wanted, reply }).collect();
                    parts.push(jobs.split_off(jobs.len() / 2));
                    parts.push(jobs);
                }
                Err(error) => {
                    let error = Arc::new(error);
                    for reply in replies {
                        drop(reply.send(Err(shared_trouble(&error))));
                    }
                }
            }
        }
    }

    async fn transact(&self, wanted: &Arc<Vec<Wanted>>) -> Result<Written, sqlx::Error> {
        let (mut conflicts, mut lost) = (0, 0);
        loop {
            let now = Utc::of(&*self.clock);
            let wanted = Arc::clone(wanted);
            let committing = Arc::new(AtomicBool::new(false));
            let committed = Arc::clone(&committing);
            let done = self.database.raw(move |connection| {
                Box::pin(batch::execute(connection, wanted, now, committed))
            });
            match done.await {
                Err(error) if is_conflict(&error) && conflicts < MAX_CONFLICTS => {
                    conflicts += 1;
                    let wait = CONFLICT_WAIT * conflicts;
                    tokio::time::sleep(wait.mul_f64(1.0 + fastrand::f64())).await;
                }
                // A connection from before a restart: nothing was done on it.
                Err(error)
                    if is_lost(&error)
                        && !committing.load(Ordering::Relaxed)
                        && lost < MAX_LOST =>
                {
                    lost += 1;
                }
                done => return done,
            }
        }
    }
}

/// A batch that is being gathered.
#[derive(Default)]
struct Gathered {
    jobs: Vec<Job>,
    keys: HashSet<TransactionId>,
    bytes: usize,
}

impl Gathered {
    fn has_room(&self) -> bool {
        self.jobs.len() < MAX_JOBS && self.bytes < MAX_BYTES
    }

    fn add(&mut self, job: Job, next_time: &mut VecDeque<Job>) {
        let alone = job
            .wanted
            .key()
            .is_none_or(|key| self.keys.insert(key.clone()));
        if alone && self.has_room() {
            self.bytes += job.wanted.bytes();
            self.jobs.push(job);
        } else {
            next_time.push_back(job);
        }
    }
}
