use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use crate::backend::{
    Begun, Committed, Created, DeadLetter, Message, NewTransaction, QueueName, Request, Step,
    Written,
};
use crate::machine::{AuditEvent, Effect, Record, Schedule, TransactionId, Utc, Write};

/// Everything that is stored.
#[derive(Debug, Default)]
pub(super) struct World {
    pub(super) transactions: BTreeMap<TransactionId, Row>,
    schedules: BTreeMap<String, (TransactionId, Schedule)>,
    due: BTreeSet<(Utc, String)>,
    queues: [Letters; 3],
    /// When the whole burst of each limit is there again, in nanoseconds.
    pub(super) limits: BTreeMap<[u8; 16], u64>,
    /// The last number that was given to a message, a lease or a dead letter.
    number: u64,
}

#[derive(Debug)]
pub(super) struct Row {
    pub(super) record: Record,
    pub(super) request: Bytes,
    pub(super) history: Vec<AuditEvent>,
}

/// One queue, and its dead letters.
#[derive(Debug, Default)]
pub(super) struct Letters {
    pub(super) letters: BTreeMap<u64, Letter>,
    pub(super) dead: BTreeMap<u64, DeadLetter>,
}

#[derive(Debug)]
pub(super) struct Letter {
    pub(super) message: Message,
    /// Until then it is under a lease, or delayed.
    pub(super) ready_at: Utc,
    /// 0 when nobody has it.
    pub(super) lease: u64,
    pub(super) deliveries: u32,
    pub(super) since: Utc,
}

impl World {
    pub(super) fn next_number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    pub(super) fn letters(&mut self, queue: QueueName) -> &mut Letters {
        &mut self.queues[queue as usize]
    }

    pub(super) fn begin(&mut self, new: NewTransaction) -> Begun {
        let history = vec![new.event()];
        let NewTransaction { record, request } = new;
        if let Some(stored) = self.transactions.get(&record.terms.id) {
            return Begun::Exists(stored.record.clone());
        }
        let row = Row {
            record,
            request,
            history,
        };
        self.transactions.insert(row.record.terms.id.clone(), row);
        Begun::New
    }

    pub(super) fn write(&mut self, id: &TransactionId, write: Write) -> Written {
        let Some(row) = self.transactions.get_mut(id) else {
            return Written::Missed(None);
        };
        if row.record.progress.expect() != write.expect {
            return Written::Missed(Some(row.record.clone()));
        }
        row.record.progress = write.to;
        row.history.push(write.event);
        Written::Applied
    }

    pub(super) fn forget(&mut self, ended_by: Utc, limit: usize) -> u64 {
        let records = self.transactions.values().map(|row| &row.record);
        let mut ended: Vec<(Utc, TransactionId)> = records
            .filter(|it| it.progress.state.is_terminal() && it.progress.updated_at <= ended_by)
            .map(|it| (it.progress.updated_at, it.terms.id.clone()))
            .collect();
        ended.sort_unstable();
        ended.truncate(limit);
        for (_, id) in &ended {
            self.transactions.remove(id);
        }
        ended.len() as u64
    }

    pub(super) fn schedule(&mut self, id: TransactionId, schedule: Schedule) -> Created {
        let name = schedule.name(&id);
        if let Some(there) = self.schedules.get(&name) {
            let same = *there == (id, schedule);
            return if same {
                Created::Same
            } else {
                Created::Conflict
            };
        }
        self.due.insert((schedule.fire_at, name.clone()));
        self.schedules.insert(name, (id, schedule));
        Created::New
    }

    pub(super) fn unschedule(&mut self, name: &str) {
        if let Some((_, schedule)) = self.schedules.remove(name) {
            self.due.remove(&(schedule.fire_at, name.to_owned()));
        }
    }

    pub(super) fn publish(&mut self, message: Message, since: Utc) {
        let number = self.next_number();
        let letter = Letter {
            ready_at: since,
            lease: 0,
            deliveries: 0,
            since,
            message,
        };
        self.letters(letter.message.queue())
            .letters
            .insert(number, letter);
    }

    /// Turns the schedules that are due into fires.
    pub(super) fn fire_due(&mut self, now: Utc) {
        while let Some((instant, name)) = self
            .due
            .first()
            .cloned()
            .filter(|(instant, _)| *instant <= now)
        {
            self.due.pop_first();
            if let Some((id, Schedule { attempt, seq, .. })) = self.schedules.remove(&name) {
                self.publish(Message::Fire { id, attempt, seq }, instant);
            }
        }
    }

    pub(super) fn next_due(&self) -> Option<Utc> {
        self.due.first().map(|(instant, _)| *instant)
    }

    pub(super) fn scheduled(&self) -> usize {
        self.schedules.len()
    }

    pub(super) fn commit(&mut self, step: Step, now: Utc) -> Committed {
        if let Some(missed) = self.misses(&step) {
            return Committed::Missed(missed);
        }
        let Step {
            id,
            begin,
            writes,
            effects,
            settle,
        } = step;
        if let Some(new) = begin {
            self.begin(new);
        }
        for write in writes {
            self.write(&id, write);
        }
        let mut conflict = false;
        for effect in effects {
            conflict |= self.perform(&id, &effect, now) == Some(Created::Conflict);
        }
        if let Some(receipt) = settle {
            self.letters(receipt.queue)
                .settle(receipt.message, receipt.lease);
        }
        Committed::Applied { conflict }
    }

    /// What is stored, if the step does not fit it.
    fn misses(&self, step: &Step) -> Option<Option<Record>> {
        let stored = self.transactions.get(&step.id).map(|row| &row.record);
        let mut progress = match (&step.begin, stored) {
            (Some(_), Some(stored)) => return Some(Some(stored.clone())),
            (Some(new), None) => &new.record.progress,
            (None, Some(stored)) => &stored.progress,
            (None, None) => return Some(None),
        };
        for write in &step.writes {
            if progress.expect() != write.expect {
                return Some(stored.cloned());
            }
            progress = &write.to;
        }
        None
    }

    fn perform(&mut self, id: &TransactionId, effect: &Effect, now: Utc) -> Option<Created> {
        match *effect {
            Effect::Schedule(schedule) => return Some(self.schedule(id.clone(), schedule)),
            Effect::Unschedule { attempt, seq } => {
                self.unschedule(&crate::machine::schedule_name(id, attempt, seq))
            }
            Effect::Refire { attempt, seq } => self.publish(
                Message::Fire {
                    id: id.clone(),
                    attempt,
                    seq,
                },
                now,
            ),
            Effect::Send { attempt, seq } => {
                let row = self.transactions.get(id)?;
                let request = Request::new(&row.record.terms, attempt, seq, row.request.clone());
                self.publish(Message::Request(request), now);
            }
            Effect::Alert(_) => {}
        }
        None
    }
}

impl Letters {
    /// Removes a message, if that lease still has it.
    pub(super) fn settle(&mut self, message: u64, lease: u64) -> Option<Letter> {
        let held = self.letters.get(&message)?.lease == lease;
        if held {
            self.letters.remove(&message)
        } else {
            None
        }
    }
}
