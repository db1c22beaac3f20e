//! One message on its way through the machine.

use super::decide::decide;
use super::{AlertKind, Context, Decision, Effect, Guard, Input, Note, Progress, Terms, Write};

/// One message on its way through the machine: what to ask the store or the scheduler next, and what their replies lead to.
///
/// It holds no resource. Whoever drives it may die at any question: the message is delivered again, and a new run finds what
/// the first one left.
///
/// ```
/// use mamparo_durable::machine::{Answer, Ask, Context, Input, Note, Outcome, Record, Reply, Run, Terms, TransactionId, Utc};
/// use mamparo_durable::policy::Policy;
///
/// let (policy, now) = (Policy::default(), Utc::from_millis(1_700_000_000_000)?);
/// let record = Record::in_flight(Terms::new(TransactionId::new("payment-1")?, "payment", &policy, now));
/// let context = Context::new(now, 0.0, &policy);
///
/// let mut run = Run::new(Input::Answer(Answer::new(1, 0, Outcome::Success)));
/// assert!(matches!(run.ask(), Ask::Load));
/// run.reply(Reply::Loaded(Some(record.progress)), &record.terms, &context);
/// assert!(matches!(run.ask(), Ask::Write(_)));
/// run.reply(Reply::Done, &record.terms, &context);
/// assert!(matches!(run.ask(), Ask::End { note: Note::Applied, .. }));
/// # Ok::<(), mamparo_core::InvalidSetting>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Run {
    input: Input,
    /// What kind the decision on the message itself was; the steps that follow from it don't change that.
    note: Note,
    following: bool,
    stage: Stage,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Stage {
    Load,
    Write { write: Box<Write>, after: After },
    Effects { progress: Progress, after: After },
    End,
}

/// What follows a write. The effects are in reverse, so that the next one is the last.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct After {
    effects: Vec<Effect>,
    then: Option<Input>,
}

/// What is to be asked next.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::exhaustive_enums,
    reason = "whoever drives a run must know every question"
)]
pub enum Ask<'a> {
    /// Read the transaction.
    Load,
    /// Write, if what is stored is as expected.
    Write(&'a Write),
    /// Do this.
    Effect(&'a Effect),
    /// Nothing more: settle the message.
    End {
        /// What was decided.
        note: Note,
        /// How to settle it.
        settle: Settle,
    },
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "every question has these replies")]
pub enum Reply {
    /// What is stored, if anything is.
    Loaded(Option<Progress>),
    /// It was written or done, or had been done before.
    Done,
    /// What is stored was not as expected; this is it, if it was looked at.
    Missed(Option<Progress>),
    /// A schedule of that name exists with another instant or payload.
    Conflict,
}

/// How a message is settled once its run is at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "every queue can do these two")]
pub enum Settle {
    /// It was handled, or there is nothing to do about it.
    Acknowledge,
    /// Nobody can handle it; a person must look.
    DeadLetter,
}

impl Run {
    /// Begins with a message about a transaction that has yet to be read.
    #[must_use]
    pub const fn new(input: Input) -> Self {
        Self {
            input,
            note: Note::Already,
            following: false,
            stage: Stage::Load,
        }
    }

    /// Says what to do next.
    #[must_use]
    pub fn ask(&self) -> Ask<'_> {
        match &self.stage {
            Stage::Load => Ask::Load,
            Stage::Write { write, .. } => Ask::Write(write),
            Stage::Effects { after, .. } => {
                after.effects.last().map_or_else(|| self.end(), Ask::Effect)
            }
            Stage::End => self.end(),
        }
    }

    /// Takes the reply to what was asked, and moves on. A reply that does not fit the question changes nothing.
    pub fn reply(&mut self, reply: Reply, terms: &Terms, context: &Context<'_>) {
        let stage = std::mem::replace(&mut self.stage, Stage::End);
        self.stage = match (stage, reply) {
            (Stage::Load, Reply::Loaded(Some(progress))) => self.decide(progress, terms, context),
            (Stage::Load, Reply::Loaded(None)) => self.unknown(),
            (Stage::Write { write, after }, Reply::Done) => {
                self.follow(write.to, after, terms, context)
            }
            // Only a fresh decision may drop the message.
            (Stage::Write { .. }, Reply::Missed(_)) if !context.holds(Guard::RereadAfterMiss) => {
                Stage::End
            }
            (Stage::Write { .. }, Reply::Missed(Some(progress))) => {
                self.decide(progress, terms, context)
            }
            (Stage::Write { .. }, Reply::Missed(None)) => Stage::Load,
            (
                Stage::Effects {
                    progress,
                    mut after,
                },
                Reply::Done,
            ) => {
                after.effects.pop();
                self.follow(progress, after, terms, context)
            }
            (
                Stage::Effects {
                    progress,
                    mut after,
                },
                Reply::Conflict,
            ) => {
                after.effects.pop();
                after
                    .effects
                    .push(Effect::Alert(AlertKind::ScheduleConflict));
                Stage::Effects { progress, after }
            }
            (stage, _) => stage,
        };
    }

    fn decide(&mut self, progress: Progress, terms: &Terms, context: &Context<'_>) -> Stage {
        let decision = decide(terms, &progress, &self.input, context);
        let Decision {
            write,
            mut effects,
            then,
            note,
        } = decision;
        if !self.following {
            self.note = note;
        }
        effects.reverse();
        let after = After { effects, then };
        match write {
            Some(write) => Stage::Write {
                write: Box::new(write),
                after,
            },
            None => self.follow(progress, after, terms, context),
        }
    }

    /// What follows a write: the effects, then the next input, which finds what was written.
    fn follow(
        &mut self,
        progress: Progress,
        after: After,
        terms: &Terms,
        context: &Context<'_>,
    ) -> Stage {
        if !after.effects.is_empty() {
            return Stage::Effects { progress, after };
        }
        match after.then {
            Some(input) => {
                self.input = input;
                self.following = true;
                self.decide(progress, terms, context)
            }
            None => Stage::End,
        }
    }

    const fn unknown(&mut self) -> Stage {
        self.note = Note::Unknown;
        Stage::End
    }

    fn end(&self) -> Ask<'_> {
        let note = self.note;
        let settle = match note {
            Note::Unknown | Note::Corrupt => Settle::DeadLetter,
            _ => Settle::Acknowledge,
        };
        Ask::End { note, settle }
    }
}
