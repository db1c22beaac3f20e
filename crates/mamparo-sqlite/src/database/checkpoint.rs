//! Moving what was committed from the log into the file, beside the thread that writes.
//!
//! SQLite would do it in the commit that makes the log long, and whoever waits for that commit would wait for all those pages, and for the
//! disk to have them. A thread does it instead, again and again until little is left. That little is moved between two commits, by
//! the thread that writes: only when all is moved and nobody adds to it, the log begins anew (<https://sqlite.org/wal.html#ckpt>).

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use mamparo::idempotency::{StoreError, StoreErrorKind};
use mamparo_core::clock;
use rusqlite::Connection;

/// How often the log's length is looked at.
const PAUSE: Duration = Duration::from_millis(100);

/// A log that is longer is moved.
const LONG: u64 = 4 << 20;

/// The pages of a log that is to begin anew: 32 MiB.
const ANEW_PAGES: i64 = 8_192;

/// The pages of a log of which a commit moves what is left, whoever waits: 64 MiB.
pub(super) const VERY_LONG_PAGES: u32 = 16_384;

/// A pass that moves no more pages and takes no longer leaves little: what came in meanwhile.
const LITTLE: (i64, Duration) = (256, Duration::from_millis(8));

/// The most passes in a row.
const MAX_PASSES: usize = 8;

/// Asks the thread that writes to move what is left.
#[derive(Clone, Debug, Default)]
pub(super) struct Rest {
    asked: Arc<AtomicBool>,
}

impl Rest {
    pub(super) fn ask(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Moves it, if that was asked for; called by the thread that writes, after a commit. Where somebody still reads what is older, it is
    /// left to the next commit.
    pub(super) fn settle(&self, connection: &Connection) {
        if self.asked.load(Ordering::Relaxed) {
            let all = pass(connection).is_ok_and(|pass| pass.all());
            self.asked.store(!all, Ordering::Relaxed);
        }
    }
}

/// Starts the thread; it ends when what is returned is dropped.
pub(super) fn start(
    connection: Connection,
    log: PathBuf,
    rest: Rest,
) -> Result<SyncSender<Infallible>, StoreError> {
    let (keep, stop) = sync_channel(1);
    let thread = thread::Builder::new().name("mamparo-log".to_owned());
    let started = thread.spawn(move || serve(&connection, log, &rest, stop));
    started.map_err(|error| StoreError::new(StoreErrorKind::Other, error))?;
    Ok(keep)
}

#[expect(clippy::needless_pass_by_value, reason = "the thread owns them")]
fn serve(connection: &Connection, log: PathBuf, rest: &Rest, stop: Receiver<Infallible>) {
    let mut seen = 0;
    while let Err(RecvTimeoutError::Timeout) = stop.recv_timeout(PAUSE) {
        let length = std::fs::metadata(&log).map_or(0, |log| log.len());
        if length > LONG {
            // What fails is tried again, and in the end by a commit, which says so.
            seen = catch_up(connection, seen).unwrap_or_default();
            if seen > ANEW_PAGES {
                rest.ask();
            }
        }
    }
}

/// Moves pages until little is left, and says how many the log has; it had `seen` after the last pass before.
fn catch_up(connection: &Connection, mut seen: i64) -> rusqlite::Result<i64> {
    for _ in 0..MAX_PASSES {
        let begun = clock::now();
        let Pass { log, .. } = pass(connection)?;
        let (came, took) = (log - seen, begun.elapsed());
        seen = log;
        if came <= LITTLE.0 && took <= LITTLE.1 {
            break;
        }
    }
    Ok(seen)
}

/// The pages that the log had when it was looked at, and how many of them are moved.
struct Pass {
    busy: bool,
    log: i64,
    moved: i64,
}

impl Pass {
    const fn all(&self) -> bool {
        !self.busy && self.log == self.moved
    }
}

/// Moves pages; passive, it waits for nobody.
fn pass(connection: &Connection) -> rusqlite::Result<Pass> {
    let checkpoint = "PRAGMA wal_checkpoint(PASSIVE)";
    connection.query_row(checkpoint, [], |row| {
        Ok(Pass {
            busy: row.get(0)?,
            log: row.get(1)?,
            moved: row.get(2)?,
        })
    })
}
