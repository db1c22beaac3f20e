//! A message's whole way, before any of it is done.

use crate::backend::Step;
use crate::machine::{AlertKind, Ask, Context, Effect, Note, Reply, Run, Settle, Terms};

/// What a message comes to if nothing changes meanwhile: one step for a backend that does it at once.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Plan {
    /// The writes and the effects.
    pub step: Step,
    /// What to tell a person once it is done.
    pub alerts: Vec<AlertKind>,
    /// What was decided.
    pub note: Note,
    /// How to settle the message.
    pub settle: Settle,
}

/// Follows a run, that has what is stored, to its end, as if every write applied.
///
/// Within one transaction that is so: if the first write applies, the others do.
#[must_use]
pub fn plan(mut run: Run, terms: &Terms, context: &Context<'_>) -> Plan {
    let mut step = Step::new(terms.id.clone());
    let mut alerts = Vec::new();
    loop {
        match run.ask() {
            Ask::Write(write) => step.writes.push(write.clone()),
            Ask::Effect(Effect::Alert(kind)) => alerts.push(*kind),
            Ask::Effect(effect) => step.effects.push(effect.clone()),
            Ask::End { note, settle } => {
                return Plan {
                    step,
                    alerts,
                    note,
                    settle,
                };
            }
            // Nothing is stored: the run ends.
            Ask::Load => {
                run.reply(Reply::Loaded(None), terms, context);
                continue;
            }
        }
        run.reply(Reply::Done, terms, context);
    }
}
