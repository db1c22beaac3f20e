//! What an error of the server means to whoever asked.

use std::sync::Arc;

use mamparo_durable::backend::{BackendError, Trouble};
use sqlx::error::DatabaseError;

/// Says what went wrong, and whether it is worth asking again.
pub(crate) fn trouble(error: sqlx::Error) -> BackendError {
    describe(&error).from_source(error)
}

/// The same for each of those that an error stopped.
pub(crate) fn shared_trouble(error: &Arc<sqlx::Error>) -> BackendError {
    describe(error).from_source(Arc::clone(error))
}

fn describe(error: &sqlx::Error) -> BackendError {
    let (trouble, message) = match error {
        sqlx::Error::Database(refusal) => refused(&**refusal),
        sqlx::Error::Decode(_) | sqlx::Error::ColumnDecode { .. } => (
            Trouble::Corrupt,
            format!("PostgreSQL stores what can't be read: {error}"),
        ),
        sqlx::Error::Configuration(_) | sqlx::Error::Tls(_) => (
            Trouble::Refused,
            format!("PostgreSQL can't be reached as it is set up: {error}"),
        ),
        sqlx::Error::PoolClosed => return stopped(),
        sqlx::Error::PoolTimedOut => (
            Trouble::Unavailable,
            "PostgreSQL does not answer in time".to_owned(),
        ),
        sqlx::Error::Io(error) => (
            Trouble::Unavailable,
            format!("PostgreSQL does not answer: {error}"),
        ),
        _ => (
            Trouble::Unavailable,
            format!("PostgreSQL does not answer: {error}"),
        ),
    };
    BackendError::new(trouble, message)
}

fn refused(refusal: &dyn DatabaseError) -> (Trouble, String) {
    let code = refusal.code().unwrap_or_default();
    let said = refusal.message();
    match (code.get(..2).unwrap_or_default(), &*code) {
        (_, "53100") => (Trouble::Full, format!("PostgreSQL has no room: {said}")),
        // Roles, databases, tables and columns that it lacks, or that we may not use.
        ("28" | "3D", _) | (_, "42501") => (
            Trouble::Refused,
            format!("PostgreSQL refuses us ({code}): {said}"),
        ),
        ("42" | "3F", _) => {
            let message = format!("the tables in PostgreSQL are not ours ({code}): {said}");
            (Trouble::Incompatible, message)
        }
        ("XX", _) => (
            Trouble::Corrupt,
            format!("PostgreSQL can't read what it stores ({code}): {said}"),
        ),
        ("22" | "23" | "54", _) => (
            Trouble::Refused,
            format!("PostgreSQL refuses a row ({code}): {said}"),
        ),
        _ => {
            let message = format!("PostgreSQL could not do it ({code}): {said}");
            (Trouble::Unavailable, message)
        }
    }
}

/// Whether it is about what was written, so that others of the batch are innocent.
pub(crate) fn is_of_a_row(error: &sqlx::Error) -> bool {
    class(error).is_some_and(|class| matches!(&*class, "22" | "23" | "54" | "P0" | "XX"))
}

/// Whether two transactions were in each other's way, and the same may succeed now: 40001, 40P01.
pub(crate) fn is_conflict(error: &sqlx::Error) -> bool {
    class(error).is_some_and(|class| class == "40")
}

/// Whether the connection was lost, as those are that were open before a restart.
pub(crate) fn is_lost(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(DatabaseError::code);
    matches!(error, sqlx::Error::Io(_)) || matches!(code.as_deref(), Some("57P01" | "57P02"))
}

/// Whether the server is still there, and the connection good for more.
pub(super) fn keeps_connection(error: &sqlx::Error) -> bool {
    // 57: it is shutting down, 25: it became a standby, 08: the connection.
    class(error).is_some_and(|class| !matches!(&*class, "57" | "25" | "08"))
        || matches!(error, sqlx::Error::RowNotFound)
}

fn class(error: &sqlx::Error) -> Option<String> {
    let code = error.as_database_error()?.code()?;
    code.get(..2).map(str::to_owned)
}

/// What is stored can't be read, or is not what a backend stores.
pub(crate) fn corrupt(what: impl Into<String>) -> BackendError {
    BackendError::new(Trouble::Corrupt, what)
}

/// The tables are of another program, or a newer version's.
pub(crate) fn incompatible(what: impl Into<String>) -> BackendError {
    BackendError::new(Trouble::Incompatible, what)
}

/// Nobody is there to do it any more.
pub(crate) fn stopped() -> BackendError {
    BackendError::new(
        Trouble::Unavailable,
        "the backend was closed; connect again",
    )
}
