//! One state of the world around a transaction, and what a step does to it.

use super::super::{
    AlertKind, Answer, Ask, Effect, Fire, Gate, Input, Outcome, Patience, Progress, Record, Reply,
    Run, Schedule, State, Write,
};
use super::bounds::{Bounds, LATER, Looks, Setting, TOO_LATE, Without, hour};
use super::judge::Wrong;
use crate::handler::plan;

/// As many copies of one message as are told apart from one more.
const COPIES: usize = 2;

/// A message in one of the three queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Letter {
    Answer { n: u32, seq: u32, said: Said },
    Fire { n: u32, seq: u32 },
    Request { n: u32, seq: u32 },
}

/// What the caller of the dependency heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Said {
    Done,
    Refused,
    Technical,
}

/// A handler at work: what is lost if it dies, but for the message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Worker {
    pub(super) letter: Option<Letter>,
    pub(super) run: Run,
}

/// What the scheduler knows of one schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Entry {
    pub(super) n: u32,
    pub(super) seq: u32,
    /// The payload; another number only if names lack it.
    pub(super) fires: u32,
    instant: u32,
    pub(super) stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    Armed,
    /// Its instant has come and it has yet to fire: it is late, or was made again after it had fired.
    Overdue,
    Fired,
    Gone,
}

/// What the dependency did under one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Did {
    Nothing,
    It,
    Refuse,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    pub(super) row: Progress,
    pub(super) letters: Vec<Letter>,
    pub(super) schedules: Vec<Entry>,
    pub(super) a: Vec<Worker>,
    pub(super) b: Vec<Worker>,
    pub(super) reconciler: Option<Worker>,
    pub(super) operator: Option<Worker>,
    /// By attempt; the first is never used.
    pub(super) did: [Did; 4],
    pub(super) used: Used,
    /// A person was told of the end, or whoever had to tell died and nothing will be delivered again.
    pub(super) told: bool,
    pub(super) wrong: Option<Wrong>,
}

/// How much of the bounds is used up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Used {
    pub(super) crashes: u8,
    pub(super) duplicates: u8,
    pub(super) losses: u8,
    pub(super) technical: u8,
    pub(super) breaker: u8,
    pub(super) operators: u8,
    pub(super) looks: u8,
    /// As often as the reconciler sent again.
    pub(super) resends: u8,
    /// Technical failures that happened, and that were counted.
    pub(super) happened: u8,
    pub(super) counted: u8,
}

impl World {
    pub(super) fn new(bounds: &Bounds, setting: &Setting) -> Self {
        let terms = setting.terms.clone();
        let (record, letters) = if bounds.sends_original {
            // Whoever began it sends it by the fire of its original.
            (Record::sending(terms), vec![Letter::Fire { n: 1, seq: 0 }])
        } else {
            (
                Record::in_flight(terms),
                vec![Letter::Request { n: 1, seq: 0 }],
            )
        };
        Self {
            row: record.progress,
            letters,
            schedules: Vec::new(),
            a: Vec::new(),
            b: Vec::new(),
            reconciler: None,
            operator: None,
            did: [Did::Nothing; 4],
            used: Used::default(),
            told: false,
            wrong: None,
        }
    }

    pub(super) fn push(&mut self, letter: Letter) {
        if self
            .letters
            .iter()
            .filter(|known| **known == letter)
            .count()
            < COPIES
        {
            self.letters.push(letter);
            self.letters.sort_unstable();
        }
    }

    pub(super) fn remove(&mut self, letter: Letter) {
        if let Some(at) = self.letters.iter().position(|known| *known == letter) {
            self.letters.remove(at);
        }
    }

    pub(super) fn find(&mut self, wrong: Wrong) {
        self.wrong.get_or_insert(wrong);
    }

    /// A handler takes a message and reads the row.
    pub(super) fn work(
        &self,
        letter: Option<Letter>,
        input: Input,
        setting: &Setting,
        hours: u32,
    ) -> Worker {
        let mut run = Run::new(input);
        let loaded = Reply::Loaded(Some(self.row.clone()));
        run.reply(loaded, &setting.terms, &setting.context(hours));
        Worker { letter, run }
    }

