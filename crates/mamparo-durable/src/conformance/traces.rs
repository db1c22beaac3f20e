//! The model checker's traces, replayed against a real store.

use std::time::Duration;

use super::support::{begin, load, record, write};
use crate::backend::{Backend, Created, Written};
use crate::machine::{
    AuditEvent, Cause, End, Expect, Progress, Record, Schedule, State, Utc, Write,
};

/// Runs of the model: a line for each thing that it asked of a store or a scheduler, and what came of it; an empty line ends a
/// run. The model's own test holds that they are what it does.
pub const TRACES: &str = include_str!("traces.txt");

/// The model's hour 0: far enough away that nothing fires meanwhile.
const HOUR_ZERO: &str = "2200-01-01T00:00:00Z";

/// Each write, schedule and deletion of each trace comes to what it came to in the model, and the end is the same.
pub async fn what_the_models_traces_write_is_what_they_say(backend: Backend) {
    let traces: Vec<&str> = TRACES
        .split("\n\n")
        .filter(|trace| !trace.trim().is_empty())
        .collect();
    assert!(traces.len() > 20, "{} traces", traces.len());
    for (number, trace) in traces.into_iter().enumerate() {
        replay(&backend, &format!("trace_{number}"), trace).await;
    }
}

async fn replay(backend: &Backend, name: &str, trace: &str) {
    let at = record(name);
    begin(backend, &at).await;
    let mut applied = 0;
    for line in trace.lines() {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("begin") => {
                let to = Line(words).progress(&at);
                assert_eq!(
                    write(backend, &at.terms.id, asked(at.progress.expect(), to)).await,
                    Written::Applied
                );
                applied += 1;
            }
            Some("write") => {
                let mut words = Line(words);
                let (expect, to) = (words.expect(), words.progress(&at));
                let misses = words.word() == "missed";
                let written = write(backend, &at.terms.id, asked(expect, to)).await;
                assert_eq!(
                    written != Written::Applied,
                    misses,
                    "{name}: {line}: {written:?}"
                );
                applied += usize::from(!misses);
            }
            Some("schedule") => {
                let mut words = Line(words);
                let schedule = Schedule {
                    attempt: words.number(),
                    seq: words.number(),
                    fire_at: words.instant().unwrap(),
                };
                let created = backend
                    .scheduler()
                    .create(vec![(at.terms.id.clone(), schedule)])
                    .await
                    .remove(0)
                    .unwrap();
                let said = if created == Created::New {
                    "new"
                } else {
                    "same"
                };
                assert_eq!(said, words.word(), "{name}: {line}: {created:?}");
            }
            Some("unschedule") => {
                let mut words = Line(words);
                let (attempt, seq) = (words.number(), words.number());
                backend
                    .scheduler()
                    .delete(at.terms.id.clone(), attempt, seq)
                    .await
                    .unwrap();
            }
            Some("end") => {
                let stored = load(backend, &at.terms.id).await.unwrap();
                assert_eq!(stored.progress, Line(words).progress(&at), "{name}: {line}");
            }
            other => panic!("{name}: {other:?} is no word of a trace"),
        }
    }
    let history = backend
        .store()
        .history(at.terms.id.clone(), 0, 1_000)
        .await
        .unwrap();
    assert_eq!(history.len(), applied + 1, "{name}");
}

fn asked(expect: Expect, to: Progress) -> Write {
    let event = AuditEvent::new(to.updated_at, Some(expect.state), to.state, Cause::Moved);
    Write::new(expect, to, event)
}

struct Line<'a>(std::str::SplitWhitespace<'a>);

impl Line<'_> {
    fn word(&mut self) -> &str {
        self.0.next().unwrap_or_default()
    }

    fn number(&mut self) -> u32 {
        self.word().parse().unwrap()
    }

    fn optional(&mut self) -> Option<u32> {
        self.word().parse().ok()
    }

    fn instant(&mut self) -> Option<Utc> {
        let zero: Utc = HOUR_ZERO.parse().unwrap();
        self.optional()
            .map(|hours| zero.plus(Duration::from_secs(3600) * hours))
    }

    fn expect(&mut self) -> Expect {
        let state = State::parse(self.word()).unwrap();
        Expect {
            state,
            attempt_current: self.number(),
            attempt_next: self.optional(),
            schedule_seq: self.number(),
        }
    }

    fn progress(&mut self, record: &Record) -> Progress {
        let expect = self.expect();
        let postponements = self.number();
        let next_fire_at = self.instant();
        let end = End::parse(&self.word().replace('_', " "));
        Progress {
            state: expect.state,
            attempt_current: expect.attempt_current,
            attempt_next: expect.attempt_next,
            schedule_seq: expect.schedule_seq,
            postponements,
            next_fire_at,
            end,
            ..record.progress.clone()
        }
    }
}
