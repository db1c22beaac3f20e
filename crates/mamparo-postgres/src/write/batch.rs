//! Many jobs in one transaction, with few statements.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mamparo_durable::backend::{BackendError, Committed, Created, Message, QueueName, Step};
use mamparo_durable::machine::{Effect, State, Utc};
use sqlx::postgres::PgConnection;
use sqlx::{Connection as _, Error, query};

use super::job::{Done, Wanted};
use super::messages::{BuryRows, ExtendRows, ReceiptRows, ReleaseRows};
use super::rows::{HistoryRows, MessageRows, ScheduleRows};
use super::{statements, steps};
use crate::wake::Ready;

/// What came of a batch.
#[derive(Debug)]
pub(super) struct Written {
    /// For each that was wanted, in order.
    pub(super) done: Vec<Result<Done, BackendError>>,
    /// When there may be something to take.
    pub(super) ready: Ready,
}

/// Writes all that is wanted, in one transaction. `committing` is set before the commit is asked for: from then on nobody knows
/// whether a failure came before it or after.
pub(super) async fn execute(
    connection: &mut PgConnection,
    wanted: Arc<Vec<Wanted>>,
    now: Utc,
    committing: Arc<AtomicBool>,
) -> Result<Written, Error> {
    let mut transaction = connection.begin().await?;
    let places = steps_of(&wanted);
    let steps: Vec<&Step> = places.iter().map(|(_, step)| *step).collect();
    let checked = steps::check(&mut transaction, &steps).await?;
    let mut batch = Batch::default();
    let mut done: Vec<Result<Done, BackendError>> =
        wanted.iter().map(|_| Ok(Done::Written)).collect();
    for ((place, step), checked) in places.iter().zip(checked) {
        let applied = match checked {
            Ok(None) => {
                batch.step(*place, step);
                Ok(Committed::Applied { conflict: false })
            }
            Ok(Some(missed)) => Ok(missed),
            Err(error) => Err(error),
        };
        done[*place] = applied.map(Done::Committed);
    }
    for (place, wanted) in wanted.iter().enumerate() {
        batch.other(place, wanted, now);
        if matches!(wanted, Wanted::Create(..)) {
            done[place] = Ok(Done::Created(Created::New));
        }
    }
    let ready = batch.ready(now);
    batch.write(&mut transaction, now, &mut done).await?;
    committing.store(true, Ordering::Relaxed);
    transaction.commit().await?;
    Ok(Written { done, ready })
}

/// Sums up the counts, so that who reads them reads few.
pub(super) async fn sum_up(connection: &mut PgConnection) -> Result<(), Error> {
    query(statements::SUM_UP)
        .execute(connection)
        .await
        .map(drop)
}

fn steps_of(wanted: &[Wanted]) -> Vec<(usize, &Step)> {
    let steps = wanted
        .iter()
        .enumerate()
        .filter_map(|(place, wanted)| match wanted {
            Wanted::Step(step) => Some((place, &**step)),
            _ => None,
        });
    steps.collect()
}

/// The rows that follow from what applies.
#[derive(Default)]
struct Batch<'a> {
    history: HistoryRows<'a>,
    tally: BTreeMap<(State, u32), i64>,
    schedules: ScheduleRows<'a>,
    /// Who wants each of them.
    scheduling: Vec<usize>,
    unscheduled: ScheduleRows<'a>,
    messages: MessageRows<'a>,
    published: [bool; 3],
    acknowledged: ReceiptRows,
    released: ReleaseRows,
    released_for: Vec<(QueueName, Utc)>,
    extended: ExtendRows,
    buried: BuryRows,
}

impl<'a> Batch<'a> {
    fn step(&mut self, place: usize, step: &'a Step) {
        let id = &step.id;
        if let Some(new) = &step.begin {
            self.history.push_first(id, &new.event());
            let last = step
                .writes
                .last()
                .map_or(&new.record.progress, |write| &write.to);
            self.count(last.state, last.attempt_current, 1);
        } else if let (Some(first), Some(last)) = (step.writes.first(), step.writes.last()) {
            self.count(first.expect.state, first.expect.attempt_current, -1);
            self.count(last.to.state, last.to.attempt_current, 1);
        }
        for write in &step.writes {
            self.history.push(id, &write.event);
        }
        for effect in &step.effects {
            match effect {
                Effect::Schedule(schedule) => {
                    self.schedules.push(id, schedule);
                    self.scheduling.push(place);
                }
                Effect::Unschedule { attempt, seq } => {
                    self.unscheduled.push_name(id, *attempt, *seq)
                }
                Effect::Refire { attempt, seq } => {
                    self.messages.push(QueueName::Fires, id, *attempt, *seq);
                    self.published[QueueName::Fires as usize] = true;
                }
                Effect::Send { attempt, seq } => {
                    self.messages.push(QueueName::Requests, id, *attempt, *seq);
                    self.published[QueueName::Requests as usize] = true;
                }
                // Alerts are told, not stored.
                _ => {}
            }
        }
        if let Some(receipt) = &step.settle {
            self.acknowledged.push(receipt);
        }
    }

