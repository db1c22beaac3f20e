//! Rows that become transactions.

use mamparo_durable::backend::BackendError;
use mamparo_durable::machine::{
    AuditEvent, Cause, End, Label, Progress, Record, State, Terms, TransactionId, Utc,
};
use sqlx::postgres::PgRow;
use sqlx::{Decode, Postgres, Row as _, Type};

use crate::database::corrupt;

/// What is read of a transaction, but for its request.
macro_rules! columns {
    () => {
        "transaction_id, state, attempt_current, attempt_next, schedule_seq, postponements, next_fire_at, updated_at, reason, \
         ended, kind, customer, dependency, trace, max_attempts, max_postponements, give_up_at, created_at"
    };
}
pub(super) use columns;

/// Reads these transactions.
pub(crate) const LOAD: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM transactions WHERE transaction_id = ANY($1)"
);

/// Reads one; what can't be read fails by itself, under its id.
pub(crate) fn record(row: &PgRow) -> Result<(String, Result<Record, BackendError>), sqlx::Error> {
    let id: String = row.try_get(0)?;
    let read =
        read(row, &id).map_err(|what| corrupt(format!("transaction {id} can't be read: {what}")));
    Ok((id, read))
}

/// Why a row makes no sense.
type Nonsense = String;

fn read(row: &PgRow, id: &str) -> Result<Record, Nonsense> {
    let state: &str = get(row, 1)?;
    let ended: Option<&str> = get(row, 9)?;
    let progress = Progress {
        state: State::parse(state).ok_or_else(|| format!("its state is {state:?}"))?,
        attempt_current: small(get(row, 2)?)?,
        attempt_next: get::<Option<i64>>(row, 3)?.map(small).transpose()?,
        schedule_seq: small(get(row, 4)?)?,
        postponements: small(get(row, 5)?)?,
        next_fire_at: get::<Option<i64>>(row, 6)?.map(instant).transpose()?,
        updated_at: instant(get(row, 7)?)?,
        reason: label(row, 8)?,
        end: ended
            .map(|end| End::parse(end).ok_or_else(|| format!("its end is {end:?}")))
            .transpose()?,
    };
    let terms = Terms {
        id: TransactionId::new(id).map_err(|error| error.to_string())?,
        kind: label(row, 10)?.ok_or("it has no kind")?,
        customer: label(row, 11)?,
        dependency: label(row, 12)?,
        trace: label(row, 13)?,
        max_attempts: small(get(row, 14)?)?,
        max_postponements: small(get(row, 15)?)?,
        give_up_at: instant(get(row, 16)?)?,
        created_at: instant(get(row, 17)?)?,
    };
    Ok(Record::new(terms, progress))
}

/// Reads a row of history.
pub(super) fn event(row: &PgRow) -> Result<AuditEvent, Nonsense> {
    let from: Option<&str> = get(row, 1)?;
    let (to, cause): (&str, &str) = (get(row, 2)?, get(row, 6)?);
    let state = |name: &str| State::parse(name).ok_or_else(|| format!("a state is {name:?}"));
    Ok(AuditEvent {
        at: instant(get(row, 0)?)?,
        from: from.map(state).transpose()?,
        to: state(to)?,
        attempt: small(get(row, 3)?)?,
        seq: small(get(row, 4)?)?,
        fire_at: get::<Option<i64>>(row, 5)?.map(instant).transpose()?,
        cause: Cause::parse(cause).ok_or_else(|| format!("a cause is {cause:?}"))?,
        reason: label(row, 7)?,
    })
}

pub(super) fn get<'r, T>(row: &'r PgRow, column: usize) -> Result<T, Nonsense>
where
    T: Decode<'r, Postgres> + Type<Postgres>,
{
    row.try_get(column).map_err(|error| error.to_string())
}

pub(super) fn label(row: &PgRow, column: usize) -> Result<Option<Label>, Nonsense> {
    Ok(get::<Option<&str>>(row, column)?.map(Label::from))
}

/// An attempt, or a number of schedules.
pub(crate) fn small(number: i64) -> Result<u32, Nonsense> {
    u32::try_from(number).map_err(|_| format!("a number is {number}"))
}

pub(super) fn instant(millis: i64) -> Result<Utc, Nonsense> {
    Utc::from_millis(millis).map_err(|error| error.to_string())
}

/// A count; what the server counts is never negative.
pub(crate) fn number(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}
