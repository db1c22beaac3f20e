//! Taking events, and storing what became of them. Called on the thread that writes.

use std::time::Duration;

use mamparo_durable::events::{
    ClaimId, Claimed, ClaimedEvent, ParkedEvent, Settlement, StoredEvent,
};
use mamparo_durable::machine::{Label, Utc};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

/// As many of one key as one claim takes, besides the first: they leave one after the other.
const OF_ONE_KEY: i64 = 32;

/// As many rows are looked at in their order, for each that is asked for. Where most of them wait, as behind the first of a key that has a
/// million, the rest is found key by key.
const LOOKED_AT: usize = 4;

/// The last of the rows that are looked at in their order, if there are more.
const HORIZON: &str =
    "SELECT number FROM mamparo_events WHERE parked_at IS NULL ORDER BY number LIMIT 1 OFFSET ?1";

/// The first of its key, or of none, that nothing keeps. What is before it of its key would be published first.
const HEADS: &str =
    "SELECT number, key FROM mamparo_events e WHERE ready_at <= ?1 AND parked_at IS NULL AND number <= ?3
    AND NOT EXISTS (SELECT 1 FROM mamparo_events b WHERE b.key = e.key AND b.number < e.number)
    ORDER BY number LIMIT ?2";

/// Those of no key, behind the horizon.
const KEYLESS: &str = "SELECT number FROM mamparo_events
    WHERE key IS NULL AND parked_at IS NULL AND ready_at <= ?1 AND number > ?3 ORDER BY number LIMIT ?2";

/// The next key, its first row, and whether nothing keeps that.
const NEXT_KEY: &str =
    "SELECT key, number, ready_at <= ?2 AND parked_at IS NULL FROM mamparo_events
    WHERE key > ?1 ORDER BY key, number LIMIT 1";

const FOLLOWERS: &str = "SELECT number, ready_at <= ?3 AND parked_at IS NULL FROM mamparo_events
    WHERE key = ?1 AND number > ?2 ORDER BY number LIMIT ?4";

/// What is asked, for the tests that ask how it is planned.
#[cfg(test)]
pub(super) const STATEMENTS: [&str; 5] = [HORIZON, HEADS, KEYLESS, NEXT_KEY, FOLLOWERS];

const COLUMNS: &str =
    "number, failures, created_at, id, key, destination, routing_key, head, payload";

