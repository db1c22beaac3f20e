//! What went wrong, in the words of backends.

use mamparo::idempotency::{StoreError, StoreErrorKind};
use mamparo_durable::backend::{BackendError, Trouble};
use rusqlite::Connection;

use crate::database::store_error;

/// What failed, on its way back from the thread where it did.
#[derive(Debug)]
pub(crate) struct Failed(pub(crate) BackendError);

impl Failed {
    pub(crate) fn corrupt(message: String) -> Self {
        Self(BackendError::new(Trouble::Corrupt, message))
    }
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        let (trouble, says) = match error.kind() {
            StoreErrorKind::Full => (
                Trouble::Full,
                "the disk of the SQLite file is full: make room",
            ),
            StoreErrorKind::Locked => (
                Trouble::Unavailable,
                "another process has the SQLite file locked",
            ),
            StoreErrorKind::Incompatible => (
                Trouble::Incompatible,
                "the SQLite file is not this program's",
            ),
            StoreErrorKind::Corrupt => (
                Trouble::Corrupt,
                "the SQLite file is damaged: restore a backup",
            ),
            _ => (
                Trouble::Unavailable,
                "the SQLite file can't be read or written now",
            ),
        };
        let why = std::error::Error::source(&error).map(ToString::to_string);
        let message = why.map_or_else(|| says.to_owned(), |why| format!("{says} ({why})"));
        Self(BackendError::new(trouble, message).from_source(error))
    }
}

impl From<rusqlite::Error> for Failed {
    fn from(error: rusqlite::Error) -> Self {
        store_error(error).into()
    }
}

/// Runs a write of several statements, that changes all or nothing.
///
/// What is not as expected is found before anything is changed. So an error after a change is the disk's or the file's, and gives up
/// what else is in the same commit too: a savepoint for each step, which would keep that apart, costs a copy of every page.
pub(super) fn whole<T>(
    file: &Connection,
    work: impl FnOnce(&Connection) -> Result<T, Failed>,
) -> Result<T, Failed> {
    let before = file.total_changes();
    let result = work(file);
    if result.is_err() && file.total_changes() != before && !file.is_autocommit() {
        // If it fails, the commit that follows does too.
        let _ended = file.execute_batch("ROLLBACK");
    }
    result
}

/// One result for each of `count` that were asked together, where all of it may have failed at once.
pub(super) fn each<T>(
    count: usize,
    results: Result<Vec<Result<T, Failed>>, Failed>,
) -> Vec<Result<T, BackendError>> {
    match results {
        Ok(results) => results
            .into_iter()
            .map(|result| result.map_err(|failed| failed.0))
            .collect(),
        Err(Failed(error)) => (0..count)
            .map(|_| Err(BackendError::new(error.trouble(), error.to_string())))
            .collect(),
    }
}

/// Goes through many, each wholly or not at all: one that fails before it changed anything stops no other.
pub(super) fn one_by_one<T>(
    file: &Connection,
    mut results: impl Iterator<Item = Result<T, Failed>>,
) -> Result<Vec<Result<T, Failed>>, Failed> {
    let mut all = Vec::with_capacity(results.size_hint().0);
    loop {
        let before = file.total_changes();
        match results.next() {
            None => return Ok(all),
            Some(Err(failed)) if file.total_changes() != before => return Err(failed),
            Some(result) => all.push(result),
        }
    }
}
