//! Postponing what goes to one dependency.

use mamparo_durable::backend::PostponeDue;
use mamparo_durable::machine::{
    AuditEvent, Cause, Progress, Record, Schedule, State, TransactionId, Utc, Write,
};
use rusqlite::{Connection, OptionalExtension, params};

use super::error::Failed;
use super::wake::Wakes;
use super::{message, row};

/// As many as are moved in one write: it holds up others for that long.
const PART: usize = 4_000;

/// As many as one call moves.
const MOST: u64 = 1_000_000;

/// What one write moves, and to which part of the spread: each part has its own, so that what is written together lies together.
#[derive(Debug)]
pub(super) struct Part {
    numbers: Vec<i64>,
    before: usize,
    all: usize,
}

impl Part {
    fn instant(&self, due: &PostponeDue) -> Utc {
        let drawn = fastrand::f64().mul_add(self.numbers.len() as f64, self.before as f64);
        due.until.plus(due.spread.mul_f64(drawn / self.all as f64))
    }
}

/// Finds the numbers of what is to be moved, the first due first.
pub(super) fn find(file: &Connection, due: &PostponeDue) -> Result<Vec<Part>, Failed> {
    let mut asked = file.prepare_cached(DUE)?;
    let rows = asked.query_map(
        params![
            due.due_before.millis(),
            due.dependency.as_str(),
            due.now.millis(),
            due.limit.min(MOST).cast_signed(),
        ],
        |row| row.get(0),
    )?;
    let mut numbers = rows.collect::<Result<Vec<i64>, _>>()?;
    // In the order in which they lie in the file, a page that several share is written once.
    numbers.sort_unstable();
    let all = numbers.len();
    let parts = numbers.chunks(PART).enumerate();
    Ok(parts
        .map(|(part, numbers)| Part {
            numbers: numbers.to_vec(),
            before: part * PART,
            all,
        })
        .collect())
}

pub(super) const DUE: &str = "SELECT number FROM mamparo_durable INDEXED BY mamparo_durable_live
    WHERE ended IS NULL AND state = 'SCHEDULED' AND watched_from < ?1 AND next_fire_at < ?1 AND dependency = ?2
        AND postponements < max_postponements AND give_up_at > ?3
    ORDER BY watched_from LIMIT ?4";

/// Moves them, each if it still is to be moved, and says how many. One that can't be read is left to its fire.
pub(super) fn all(
    file: &Connection,
    part: &Part,
    due: &PostponeDue,
    wakes: &Wakes,
) -> Result<u64, Failed> {
    let mut asked = file.prepare_cached(ONE)?;
    let mut moved = 0;
    for number in &part.numbers {
        let found = asked
            .query_row([number], |row| Ok(row::record(row)))
            .optional()?;
        let Some(Ok(record)) = found else { continue };
        if is_moved(&record, due) {
            let (write, schedule) = plan(&record.progress, part.instant(due), due.now);
            moved += u64::from(one(file, &record.terms.id, &write, &schedule, wakes)?);
        }
    }
    Ok(moved)
}

pub(super) const ONE: &str = concat!(
    "SELECT ",
    row::columns!(),
    " FROM mamparo_durable WHERE number = ?1"
);

fn is_moved(record: &Record, due: &PostponeDue) -> bool {
    let Record { terms, progress } = record;
    progress.state == State::Scheduled
        && progress
            .next_fire_at
            .is_some_and(|fire_at| fire_at < due.due_before)
        && progress.postponements < terms.max_postponements
        && due.now < terms.give_up_at
}

fn one(
    file: &Connection,
    id: &TransactionId,
    write: &Write,
    schedule: &Schedule,
    wakes: &Wakes,
) -> Result<bool, Failed> {
    let Some(number) = row::update(file, id, &write.expect, &write.to)? else {
        return Ok(false);
    };
    row::add_event(file, number, &write.event)?;
    message::reschedule(file, id, schedule, wakes)?;
    Ok(true)
}

fn plan(from: &Progress, fire_at: Utc, now: Utc) -> (Write, Schedule) {
    let to = Progress {
        schedule_seq: from.schedule_seq.saturating_add(1),
        postponements: from.postponements.saturating_add(1),
        next_fire_at: Some(fire_at),
        updated_at: now,
        ..from.clone()
    };
    let schedule = Schedule {
        attempt: to.attempt_next.unwrap_or(to.attempt_current),
        seq: to.schedule_seq,
        fire_at,
    };
    let event = AuditEvent {
        attempt: schedule.attempt,
        seq: schedule.seq,
        fire_at: Some(fire_at),
        ..AuditEvent::new(now, Some(from.state), to.state, Cause::Postponed)
    };
    (Write::new(from.expect(), to, event), schedule)
}