pub(super) fn claim(
    file: &Connection,
    now: Utc,
    limit: usize,
    lease: Duration,
) -> rusqlite::Result<Claimed> {
    let id = ClaimId::random();
    let heads = heads(file, now, limit)?;
    let mut numbers: Vec<i64> = heads.iter().map(|(number, _)| *number).collect();
    for (number, key) in heads {
        let Some(key) = key else { continue };
        if numbers.len() >= limit {
            break;
        }
        let most = OF_ONE_KEY.min(int(limit - numbers.len()));
        let mut asked = file.prepare_cached(FOLLOWERS)?;
        let followers: Vec<(i64, bool)> = asked
            .query_map(params![key, number, now.millis(), most], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?
            .collect::<Result<_, _>>()?;
        let free = followers.into_iter().take_while(|(_, free)| *free);
        numbers.extend(free.map(|(number, _)| number));
    }
    let select = format!(
        "UPDATE mamparo_events SET claim = ?2, ready_at = ?3 WHERE number = ?1 RETURNING {COLUMNS}"
    );
    let mut take = file.prepare_cached(&select)?;
    let until = now.plus(lease).millis();
    let mut events = Vec::with_capacity(numbers.len());
    for number in numbers {
        events.extend(
            take.query_row(params![number, id.number(), until], claimed)
                .optional()?,
        );
    }
    Ok(Claimed::new(id, events))
}

fn heads(
    file: &Connection,
    now: Utc,
    limit: usize,
) -> rusqlite::Result<Vec<(i64, Option<String>)>> {
    let now = now.millis();
    let mut horizon = file.prepare_cached(HORIZON)?;
    let horizon: Option<i64> = horizon
        .query_row([int(limit.saturating_mul(LOOKED_AT))], |row| row.get(0))
        .optional()?;
    let mut near = file.prepare_cached(HEADS)?;
    let near = near.query_map(
        params![now, int(limit), horizon.unwrap_or(i64::MAX)],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    let mut heads = near.collect::<Result<Vec<_>, _>>()?;
    if let Some(horizon) = horizon.filter(|_| heads.len() < limit) {
        let room = limit - heads.len();
        let mut far = keyless(file, now, room, horizon)?;
        far.extend(keyed(file, now, room, horizon)?);
        far.sort_unstable();
        far.truncate(room);
        heads.extend(far);
    }
    Ok(heads)
}

fn keyless(
    file: &Connection,
    now: i64,
    limit: usize,
    horizon: i64,
) -> rusqlite::Result<Vec<(i64, Option<String>)>> {
    let mut asked = file.prepare_cached(KEYLESS)?;
    let found = asked.query_map(params![now, int(limit), horizon], |row| {
        Ok((row.get(0)?, None))
    })?;
    found.collect()
}

fn keyed(
    file: &Connection,
    now: i64,
    limit: usize,
    horizon: i64,
) -> rusqlite::Result<Vec<(i64, Option<String>)>> {
    let mut asked = file.prepare_cached(NEXT_KEY)?;
    let mut found = Vec::new();
    let mut last = String::new();
    while found.len() < limit {
        let next = asked.query_row(params![last, now], |row| {
            Ok((
                row.get::<_, String>(0)?,
                row.get(1)?,
                row.get::<_, bool>(2)?,
            ))
        });
        let Some((key, number, free)) = next.optional()? else {
            break;
        };
        if free && number > horizon {
            found.push((number, Some(key.clone())));
        }
        last = key;
    }
    Ok(found)
}

/// Returns how many were no longer this claim's.
pub(super) fn settle(
    file: &Connection,
    now: Utc,
    claim: ClaimId,
    settled: Vec<(i64, Settlement)>,
) -> rusqlite::Result<usize> {
    let claim = claim.number();
    let mut lost = 0;
    for (number, settlement) in settled {
        let changed = match settlement {
            Settlement::Published => file
                .prepare_cached("DELETE FROM mamparo_events WHERE number = ?1 AND claim = ?2")?
                .execute(params![number, claim])?,
            Settlement::Later { wait, failed } => file
                .prepare_cached(
                    "UPDATE mamparo_events SET claim = NULL, ready_at = ?3, failures = failures + ?4
                     WHERE number = ?1 AND claim = ?2",
                )?
                .execute(params![number, claim, now.plus(wait).millis(), failed])?,
            Settlement::Parked(reason) => file
                .prepare_cached(
                    "UPDATE mamparo_events SET claim = NULL, parked_at = ?3, parked_for = ?4, failures = failures + 1
                     WHERE number = ?1 AND claim = ?2",
                )?
                .execute(params![number, claim, now.millis(), reason.as_str()])?,
        };
        lost += usize::from(changed == 0);
    }
    Ok(lost)
}

/// A page of what is parked.
pub(super) fn page() -> String {
    format!(
        "SELECT {COLUMNS}, parked_for, parked_at FROM mamparo_events
         WHERE parked_at IS NOT NULL AND number > ?1 ORDER BY number LIMIT ?2"
    )
}

pub(super) fn parked(
    file: &Connection,
    after: i64,
    limit: usize,
) -> rusqlite::Result<Vec<ParkedEvent>> {
    let mut asked = file.prepare_cached(&page())?;
    let parked = asked.query_map(params![after, int(limit)], |row| {
        let ClaimedEvent {
            number,
            failures,
            event,
            ..
        } = claimed(row)?;
        let reason: Option<String> = row.get(9)?;
        Ok(ParkedEvent {
            number,
            reason: reason.unwrap_or_default().into(),
            parked_at: Utc::from_millis(row.get(10)?).unwrap_or(Utc::MIN),
            failures,
            event,
        })
    })?;
    parked.collect()
}

pub(super) fn unpark(file: &Connection, numbers: &[i64]) -> rusqlite::Result<usize> {
    let mut unpark = file.prepare_cached(
        "UPDATE mamparo_events SET parked_at = NULL, parked_for = NULL, failures = 0, ready_at = 0
         WHERE number = ?1 AND parked_at IS NOT NULL",
    )?;
    let changed = numbers.iter().map(|number| unpark.execute([number]));
    changed.sum()
}

pub(super) fn discard(file: &Connection, numbers: &[i64]) -> rusqlite::Result<usize> {
    let mut discard = file
        .prepare_cached("DELETE FROM mamparo_events WHERE number = ?1 AND parked_at IS NOT NULL")?;
    let changed = numbers.iter().map(|number| discard.execute([number]));
    changed.sum()
}

/// A row that makes no sense is told, and stops no other.
fn claimed(row: &Row<'_>) -> rusqlite::Result<ClaimedEvent> {
    let event = event(row).map_err(|error| Label::from(format!("it can't be read: {error}")));
    Ok(ClaimedEvent {
        number: row.get(0)?,
        key: row.get(4)?,
        failures: row.get(1).unwrap_or(u32::MAX),
        event: event.and_then(StoredEvent::read),
    })
}

fn event(row: &Row<'_>) -> rusqlite::Result<StoredEvent> {
    Ok(StoredEvent {
        created_at: row.get(2)?,
        id: row.get(3)?,
        key: row.get(4)?,
        destination: row.get(5)?,
        routing_key: row.get(6)?,
        head: row.get(7)?,
        payload: row.get(8)?,
    })
}

fn int(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
