//! Moving what was committed from the log into the file, beside the thread that writes.
//!
//! SQLite would do it in the commit that makes the log long, and whoever waits for that commit would wait for a thousand pages more. A
//! commit still does what is left once the log is very long, since only then nobody adds to it meanwhile, and it begins anew
//! (<https://sqlite.org/wal.html#ckpt>).

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use mamparo::idempotency::{StoreError, StoreErrorKind};
use rusqlite::Connection;

/// How often the log's length is looked at.
const PAUSE: Duration = Duration::from_millis(100);

/// A log that is longer is moved.
const LONG: u64 = 4 << 20;

/// The pages of a log of which a commit moves what is left: 64 MiB.
pub(super) const VERY_LONG_PAGES: u32 = 16_384;

/// Starts the thread; it ends when what is returned is dropped.
pub(super) fn start(
    connection: Connection,
    log: PathBuf,
) -> Result<SyncSender<Infallible>, StoreError> {
    let (keep, stop) = sync_channel(1);
    let thread = thread::Builder::new().name("mamparo-sqlite-checkpoint".to_owned());
    let started = thread.spawn(move || serve(&connection, log, stop));
    started.map_err(|error| StoreError::new(StoreErrorKind::Other, error))?;
    Ok(keep)
}

#[expect(clippy::needless_pass_by_value, reason = "the thread owns them")]
fn serve(connection: &Connection, log: PathBuf, stop: Receiver<Infallible>) {
    while let Err(RecvTimeoutError::Timeout) = stop.recv_timeout(PAUSE) {
        let length = std::fs::metadata(&log).map_or(0, |log| log.len());
        if length > LONG {
            // Passive: it waits for nobody. What fails is tried again, and in the end by a commit, which says so.
            let moved = connection.pragma_query(None, "wal_checkpoint", |_| Ok(()));
            drop(moved);
        }
    }
}