    pub(super) fn hours(&self) -> u32 {
        u32::from(self.used.crashes)
    }

    /// By when a message is handled.
    pub(super) fn hours_of(&self, letter: Option<Letter>) -> u32 {
        match letter {
            Some(Letter::Fire { seq, .. }) if seq == Fire::GIVES_UP => TOO_LATE,
            _ => self.hours(),
        }
    }

    /// One question of a worker's is answered. `None` when it is at its end.
    pub(super) fn step(
        &mut self,
        mut worker: Worker,
        bounds: &Bounds,
        setting: &Setting,
        hours: u32,
    ) -> Option<Worker> {
        if bounds.outbox {
            return self.step_at_once(worker, bounds, setting, hours);
        }
        let reply = match worker.run.ask() {
            Ask::Load => Reply::Loaded(Some(self.row.clone())),
            Ask::Write(write) => {
                let reconciles = worker.letter.is_none();
                self.write(&write.clone(), worker.letter, bounds, reconciles)
            }
            Ask::Effect(effect) => self.perform(&effect.clone(), bounds),
            Ask::End { note, .. } => {
                self.end(worker.letter, note);
                return None;
            }
        };
        worker
            .run
            .reply(reply, &setting.terms, &setting.context(hours));
        Some(worker)
    }

    /// The whole way in one transaction, as with an outbox; if it misses, it is decided again.
    fn step_at_once(
        &mut self,
        mut worker: Worker,
        bounds: &Bounds,
        setting: &Setting,
        hours: u32,
    ) -> Option<Worker> {
        let plan = plan(worker.run.clone(), &setting.terms, &setting.context(hours));
        if plan
            .step
            .writes
            .first()
            .is_some_and(|write| !self.fits(write, bounds))
        {
            worker.run.reply(
                Reply::Missed(Some(self.row.clone())),
                &setting.terms,
                &setting.context(hours),
            );
            return Some(worker);
        }
        for write in &plan.step.writes {
            self.write(write, worker.letter, bounds, false);
        }
        let alerts = plan.alerts.into_iter().map(Effect::Alert);
        for effect in plan.step.effects.into_iter().chain(alerts) {
            self.perform(&effect, bounds);
        }
        self.end(worker.letter, plan.note);
        None
    }

    fn fits(&self, write: &Write, bounds: &Bounds) -> bool {
        let (stored, mut expect) = (self.row.expect(), write.expect);
        if bounds.lacks(Without::Fence) || bounds.lacks(Without::FenceOfSeq) {
            expect.schedule_seq = stored.schedule_seq;
        }
        if bounds.lacks(Without::Fence) {
            expect.attempt_next = stored.attempt_next;
        }
        expect == stored
    }

    fn write(
        &mut self,
        write: &Write,
        letter: Option<Letter>,
        bounds: &Bounds,
        reconciles: bool,
    ) -> Reply {
        let unconditional = reconciles && bounds.lacks(Without::ReconcilersFence);
        if !unconditional && !self.fits(write, bounds) {
            return Reply::Missed(Some(self.row.clone()));
        }
        let mut to = write.to.clone();
        // Thresholds are another matter here: when the reconciler looks.
        to.updated_at = hour(0);
        self.judge(&to, letter, bounds);
        self.row = to;
        if self.row.state.is_terminal() {
            self.forget();
        }
        Reply::Done
    }

    fn perform(&mut self, effect: &Effect, bounds: &Bounds) -> Reply {
        match *effect {
            Effect::Schedule(schedule) => return self.schedule(schedule, bounds),
            Effect::Unschedule { attempt, seq } => self
                .schedules
                .retain(|entry| (entry.n, entry.seq) != (attempt, seq)),
            Effect::Send { attempt, seq } => self.push(Letter::Request { n: attempt, seq }),
            Effect::Refire { attempt, seq } => self.push(Letter::Fire { n: attempt, seq }),
            Effect::Alert(AlertKind::ScheduleConflict) => self.find(Wrong::ScheduleConflict),
            Effect::Alert(AlertKind::Failed(_)) => self.told = true,
            Effect::Alert(_) => {}
        }
        Reply::Done
    }

