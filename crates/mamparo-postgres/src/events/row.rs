//! A row, read.

use mamparo_core::InvalidSetting;
use mamparo_durable::events::{ClaimedEvent, Event, ParkedEvent};
use mamparo_durable::machine::{Label, Utc};
use sqlx::postgres::PgRow;
use sqlx::{Error, Row as _};

/// A row that makes no sense is told, and stops no other.
pub(super) fn claimed(row: &PgRow) -> Result<ClaimedEvent, Error> {
    let failures: i64 = row.try_get(1)?;
    Ok(ClaimedEvent {
        number: row.try_get(0)?,
        key: row.try_get(4)?,
        failures: u32::try_from(failures).unwrap_or(u32::MAX),
        event: event(row)?.map_err(|error| Label::from(format!("it can't be read: {error}"))),
    })
}

pub(super) fn parked(row: &PgRow) -> Result<ParkedEvent, Error> {
    let ClaimedEvent { number, event, .. } = claimed(row)?;
    let reason: String = row.try_get(9)?;
    Ok(ParkedEvent {
        number,
        reason: reason.into(),
        parked_at: Utc::from_millis(row.try_get(10)?).unwrap_or(Utc::MIN),
        event,
    })
}

fn event(row: &PgRow) -> Result<Result<Event, InvalidSetting>, Error> {
    let created_at: i64 = row.try_get(2)?;
    let (id, key): (String, Option<String>) = (row.try_get(3)?, row.try_get(4)?);
    let (destination, routing_key): (String, String) = (row.try_get(5)?, row.try_get(6)?);
    let (head, payload): (String, Vec<u8>) = (row.try_get(7)?, row.try_get(8)?);
    let build = || {
        let created_at = Utc::from_millis(created_at)?;
        let event = Event::builder(id).to(destination, routing_key);
        let event = event.head(&head)?.payload(payload).created_at(created_at);
        match key {
            Some(key) => event.key(key).build(),
            None => event.build(),
        }
    };
    Ok(build())
}