    fn count(&mut self, state: State, attempt: u32, change: i64) {
        *self.tally.entry((state, attempt)).or_default() += change;
    }

    fn other(&mut self, place: usize, wanted: &'a Wanted, now: Utc) {
        match wanted {
            Wanted::Step(_) => {}
            Wanted::Publish(message) => self.publish(message),
            Wanted::Create(id, schedule) => {
                self.schedules.push(id, schedule);
                self.scheduling.push(place);
            }
            Wanted::Delete { id, attempt, seq } => self.unscheduled.push_name(id, *attempt, *seq),
            Wanted::Acknowledge(receipt) => self.acknowledged.push(receipt),
            Wanted::Release {
                receipt,
                ready_at,
                spent,
            } => {
                self.released.push(receipt, *ready_at, *spent);
                self.released_for
                    .push((receipt.queue, (*ready_at).max(now)));
            }
            Wanted::Bury {
                receipt,
                why,
                spent,
            } => self.buried.push(receipt, why, *spent),
            Wanted::Extend { receipt, until } => self.extended.push(receipt, *until),
        }
    }

    fn publish(&mut self, message: &'a Message) {
        self.messages.push_message(message);
        self.published[message.queue() as usize] = true;
    }

    /// When there may be something to take, once it is committed.
    fn ready(&self, now: Utc) -> Ready {
        let mut ready = Ready::default();
        for queue in QueueName::ALL {
            if self.published[queue as usize] {
                ready.at(queue, now.millis());
            }
        }
        if let Some(first) = self.schedules.earliest() {
            ready.at(QueueName::Fires, first);
        }
        for (queue, at) in &self.released_for {
            ready.at(*queue, at.millis());
        }
        ready
    }

    async fn write(
        self,
        connection: &mut PgConnection,
        now: Utc,
        done: &mut [Result<Done, BackendError>],
    ) -> Result<(), Error> {
        self.history.write(&mut *connection).await?;
        for made in self.schedules.write(&mut *connection).await? {
            let Some(place) = self.scheduling.get(made.place) else {
                continue;
            };
            match &mut done[*place] {
                Ok(Done::Committed(Committed::Applied { conflict })) => *conflict |= !made.same,
                Ok(Done::Created(created)) => {
                    *created = match (made.new, made.same) {
                        (true, _) => Created::New,
                        (false, true) => Created::Same,
                        (false, false) => Created::Conflict,
                    };
                }
                _ => {}
            }
        }
        self.unscheduled.delete(&mut *connection).await?;
        self.messages.write(&mut *connection, now).await?;
        self.acknowledged.acknowledge(&mut *connection).await?;
        self.released.write(&mut *connection).await?;
        self.extended.write(&mut *connection, now).await?;
        self.buried.write(&mut *connection, now).await?;
        tally(connection, self.tally).await
    }
}

async fn tally(
    connection: &mut PgConnection,
    tally: BTreeMap<(State, u32), i64>,
) -> Result<(), Error> {
    let changes: Vec<_> = tally
        .into_iter()
        .filter(|(_, change)| *change != 0)
        .collect();
    if changes.is_empty() {
        return Ok(());
    }
    let states: Vec<&str> = changes
        .iter()
        .map(|((state, _), _)| state.as_str())
        .collect();
    let attempts: Vec<i64> = changes
        .iter()
        .map(|((_, attempt), _)| (*attempt).into())
        .collect();
    let amounts: Vec<i64> = changes.iter().map(|(_, change)| *change).collect();
    let statement = query(statements::TALLY)
        .bind(states)
        .bind(attempts)
        .bind(amounts);
    statement.execute(connection).await.map(drop)
}