    fn schedule(&mut self, schedule: Schedule, bounds: &Bounds) -> Reply {
        if self.row.state.is_terminal() {
            return Reply::Done;
        }
        let Schedule {
            attempt: n,
            seq: fires,
            fire_at,
        } = schedule;
        let seq = if bounds.lacks(Without::SeqInNames) {
            0
        } else {
            fires
        };
        let instant = u32::try_from(fire_at.millis() / 3_600_000).unwrap_or(u32::MAX);
        let known = self
            .schedules
            .iter_mut()
            .find(|entry| (entry.n, entry.seq) == (n, seq));
        match known {
            None => {
                let stage = Stage::Armed;
                self.schedules.push(Entry {
                    n,
                    seq,
                    fires,
                    instant,
                    stage,
                });
                self.schedules
                    .sort_unstable_by_key(|entry| (entry.n, entry.seq));
            }
            Some(entry) if entry.stage == Stage::Gone => {
                (entry.fires, entry.instant, entry.stage) = (fires, instant, Stage::Overdue);
            }
            Some(entry) if (entry.fires, entry.instant) != (fires, instant) => {
                return Reply::Conflict;
            }
            Some(_) => {}
        }
        Reply::Done
    }

    /// What can no longer matter once it is at its end, so that states that differ only in it are one.
    fn forget(&mut self) {
        self.schedules
            .retain(|entry| matches!(entry.stage, Stage::Armed | Stage::Overdue));
    }

    /// A schedule is due. Its fire is published.
    pub(super) fn fires(&mut self, at: usize) {
        let Some(entry) = self.schedules.get_mut(at) else {
            return;
        };
        entry.stage = Stage::Fired;
        let (n, seq) = (entry.n, entry.fires);
        if self.row.state.is_terminal() {
            self.forget();
        }
        self.push(Letter::Fire { n, seq });
    }

    /// Nothing but time and the reconciler could bring it further.
    pub(super) fn is_calm(&self) -> bool {
        let armed = self
            .schedules
            .iter()
            .any(|entry| matches!(entry.stage, Stage::Armed | Stage::Overdue));
        let idle = self.a.is_empty()
            && self.b.is_empty()
            && self.reconciler.is_none()
            && self.operator.is_none();
        idle && self.letters.is_empty() && !armed
    }

    /// Everything is stuck that waits for anything but an instant that has not come.
    pub(super) fn reconcilers_hours(&self) -> u32 {
        let waits = self
            .schedules
            .iter()
            .any(|entry| Some(entry.n) == self.row.attempt_next && entry.stage == Stage::Armed);
        if waits && self.row.state == State::Scheduled {
            self.hours()
        } else {
            LATER
        }
    }

    /// The reconciler looks; `None` if it finds nothing to do.
    pub(super) fn reconcile(&self, setting: &Setting, looks: Looks) -> Option<Worker> {
        let gives_up = self.row.state == State::InFlight && self.used.resends > 0 && self.is_calm();
        let hours = if gives_up {
            TOO_LATE
        } else {
            self.reconcilers_hours()
        };
        if looks == Looks::Never || self.row.state.is_terminal() {
            return None;
        }
        let input = Input::Reconcile(Patience::default());
        let worker = self.work(None, input, setting, hours);
        let finds = !matches!(worker.run.ask(), Ask::End { .. });
        finds.then_some(worker)
    }

    /// Nobody is left to tell again: a message is lost, or whoever had none died.
    pub(super) fn excuse(&mut self) {
        self.told = true;
    }

    pub(super) fn input(letter: Letter, gate: Gate) -> Option<Input> {
        match letter {
            Letter::Answer { n, seq, said } => {
                let outcome = match said {
                    Said::Done => Outcome::Success,
                    Said::Refused => Outcome::Refused,
                    Said::Technical => Outcome::Technical,
                };
                Some(Input::Answer(Answer::new(n, seq, outcome)))
            }
            Letter::Fire { n, seq } => Some(Input::Fire(Fire::new(n, seq).with_gate(gate))),
            Letter::Request { .. } => None,
        }
    }
}
