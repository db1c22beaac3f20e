//! What is in a file, and how it came there.

use mamparo::idempotency::{StoreError, StoreErrorKind};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

use super::error::{kind, store_error};

/// Which parts are in the file, each with the number of the last step that was taken.
const VERSIONS: &str = "CREATE TABLE IF NOT EXISTS mamparo_schema (
    part TEXT PRIMARY KEY,
    version INTEGER NOT NULL
) STRICT, WITHOUT ROWID";

/// What one part of this crate keeps in a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// Its name, which is that of its first table too.
    pub(crate) name: &'static str,
    /// The steps to the newest schema, in order. A step that was released is never changed.
    pub(crate) steps: &'static [&'static str],
}

impl Part {
    /// Brings the part up to date, in one transaction.
    ///
    /// # Errors
    ///
    /// Refuses a file with a newer schema, and one in which another program has a table of this name.
    pub(super) fn migrate(&self, connection: &mut Connection) -> Result<(), StoreError> {
        // At once for writing, so that of several processes that start together one does it.
        let begun = connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let tx = begun.map_err(store_error)?;
        let version = self.version(&tx)?;
        let newest = self.steps.len();
        let taken = usize::try_from(version).unwrap_or(usize::MAX);
        let Some(steps) = self.steps.get(taken..) else {
            return Err(incompatible(format!(
                "{} has version {version}, and this program knows {newest}",
                self.name
            )));
        };
        for step in steps {
            tx.execute_batch(step).map_err(|error| match kind(&error) {
                // One of its tables is there already.
                StoreErrorKind::Other => incompatible(error.to_string()),
                _ => store_error(error),
            })?;
        }
        let written = tx.execute(
            "INSERT INTO mamparo_schema (part, version) VALUES (?1, ?2)
             ON CONFLICT (part) DO UPDATE SET version = excluded.version",
            (self.name, newest as u32),
        );
        written.map_err(store_error)?;
        tx.commit().map_err(store_error)
    }

    fn version(&self, connection: &Connection) -> Result<u32, StoreError> {
        connection.execute_batch(VERSIONS).map_err(store_error)?;
        let asked = connection.query_row(
            "SELECT version FROM mamparo_schema WHERE part = ?1",
            [self.name],
            |row| row.get(0),
        );
        // A table of that name with other columns is another program's.
        let asked = asked
            .optional()
            .map_err(|error| incompatible(error.to_string()));
        if let Some(version) = asked? {
            return Ok(version);
        }
        let there: bool = connection
            .query_row(
                "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = ?1)",
                [self.name],
                |row| row.get(0),
            )
            .map_err(store_error)?;
        if there {
            let name = self.name;
            return Err(incompatible(format!("another program has a table {name}")));
        }
        Ok(0)
    }
}

fn incompatible(why: String) -> StoreError {
    StoreError::new(StoreErrorKind::Incompatible, why)
}
