//! What a queue does with its messages.

use std::time::Duration;

use mamparo_durable::backend::{DeadLetter, Delivery, Depth, Message, QueueName, Receipt};
use mamparo_durable::machine::{Label, Utc};
use rusqlite::{Connection, Row, params};

use super::error::Failed;
use super::message::{self, held, message_columns};
use super::wake::{Told, Wakes};

/// What was taken, and when there is more.
pub(super) struct Taken {
    pub(super) deliveries: Vec<Delivery>,
    pub(super) next: Option<Utc>,
    pub(super) told: Told,
}

/// How messages are taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    pub(super) queue: QueueName,
    pub(super) max: usize,
    pub(super) lease: Duration,
    pub(super) now: Utc,
    /// How often one is delivered before it is buried.
    pub(super) limit: u32,
}

/// Takes what is ready. What was delivered too often or can't be read is buried on the way.
pub(super) fn take(file: &Connection, terms: Terms, wakes: &Wakes) -> Result<Taken, Failed> {
    let told = wakes.of(terms.queue).asked();
    let lease = fastrand::i64(1..);
    let mut deliveries = Vec::new();
    loop {
        let wanted = terms.max - deliveries.len();
        let ready = ready(file, &terms, wanted)?;
        let last = ready.len() < wanted;
        for message in ready {
            match message.content {
                Ok(content) if message.deliveries < terms.limit => {
                    let until = terms.now.plus(terms.lease.max(Duration::from_millis(1)));
                    let mut take = file.prepare_cached(TAKE)?;
                    take.execute(params![message.number, until.millis(), lease])?;
                    let receipt = Receipt {
                        queue: terms.queue,
                        message: message.number.cast_unsigned(),
                        lease: lease.cast_unsigned(),
                        handle: None,
                    };
                    let number = message.deliveries + 1;
                    deliveries.push(Delivery::new(content, number, message.since, receipt));
                }
                Ok(_) => {
                    let why = format!("delivered {} times", message.deliveries);
                    bury(file, message.number, &Label::from(why), terms.now)?;
                }
                Err(why) => bury(file, message.number, &Label::from(why), terms.now)?,
            }
        }
        if last || deliveries.len() >= terms.max {
            break;
        }
    }
    let mut next = file.prepare_cached(NEXT)?;
    let next: Option<i64> = next.query_row([terms.queue.as_str()], |row| row.get(0))?;
    Ok(Taken {
        deliveries,
        next: next.and_then(|next| Utc::from_millis(next).ok()),
        told,
    })
}

struct Ready {
    number: i64,
    since: Utc,
    deliveries: u32,
    content: Result<Message, String>,
}

fn ready(file: &Connection, terms: &Terms, most: usize) -> Result<Vec<Ready>, Failed> {
    let mut asked = file.prepare_cached(READY)?;
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let mut rows = asked.query(params![terms.queue.as_str(), terms.now.millis(), most])?;
    let mut ready = Vec::new();
    while let Some(row) = rows.next()? {
        ready.push(Ready {
            number: row.get(0)?,
            // What makes no sense is buried, and must not stop the others.
            since: Utc::from_millis(row.get(1)?).unwrap_or(terms.now),
            deliveries: u32::try_from(row.get::<_, i64>(2)?).unwrap_or(u32::MAX),
            content: message::read(file, terms.queue, row, 3)?,
        });
    }
    Ok(ready)
}

pub(super) const READY: &str = concat!(
    "SELECT number, since, deliveries, ",
    message_columns!(),
    " FROM mamparo_durable_message WHERE queue = ?1 AND ready_at <= ?2 ORDER BY ready_at LIMIT ?3"
);

pub(super) const TAKE: &str = "UPDATE mamparo_durable_message
    SET ready_at = ?2, lease = ?3, deliveries = deliveries + 1, scheduled = 0 WHERE number = ?1";

pub(super) const NEXT: &str = "SELECT min(ready_at) FROM mamparo_durable_message WHERE queue = ?1";

/// Gives a message back; false if that lease does not have it any more.
pub(super) fn release(
    file: &Connection,
    receipt: &Receipt,
    ready_at: Utc,
    spent: bool,
) -> Result<bool, Failed> {
    let (number, lease) = held(receipt);
    let mut release = file.prepare_cached(
        "UPDATE mamparo_durable_message SET ready_at = ?3, lease = 0, deliveries = deliveries - ?4
         WHERE number = ?1 AND lease = ?2",
    )?;
    let unspent = i64::from(!spent);
    Ok(release.execute(params![number, lease, ready_at.millis(), unspent])? == 1)
}

/// Holds a lease for longer, if it is not over.
pub(super) fn extend(
    file: &Connection,
    receipt: &Receipt,
    until: Utc,
    now: Utc,
) -> Result<(), Failed> {
    let (number, lease) = held(receipt);
    let mut extend = file.prepare_cached(
        "UPDATE mamparo_durable_message SET ready_at = ?3 WHERE number = ?1 AND lease = ?2 AND ready_at > ?4",
    )?;
    extend.execute(params![number, lease, until.millis(), now.millis()])?;
    Ok(())
}

