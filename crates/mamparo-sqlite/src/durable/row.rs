//! How a transaction lies in its row.

use std::fmt::Display;

use mamparo_durable::backend::NewTransaction;
use mamparo_durable::machine::{
    AuditEvent, Cause, End, Expect, Label, Progress, Record, State, Terms, TransactionId, Utc,
};
use rusqlite::types::FromSql;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Row, params};

use super::error::Failed;

/// The columns of [`record`], in its order.
macro_rules! columns {
    () => {
        "id, state, attempt_current, attempt_next, schedule_seq, postponements, next_fire_at, reason, ended, updated_at, \
         kind, customer, dependency, trace, max_attempts, max_postponements, give_up_at, created_at"
    };
}
pub(super) use columns;

/// As many columns as [`record`] reads.
pub(super) const COLUMNS: usize = 18;

/// Reads a transaction from the first columns of a row; one that makes no sense fails by its name.
pub(super) fn record(row: &Row<'_>) -> Result<Record, Failed> {
    let id: String = row.get(0)?;
    let named = || id.clone();
    let terms = Terms {
        id: TransactionId::new(&id).map_err(|error| corrupt(&id, error))?,
        kind: label(row, 10)?.unwrap_or_else(|| Label::from("")),
        customer: label(row, 11)?,
        dependency: label(row, 12)?,
        trace: label(row, 13)?,
        max_attempts: get(row, 14, named)?,
        max_postponements: get(row, 15, named)?,
        give_up_at: instant(row, 16, named)?,
        created_at: instant(row, 17, named)?,
    };
    let next_fire_at: Option<i64> = get(row, 6, named)?;
    let ended: Option<String> = get(row, 8, named)?;
    let progress = Progress {
        state: word(State::parse, &get::<String>(row, 1, named)?, &id)?,
        attempt_current: get(row, 2, named)?,
        attempt_next: get(row, 3, named)?,
        schedule_seq: get(row, 4, named)?,
        postponements: get(row, 5, named)?,
        next_fire_at: next_fire_at.map(|at| utc(at, &id)).transpose()?,
        reason: label(row, 7)?,
        end: ended.map(|end| word(End::parse, &end, &id)).transpose()?,
        updated_at: instant(row, 9, named)?,
    };
    Ok(Record::new(terms, progress))
}

/// Reads a row of history.
pub(super) fn event(row: &Row<'_>, id: &TransactionId) -> Result<AuditEvent, Failed> {
    let id = id.as_str();
    let named = || id.to_owned();
    let from: Option<String> = get(row, 1, named)?;
    let fire_at: Option<i64> = get(row, 5, named)?;
    let mut event = AuditEvent::new(
        instant(row, 0, named)?,
        from.map(|from| word(State::parse, &from, id)).transpose()?,
        word(State::parse, &get::<String>(row, 2, named)?, id)?,
        word(Cause::parse, &get::<String>(row, 6, named)?, id)?,
    );
    event.attempt = get(row, 3, named)?;
    event.seq = get(row, 4, named)?;
    event.fire_at = fire_at.map(|at| utc(at, id)).transpose()?;
    event.reason = label(row, 7)?;
    Ok(event)
}

fn get<T: FromSql>(row: &Row<'_>, column: usize, id: impl Fn() -> String) -> Result<T, Failed> {
    row.get(column).map_err(|error| corrupt(&id(), error))
}

fn label(row: &Row<'_>, column: usize) -> Result<Option<Label>, Failed> {
    let text = row.get_ref(column)?.as_str_or_null();
    Ok(text.map_err(rusqlite::Error::from)?.map(Label::from))
}

fn instant(row: &Row<'_>, column: usize, id: impl Fn() -> String) -> Result<Utc, Failed> {
    let id = id();
    utc(get(row, column, || id.clone())?, &id)
}

fn utc(millis: i64, id: &str) -> Result<Utc, Failed> {
    Utc::from_millis(millis).map_err(|error| corrupt(id, error))
}

