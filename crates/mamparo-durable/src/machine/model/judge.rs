//! What must hold of every write, every send and every message that is acknowledged.

use super::super::{End, Note, Progress, State};
use super::bounds::{Bounds, Repeat};
use super::world::{Did, Entry, Letter, Said, Stage, World};

/// What was found to be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Wrong {
    OldFireClaims,
    ClaimedBeforeItsInstant,
    ScheduleConflict,
    EndChanged,
    TechnicalCountedTwice,
    AnswerWithoutEffect,
    FailedThoughDone,
    SucceededThoughNotDone,
    TooManyAttempts,
    TooManyPostponements,
    AttemptBeforeRefusal,
    TwoEffects,
    NumberUsedTwice,
    Unsound,
    NoAlert,
    /// Nothing can happen any more, and it is not at its end.
    Lost,
}

impl World {
    /// What must hold of every write.
    pub(super) fn judge(&mut self, to: &Progress, letter: Option<Letter>, bounds: &Bounds) {
        let from = self.row.clone();
        if from.state.is_terminal() {
            self.find(Wrong::EndChanged);
        }
        if !to.is_sound() {
            self.find(Wrong::Unsound);
        }
        if to.attempt_current > bounds.attempts
            || to.attempt_next.is_some_and(|next| next > bounds.attempts)
        {
            self.find(Wrong::TooManyAttempts);
        }
        if to.postponements > bounds.postponements {
            self.find(Wrong::TooManyPostponements);
        }
        let order = |at: &Progress| {
            (
                at.attempt_next.unwrap_or(at.attempt_current),
                at.schedule_seq,
            )
        };
        if !to.state.is_terminal() && order(to) < order(&from) {
            self.find(Wrong::NumberUsedTwice);
        }
        if from.state != State::Sending && to.state == State::Sending {
            self.judge_claim(&from, letter);
        }
        if let (
            Some(Letter::Answer {
                said: Said::Technical,
                ..
            }),
            true,
        ) = (letter, to.postponements > from.postponements)
        {
            self.used.counted += 1;
            if self.used.counted > self.used.happened {
                self.find(Wrong::TechnicalCountedTwice);
            }
        }
        let done = self.did.contains(&Did::It);
        match to.end {
            Some(End::Answered) if !done => self.find(Wrong::SucceededThoughNotDone),
            Some(End::Exhausted | End::Cancelled | End::PostponedTooLong) if done => {
                self.find(Wrong::FailedThoughDone)
            }
            _ => {}
        }
    }

    fn judge_claim(&mut self, from: &Progress, letter: Option<Letter>) {
        let Some(Letter::Fire { n, seq }) = letter else {
            return;
        };
        if seq != from.schedule_seq {
            self.find(Wrong::OldFireClaims);
        }
        let armed = |entry: &&Entry| (entry.n, entry.fires, entry.stage) == (n, seq, Stage::Armed);
        if self.schedules.iter().any(|entry| armed(&entry)) {
            self.find(Wrong::ClaimedBeforeItsInstant);
        }
        if n != from.attempt_current {
            self.judge_attempt(n);
        }
    }

    fn judge_attempt(&mut self, n: u32) {
        if n > 1 && self.did[n as usize - 1] != Did::Refuse {
            self.find(Wrong::AttemptBeforeRefusal);
        }
    }

    /// The message is acknowledged. Then an answer to the current attempt must have had its effect.
    pub(super) fn end(&mut self, letter: Option<Letter>, note: Note) {
        if note == Note::Corrupt {
            self.find(Wrong::Unsound);
        }
        let Some(Letter::Answer {
            n,
            said: Said::Done | Said::Refused,
            ..
        }) = letter
        else {
            return;
        };
        let awaited = matches!(self.row.state, State::InFlight | State::Sending)
            || self.row.is_technical_wait();
        if awaited && n == self.row.attempt_current {
            self.find(Wrong::AnswerWithoutEffect);
        }
    }

    /// The dependency gets a request for the first time under its key.
    pub(super) fn serve(&mut self, n: u32, did: Did, bounds: &Bounds) {
        self.judge_attempt(n);
        if n > bounds.attempts {
            self.find(Wrong::TooManyAttempts);
        }
        self.did[n as usize] = did;
        if self.did.iter().filter(|did| **did == Did::It).count() > 1 {
            self.find(Wrong::TwoEffects);
        }
    }

    /// And again under the same key.
    pub(super) fn serve_again(&mut self, n: u32, seq: u32, repeat: Repeat) {
        match repeat {
            Repeat::Silent => {}
            Repeat::TimesOut => self.technical(n, seq),
            Repeat::Answers => {
                let said = if self.did[n as usize] == Did::It {
                    Said::Done
                } else {
                    Said::Refused
                };
                self.push(Letter::Answer { n, seq, said });
            }
        }
    }

    pub(super) fn technical(&mut self, n: u32, seq: u32) {
        // More of them than are ever counted are as good as fewer.
        self.used.happened = (self.used.happened + 1).min(6);
        self.push(Letter::Answer {
            n,
            seq,
            said: Said::Technical,
        });
    }

    /// Whether nobody was told of an end that a person must hear of.
    pub(super) fn is_untold(&self) -> bool {
        let alerts = matches!(
            self.row.end,
            Some(End::Exhausted | End::OutcomeUnknown | End::PostponedTooLong)
        );
        alerts && !self.told
    }
}