/// Buries the message of a receipt, if that lease still has it.
pub(super) fn bury_held(
    file: &Connection,
    receipt: &Receipt,
    why: &Label,
    now: Utc,
) -> Result<(), Failed> {
    let mut asked = file
        .prepare_cached("SELECT 1 FROM mamparo_durable_message WHERE number = ?1 AND lease = ?2")?;
    if asked.exists(held(receipt))? {
        bury(file, held(receipt).0, why, now)?;
    }
    Ok(())
}

fn bury(file: &Connection, number: i64, why: &Label, now: Utc) -> Result<(), Failed> {
    let mut bury = file.prepare_cached(
        "INSERT INTO mamparo_durable_dead
            (queue, since, deliveries, id, attempt, seq, outcome, reason, not_before, why, buried_at)
         SELECT queue, since, deliveries, id, attempt, seq, outcome, reason, not_before, ?2, ?3
         FROM mamparo_durable_message WHERE number = ?1",
    )?;
    bury.execute(params![number, why.as_str(), now.millis()])?;
    let mut delete =
        file.prepare_cached("DELETE FROM mamparo_durable_message WHERE number = ?1")?;
    delete.execute([number])?;
    Ok(())
}

/// Counts what is in a queue.
pub(super) fn depth(file: &Connection, queue: QueueName, now: Utc) -> Result<Depth, Failed> {
    let mut asked = file.prepare_cached(DEPTH)?;
    let mut depth = asked.query_row(params![queue.as_str(), now.millis()], |row| {
        Ok(Depth {
            ready: count(row, 0)?,
            later: count(row, 1)?,
            taken: count(row, 2)?,
            dead: 0,
        })
    })?;
    let mut dead = file.prepare_cached(DEAD_COUNT)?;
    depth.dead = dead.query_row([queue.as_str()], |row| count(row, 0))?;
    Ok(depth)
}

fn count(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get(column).map(i64::cast_unsigned)
}

pub(super) const DEPTH: &str = "SELECT count(*) FILTER (WHERE ready_at <= ?2),
        count(*) FILTER (WHERE ready_at > ?2 AND lease = 0), count(*) FILTER (WHERE ready_at > ?2 AND lease <> 0)
    FROM mamparo_durable_message WHERE queue = ?1";

pub(super) const DEAD_COUNT: &str =
    "SELECT count(*) FROM mamparo_durable_dead WHERE queue = ?1 AND discarded_at IS NULL";

/// Reads dead letters.
pub(super) fn dead(
    file: &Connection,
    queue: QueueName,
    after: Option<u64>,
    max: usize,
) -> Result<Vec<DeadLetter>, Failed> {
    let after = after.map_or(0, |after| i64::try_from(after).unwrap_or(i64::MAX));
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    let mut asked = file.prepare_cached(DEAD)?;
    let mut rows = asked.query(params![queue.as_str(), after, max])?;
    let mut dead = Vec::new();
    while let Some(row) = rows.next()? {
        let why: String = row.get(1)?;
        let deliveries = u32::try_from(row.get::<_, i64>(3)?).unwrap_or(u32::MAX);
        dead.push(DeadLetter::new(
            count(row, 0)?,
            message::read(file, queue, row, 4)?.ok(),
            Label::from(why),
            Utc::from_millis(row.get(2)?).unwrap_or(Utc::MIN),
            deliveries,
        ));
    }
    Ok(dead)
}

pub(super) const DEAD: &str = concat!(
    "SELECT number, why, buried_at, deliveries, ",
    message_columns!(),
    " FROM mamparo_durable_dead WHERE queue = ?1 AND discarded_at IS NULL AND number > ?2 ORDER BY number LIMIT ?3"
);

/// Puts a dead letter back; false if there is none of that number in that queue.
pub(super) fn requeue(
    file: &Connection,
    queue: QueueName,
    number: u64,
    now: Utc,
) -> Result<bool, Failed> {
    let mut copy = file.prepare_cached(
        "INSERT INTO mamparo_durable_message
            (queue, ready_at, since, lease, deliveries, scheduled, id, attempt, seq, outcome, reason, not_before)
         SELECT queue, ?3, ?3, 0, 0, 0, id, attempt, seq, outcome, reason, not_before
         FROM mamparo_durable_dead WHERE queue = ?1 AND number = ?2 AND discarded_at IS NULL",
    )?;
    let number = number.cast_signed();
    if copy.execute(params![queue.as_str(), number, now.millis()])? == 0 {
        return Ok(false);
    }
    let mut delete = file.prepare_cached("DELETE FROM mamparo_durable_dead WHERE number = ?1")?;
    delete.execute([number])?;
    Ok(true)
}

/// Takes a dead letter out of sight, and notes why; false if there is none of that number in that queue.
pub(super) fn discard(
    file: &Connection,
    queue: QueueName,
    number: u64,
    reason: &Label,
    now: Utc,
) -> Result<bool, Failed> {
    let mut discard = file.prepare_cached(
        "UPDATE mamparo_durable_dead SET discarded_at = ?3, discarded_for = ?4
         WHERE queue = ?1 AND number = ?2 AND discarded_at IS NULL",
    )?;
    let row = params![
        queue.as_str(),
        number.cast_signed(),
        now.millis(),
        reason.as_str()
    ];
    Ok(discard.execute(row)? == 1)
}
