//! A copy of the file while it is in use.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::thread;

use mamparo_durable::backend::{BackendError, Trouble};
use rusqlite::{Connection, OpenFlags};
use tokio::sync::oneshot;

use super::SqliteDurable;
use super::error::Failed;

impl SqliteDurable {
    /// Copies the file as it is at this moment to a new one, and waits until that is on its disk. Work goes on meanwhile.
    ///
    /// The copy has no unused pages. To restore it, stop all that use the file, remove `FILE-wal` and `FILE-shm`, and put the copy
    /// in its place.
    ///
    /// # Errors
    ///
    /// [`Trouble::Refused`] when there is a file of that name; else the disk's.
    pub async fn back_up(&self, to: impl AsRef<Path>) -> Result<(), BackendError> {
        let (from, to) = (self.path().to_owned(), to.as_ref().to_owned());
        let (reply, answer) = oneshot::channel();
        let thread = thread::Builder::new().name("mamparo-backup".to_owned());
        let started = thread.spawn(move || {
            // Whoever asked may be gone.
            let _gone = reply.send(copy(&from, &to));
        });
        let broke = || BackendError::new(Trouble::Unavailable, "the backup broke off");
        started.map_err(|error| broke().from_source(error))?;
        answer.await.unwrap_or_else(|_| Err(broke()))
    }
}

fn copy(from: &Path, to: &PathBuf) -> Result<(), BackendError> {
    if to.exists() {
        let there = format!(
            "{} is there: name a file that is not, for a backup",
            to.display()
        );
        return Err(BackendError::new(Trouble::Refused, there));
    }
    let vacuum = || {
        let file = Connection::open_with_flags(from, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        file.execute("VACUUM INTO ?1", [to.to_string_lossy()])
    };
    vacuum().map_err(|error| Failed::from(error).0)?;
    // SQLite leaves that to the system.
    let synced = File::open(to).and_then(|copy| copy.sync_all());
    synced.map_err(|error| {
        let message = format!("the backup {} is not on its disk: {error}", to.display());
        BackendError::new(Trouble::Unavailable, message)
    })
}
