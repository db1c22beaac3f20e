//! One step, all of it or nothing.

use mamparo_durable::backend::{Committed, Created, Message, NewTransaction, Step, Written};
use mamparo_durable::machine::{Effect, Progress, TransactionId, Utc, Write};
use rusqlite::Connection;

use super::error::Failed;
use super::message::{self, Kept};
use super::row;
use super::wake::Wakes;

/// Does a step. Nothing is changed before all is found as expected.
pub(super) fn commit(
    file: &Connection,
    step: &Step,
    now: Utc,
    wakes: &Wakes,
) -> Result<Committed, Failed> {
    if !transit(file, step)? {
        return Ok(Committed::Missed(row::find(file, &step.id)?));
    }
    let mut conflict = false;
    for effect in &step.effects {
        conflict |= perform(file, &step.id, effect, now, wakes)? == Some(Created::Conflict);
    }
    if let Some(receipt) = &step.settle {
        message::settle(file, receipt)?;
    }
    Ok(Committed::Applied { conflict })
}

/// Makes one transition.
pub(super) fn write(
    file: &Connection,
    id: &TransactionId,
    write: &Write,
) -> Result<Written, Failed> {
    let Some(number) = row::update(file, id, &write.expect, &write.to)? else {
        return Ok(Written::Missed(row::find(file, id)?));
    };
    row::add_event(file, number, &write.event)?;
    Ok(Written::Applied)
}

/// Makes a step's transitions, if what is stored is as they expect.
fn transit(file: &Connection, step: &Step) -> Result<bool, Failed> {
    if !is_chain(step.begin.as_ref(), &step.writes) {
        return Ok(false);
    }
    let number = match (&step.begin, &step.writes[..]) {
        (Some(new), writes) => {
            let progress = writes
                .last()
                .map_or(&new.record.progress, |write| &write.to);
            row::insert(file, new, progress)?
        }
        (None, [first, .., last]) => row::update(file, &step.id, &first.expect, &last.to)?,
        (None, [only]) => row::update(file, &step.id, &only.expect, &only.to)?,
        (None, []) => row::number(file, &step.id)?,
    };
    let Some(number) = number else {
        return Ok(false);
    };
    for write in &step.writes {
        row::add_event(file, number, &write.event)?;
    }
    Ok(true)
}

/// Tells whether each write starts from what the one before it leaves.
fn is_chain(begin: Option<&NewTransaction>, writes: &[Write]) -> bool {
    let mut before = begin.map(|new| &new.record.progress);
    writes.iter().all(|write| {
        let fits = before.is_none_or(|progress: &Progress| progress.expect() == write.expect);
        before = Some(&write.to);
        fits
    })
}

fn perform(
    file: &Connection,
    id: &TransactionId,
    effect: &Effect,
    now: Utc,
    wakes: &Wakes,
) -> Result<Option<Created>, Failed> {
    match *effect {
        Effect::Schedule(ref schedule) => {
            return message::schedule(file, id, schedule, wakes).map(Some);
        }
        Effect::Unschedule { attempt, seq } => message::unschedule(file, id, attempt, seq)?,
        Effect::Refire { attempt, seq } => {
            let fire = Message::Fire {
                id: id.clone(),
                attempt,
                seq,
            };
            message::publish(file, &Kept::from(&fire), now, wakes)?;
        }
        Effect::Send { attempt, seq } => {
            message::publish(file, &Kept::request(id, attempt, seq), now, wakes)?;
        }
        _ => {}
    }
    Ok(None)
}
