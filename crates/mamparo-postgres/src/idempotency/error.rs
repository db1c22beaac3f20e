//! What went wrong, in the words of stores of keys.

use std::error::Error;
use std::fmt;

use mamparo::idempotency::{StoreError, StoreErrorKind};
use mamparo_durable::backend::{BackendError, Trouble};

/// Says what an error of the server is to a store of keys.
pub(super) fn store_error(error: sqlx::Error) -> StoreError {
    StoreError::new(kind(&error), error)
}

fn kind(error: &sqlx::Error) -> StoreErrorKind {
    let code = error.as_database_error().and_then(|refusal| refusal.code());
    let Some(code) = code else {
        return match error {
            sqlx::Error::PoolTimedOut => StoreErrorKind::TimedOut,
            sqlx::Error::Decode(_) | sqlx::Error::ColumnDecode { .. } => StoreErrorKind::Corrupt,
            _ => StoreErrorKind::Unavailable,
        };
    };
    match (code.get(..2).unwrap_or_default(), &*code) {
        (_, "53100") => StoreErrorKind::Full,
        (_, "53300") => StoreErrorKind::Overloaded,
        (_, "57014") => StoreErrorKind::TimedOut,
        ("40" | "55", _) => StoreErrorKind::Locked,
        ("42" | "3F", _) => StoreErrorKind::Incompatible,
        ("XX", _) => StoreErrorKind::Corrupt,
        ("08" | "25" | "53" | "57" | "58", _) => StoreErrorKind::Unavailable,
        _ => StoreErrorKind::Other,
    }
}

/// The same of what kept a backend from its start.
pub(super) fn at_the_start(error: BackendError) -> StoreError {
    let kind = match error.trouble() {
        Trouble::Unavailable => StoreErrorKind::Unavailable,
        Trouble::Full => StoreErrorKind::Full,
        Trouble::Incompatible => StoreErrorKind::Incompatible,
        Trouble::Corrupt => StoreErrorKind::Corrupt,
        _ => StoreErrorKind::Other,
    };
    StoreError::new(kind, error)
}

/// A key was not completed in a transaction, which must be rolled back.
///
/// ```
/// use mamparo_postgres::TransactionError;
///
/// fn answer(error: &TransactionError) -> u16 {
///     // Another run of the same request has taken over: this one's answer is nobody's.
///     if error.is_lost() { 409 } else { 503 }
/// }
/// # let _ = answer;
/// ```
#[derive(Debug)]
pub struct TransactionError(Why);

#[derive(Debug)]
enum Why {
    /// Another run has taken the key over.
    Lost,
    Store(StoreError),
}

impl TransactionError {
    pub(super) const LOST: Self = Self(Why::Lost);

    /// Tells whether the key was lost to another run: what this one has done must not stand, and its answer is nobody's.
    #[must_use]
    pub const fn is_lost(&self) -> bool {
        matches!(self.0, Why::Lost)
    }

    /// Returns what the store said, where the store failed.
    #[must_use]
    pub const fn store(&self) -> Option<&StoreError> {
        match &self.0 {
            Why::Lost => None,
            Why::Store(error) => Some(error),
        }
    }
}

impl fmt::Display for TransactionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Why::Lost => "another run has taken the idempotency key over: roll back",
            Why::Store(_) => "the idempotency key was not completed: roll back",
        })
    }
}

impl Error for TransactionError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.store().map(|error| error as _)
    }
}

impl From<sqlx::Error> for TransactionError {
    fn from(error: sqlx::Error) -> Self {
        Self(Why::Store(store_error(error)))
    }
}