fn word<T>(parse: fn(&str) -> Option<T>, stored: &str, id: &str) -> Result<T, Failed> {
    let known = parse(stored);
    known.ok_or_else(|| corrupt(id, format!("\"{stored}\" is no word of this version")))
}

fn corrupt(id: &str, why: impl Display) -> Failed {
    Failed::corrupt(format!(
        "transaction {id} can't be read ({why}): look at its row in mamparo_durable"
    ))
}

/// Reads one transaction; `None` where there is none of that id.
pub(super) fn find(file: &Connection, id: &TransactionId) -> Result<Option<Record>, Failed> {
    let mut asked = file.prepare_cached(FIND)?;
    let mut rows = asked.query([id.as_str()])?;
    rows.next()?.map(record).transpose()
}

pub(super) const FIND: &str = concat!("SELECT ", columns!(), " FROM mamparo_durable WHERE id = ?1");

/// Returns the number of a transaction's row.
pub(super) fn number(file: &Connection, id: &TransactionId) -> Result<Option<i64>, Failed> {
    let mut asked = file.prepare_cached("SELECT number FROM mamparo_durable WHERE id = ?1")?;
    Ok(asked
        .query_row([id.as_str()], |row| row.get(0))
        .optional()?)
}

/// Stores a transaction that begins, already as far as `progress`; `None` if one of its id is there.
pub(super) fn insert(
    file: &Connection,
    new: &NewTransaction,
    progress: &Progress,
) -> Result<Option<i64>, Failed> {
    let terms = &*new.record.terms;
    let mut insert = file.prepare_cached(INSERT)?;
    let number: Option<i64> = insert
        .query_row(
            params![
                terms.id.as_str(),
                progress.state.as_str(),
                progress.attempt_current,
                progress.attempt_next,
                progress.schedule_seq,
                progress.postponements,
                progress.next_fire_at.map(Utc::millis),
                progress.reason.as_ref().map(Label::as_str),
                progress.end.map(End::as_str),
                progress.updated_at.millis(),
                watched_from(progress),
                terms.kind.as_str(),
                terms.customer.as_ref().map(Label::as_str),
                terms.dependency.as_ref().map(Label::as_str),
                terms.trace.as_ref().map(Label::as_str),
                terms.max_attempts,
                terms.max_postponements,
                terms.give_up_at.millis(),
                terms.created_at.millis(),
            ],
            |row| row.get(0),
        )
        .optional()?;
    let Some(number) = number else {
        return Ok(None);
    };
    file.prepare_cached(
        "INSERT OR REPLACE INTO mamparo_durable_request (number, body) VALUES (?1, ?2)",
    )?
    .execute(params![number, &new.request[..]])?;
    add_event(file, number, &new.event())?;
    if progress.state.is_terminal() {
        count_ended(file, progress)?;
    }
    Ok(Some(number))
}

const INSERT: &str = "INSERT INTO mamparo_durable
    (id, state, attempt_current, attempt_next, schedule_seq, postponements, next_fire_at, reason, ended, updated_at, watched_from,
     kind, customer, dependency, trace, max_attempts, max_postponements, give_up_at, created_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)
    ON CONFLICT (id) DO NOTHING RETURNING number";

/// Writes a transition, if what is stored is as expected; `None` if not. What is at its end never changes.
pub(super) fn update(
    file: &Connection,
    id: &TransactionId,
    expect: &Expect,
    to: &Progress,
) -> Result<Option<i64>, Failed> {
    if expect.state.is_terminal() {
        return Ok(None);
    }
    let number = if to.state.is_terminal() {
        let mut update = file.prepare_cached(END)?;
        bind(&mut update, id, expect, to)?;
        update.raw_bind_parameter(15, to.end.map(End::as_str))?;
        returned(&mut update)?
    } else {
        let mut update = file.prepare_cached(MOVE_ON)?;
        bind(&mut update, id, expect, to)?;
        returned(&mut update)?
    };
    if number.is_some() && to.state.is_terminal() {
        count_ended(file, to)?;
    }
    Ok(number)
}

fn returned(update: &mut CachedStatement<'_>) -> Result<Option<i64>, Failed> {
    let mut rows = update.raw_query();
    Ok(rows.next()?.map(|row| row.get(0)).transpose()?)
}

