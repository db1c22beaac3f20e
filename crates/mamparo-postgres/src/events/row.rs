//! A row, read.

use mamparo_durable::events::{ClaimedEvent, ParkedEvent, StoredEvent};
use mamparo_durable::machine::Utc;
use sqlx::postgres::PgRow;
use sqlx::{Error, Row as _};

/// A row that makes no sense is told, and stops no other.
pub(super) fn claimed(row: &PgRow) -> Result<ClaimedEvent, Error> {
    let failures: i64 = row.try_get(1)?;
    Ok(ClaimedEvent {
        number: row.try_get(0)?,
        key: row.try_get(4)?,
        failures: u32::try_from(failures).unwrap_or(u32::MAX),
        event: event(row)?.read(),
    })
}

pub(super) fn parked(row: &PgRow) -> Result<ParkedEvent, Error> {
    let ClaimedEvent {
        number,
        failures,
        event,
        ..
    } = claimed(row)?;
    let reason: String = row.try_get(9)?;
    Ok(ParkedEvent {
        number,
        reason: reason.into(),
        parked_at: Utc::from_millis(row.try_get(10)?).unwrap_or(Utc::MIN),
        failures,
        event,
    })
}

fn event(row: &PgRow) -> Result<StoredEvent, Error> {
    Ok(StoredEvent {
        created_at: row.try_get(2)?,
        id: row.try_get(3)?,
        key: row.try_get(4)?,
        destination: row.try_get(5)?,
        routing_key: row.try_get(6)?,
        head: row.try_get(7)?,
        payload: row.try_get(8)?,
    })
}
