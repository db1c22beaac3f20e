//! What the server's errors mean.

use mamparo::idempotency::{StoreError, StoreErrorKind};
use redis::{ErrorKind, RedisError, ServerErrorKind};

/// What kept the server from a step.
pub(crate) fn fault(error: RedisError) -> StoreError {
    StoreError::new(kind(&error), error)
}

/// The answer of a script that is none of ours.
pub(crate) fn unreadable() -> StoreError {
    StoreError::new(
        StoreErrorKind::Corrupt,
        "a key holds what this program did not write",
    )
}

fn kind(error: &RedisError) -> StoreErrorKind {
    if error.is_timeout() {
        return StoreErrorKind::TimedOut;
    }
    match error.kind() {
        ErrorKind::Io
        | ErrorKind::Server(
            ServerErrorKind::BusyLoading
            | ServerErrorKind::ClusterDown
            | ServerErrorKind::MasterDown
            | ServerErrorKind::ReadOnly
            | ServerErrorKind::TryAgain,
        ) => StoreErrorKind::Unavailable,
        _ => by_words(
            error.code().unwrap_or_default(),
            error.detail().unwrap_or_default(),
        ),
    }
}

/// Servers before 7 put a command's error inside of the script's.
fn by_words(code: &str, detail: &str) -> StoreErrorKind {
    let is = |word: &str| code == word || detail.contains(word);
    if is("WRONGTYPE") {
        StoreErrorKind::Incompatible
    } else if is("OOM") || is("MISCONF") {
        StoreErrorKind::Full
    } else if is("BUSY") {
        StoreErrorKind::Locked
    } else if is("NOREPLICAS") || is("READONLY") || is("LOADING") {
        StoreErrorKind::Unavailable
    } else {
        StoreErrorKind::Other
    }
}