fn bind(
    update: &mut CachedStatement<'_>,
    id: &TransactionId,
    expect: &Expect,
    to: &Progress,
) -> Result<(), Failed> {
    update.raw_bind_parameter(1, id.as_str())?;
    update.raw_bind_parameter(2, expect.state.as_str())?;
    update.raw_bind_parameter(3, expect.attempt_current)?;
    update.raw_bind_parameter(4, expect.attempt_next)?;
    update.raw_bind_parameter(5, expect.schedule_seq)?;
    update.raw_bind_parameter(6, to.state.as_str())?;
    update.raw_bind_parameter(7, to.attempt_current)?;
    update.raw_bind_parameter(8, to.attempt_next)?;
    update.raw_bind_parameter(9, to.schedule_seq)?;
    update.raw_bind_parameter(10, to.postponements)?;
    update.raw_bind_parameter(11, to.next_fire_at.map(Utc::millis))?;
    update.raw_bind_parameter(12, to.reason.as_ref().map(Label::as_str))?;
    update.raw_bind_parameter(13, to.updated_at.millis())?;
    update.raw_bind_parameter(14, watched_from(to))?;
    Ok(())
}

macro_rules! transition {
    ($more:literal) => {
        concat!(
            "UPDATE mamparo_durable SET state = ?6, attempt_current = ?7, attempt_next = ?8, schedule_seq = ?9, \
             postponements = ?10, next_fire_at = ?11, reason = ?12, updated_at = ?13, watched_from = ?14",
            $more,
            " WHERE id = ?1 AND state = ?2 AND attempt_current = ?3 AND attempt_next IS ?4 AND schedule_seq = ?5 \
             RETURNING number"
        )
    };
}

/// Where `ended` is not named, the indexes that depend on it alone are left as they are.
pub(super) const MOVE_ON: &str = transition!("");
pub(super) const END: &str = transition!(", ended = ?15");

/// What is due within so many milliseconds lies together, as it came.
///
/// By their exact instants, a million that wait for hours would have each new one write to a page of its own.
pub(super) const COARSE: i64 = 15_000;

/// The beginning of the stretch of time that an instant is in.
pub(super) const fn coarse(instant: Utc) -> i64 {
    let millis = instant.millis();
    millis - millis.rem_euclid(COARSE)
}

/// SCHEDULED is watched from its instant, or a little earlier, every other state from its last write.
pub(super) fn watched_from(progress: &Progress) -> i64 {
    let due = progress
        .next_fire_at
        .filter(|_| progress.state == State::Scheduled);
    due.map_or(progress.updated_at.millis(), coarse)
}

/// Adds to a transaction's history.
pub(super) fn add_event(file: &Connection, of: i64, event: &AuditEvent) -> Result<(), Failed> {
    // Numbered by what is there: no row can be in the way.
    let mut add = file.prepare_cached(ADD_EVENT)?;
    add.execute(params![
        of,
        event.at.millis(),
        event.from.map(State::as_str),
        event.to.as_str(),
        event.attempt,
        event.seq,
        event.fire_at.map(Utc::millis),
        event.cause.as_str(),
        event.reason.as_ref().map(Label::as_str),
    ])?;
    Ok(())
}

pub(super) const ADD_EVENT: &str = "INSERT INTO mamparo_durable_event
    (of, number, at, from_state, to_state, attempt, seq, fire_at, cause, reason)
    SELECT ?1, coalesce(max(number), 0) + 1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9 FROM mamparo_durable_event WHERE of = ?1";

/// Counts one that is at its end, so that nobody has to count history.
fn count_ended(file: &Connection, progress: &Progress) -> Result<(), Failed> {
    let mut count = file.prepare_cached(
        "INSERT INTO mamparo_durable_ended (state, attempt, transactions) VALUES (?1, ?2, 1)
         ON CONFLICT (state, attempt) DO UPDATE SET transactions = transactions + 1",
    )?;
    count.execute(params![progress.state.as_str(), progress.attempt_current])?;
    Ok(())
}
