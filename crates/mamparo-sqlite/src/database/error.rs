//! What went wrong, in the words of stores.

use std::error::Error;
use std::fmt;

use mamparo::idempotency::{StoreError, StoreErrorKind};
use mamparo_core::BoxError;
use rusqlite::ErrorCode;

/// Says what an error of SQLite's is to a store.
pub(crate) fn store_error(error: rusqlite::Error) -> StoreError {
    StoreError::new(kind(&error), error)
}

pub(super) fn kind(error: &rusqlite::Error) -> StoreErrorKind {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreErrorKind::Locked,
        Some(ErrorCode::DiskFull) => StoreErrorKind::Full,
        Some(ErrorCode::NotADatabase) => StoreErrorKind::Incompatible,
        Some(ErrorCode::DatabaseCorrupt) => StoreErrorKind::Corrupt,
        Some(
            ErrorCode::SystemIoFailure
            | ErrorCode::CannotOpen
            | ErrorCode::ReadOnly
            | ErrorCode::PermissionDenied,
        ) => StoreErrorKind::Unavailable,
        _ => StoreErrorKind::Other,
    }
}

/// A transaction was not committed: nothing of it is there.
#[derive(Debug)]
pub struct TransactionError {
    why: Why,
}

#[derive(Debug)]
enum Why {
    /// Another run has taken the key over.
    Lost,
    /// Outside of a transaction there is nothing to be one with.
    NoTransaction,
    /// The store failed, or its file did.
    Store(StoreError),
    /// The handler's own work failed.
    Work(BoxError),
}

impl TransactionError {
    pub(crate) const LOST: Self = Self { why: Why::Lost };

    pub(crate) const NO_TRANSACTION: Self = Self {
        why: Why::NoTransaction,
    };

    /// Says that the work inside failed: everything is rolled back.
    #[must_use]
    pub fn work(error: impl Into<BoxError>) -> Self {
        let why = Why::Work(error.into());
        Self { why }
    }

    /// Tells whether the key was lost to another run: what this one has done must not stand, and its answer is nobody's.
    #[must_use]
    pub const fn is_lost(&self) -> bool {
        matches!(self.why, Why::Lost)
    }

    /// Returns what the store said, where the store failed.
    #[must_use]
    pub const fn store(&self) -> Option<&StoreError> {
        match &self.why {
            Why::Store(error) => Some(error),
            _ => None,
        }
    }
}

impl fmt::Display for TransactionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.why {
            Why::Lost => "another run has taken the idempotency key over: roll back",
            Why::NoTransaction => {
                "this is done inside of a transaction, with what it belongs to: begin one first"
            }
            Why::Store(_) => "the transaction was not committed",
            Why::Work(_) => "the work of the transaction failed, and was rolled back",
        })
    }
}

impl Error for TransactionError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.why {
            Why::Lost | Why::NoTransaction => None,
            Why::Store(error) => Some(error),
            Why::Work(error) => Some(&**error),
        }
    }
}

impl From<StoreError> for TransactionError {
    fn from(error: StoreError) -> Self {
        let why = Why::Store(error);
        Self { why }
    }
}

impl From<rusqlite::Error> for TransactionError {
    fn from(error: rusqlite::Error) -> Self {
        store_error(error).into()
    }
}
