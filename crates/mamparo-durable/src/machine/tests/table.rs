//! The table of docs/durable.md, row by row: what each input does in each state.

use super::super::{Answer, End, Fire, Gate, Input, Outcome, Patience, Progress, State};
use super::support::{at, judge_at, stands};

/// Where a transaction of at most two attempts stands, as the table's columns have it.
fn columns() -> Vec<Progress> {
    let ended = |end: End| Progress {
        end: Some(end),
        ..stands(end.state(), 1, None, 0)
    };
    vec![
        stands(State::InFlight, 1, None, 0),
        stands(State::Scheduling, 1, Some(2), 0),
        stands(State::Scheduled, 1, Some(2), 0),
        stands(State::Scheduling, 1, Some(1), 0),
        stands(State::Scheduled, 1, Some(1), 0),
        stands(State::Sending, 1, Some(1), 0),
        ended(End::Answered),
        ended(End::Exhausted),
    ]
}

/// An input's name, and how it is made for a transaction.
type Row = (&'static str, fn(&Progress) -> Input);

/// The table's rows. Answers and fires are those of the current attempt or schedule.
fn rows() -> Vec<Row> {
    fn answer(progress: &Progress, outcome: Outcome) -> Input {
        Input::Answer(Answer::new(
            progress.attempt_current,
            progress.schedule_seq,
            outcome,
        ))
    }
    fn fire(progress: &Progress) -> Fire {
        Fire::new(progress.attempt_next.unwrap_or(1), progress.schedule_seq)
    }
    vec![
        ("success", |it| answer(it, Outcome::Success)),
        ("refused, attempts left", |it| answer(it, Outcome::Refused)),
        ("declined", |it| answer(it, Outcome::Declined)),
        ("technical failure", |it| answer(it, Outcome::Technical)),
        ("fire", |it| Input::Fire(fire(it))),
        ("fire, breaker open", |it| {
            Input::Fire(fire(it).with_gate(Gate::Postpone { until: None }))
        }),
        ("resolve", |_| Input::Resolve { reason: None }),
        ("cancel", |_| Input::Cancel { reason: None }),
        ("move, fire now", |_| Input::FireNow { reason: None }),
        ("reconcile, past its threshold", |_| {
            Input::Reconcile(Patience::default())
        }),
    ]
}

/// One cell: the state that is written, or what is done without a write.
fn cell(progress: &Progress, input: &Input) -> String {
    let decision = judge_at(at(24), progress, input);
    let mut cell = match &decision.write {
        Some(write)
            if write.to.state == progress.state
                && write.event.cause == super::super::Cause::Resent =>
        {
            "sent again".to_owned()
        }
        Some(write) if write.event.cause == super::super::Cause::Refired => {
            "fired again".to_owned()
        }
        Some(write) => {
            let technical = if write.to.is_technical_wait() {
                " (technical)"
            } else {
                ""
            };
            format!("→ {}{technical}", write.to.state)
        }
        None => match decision.note.as_str() {
            "resumed" => "resumes".to_owned(),
            "not_allowed" => "refused".to_owned(),
            _ => "–".to_owned(),
        },
    };
    if decision
        .effects
        .iter()
        .any(|effect| matches!(effect, super::super::Effect::Alert(_)))
    {
        cell.push_str(" !");
    }
    cell
}

fn table() -> String {
    let mut lines = vec![
        "| input | IN_FLIGHT | SCHEDULING | SCHEDULED | SCHEDULING, technical | SCHEDULED, technical \
         | SENDING | SUCCEEDED | FAILED |"
            .to_owned(),
        "|---|---|---|---|---|---|---|---|---|".to_owned(),
    ];
    for (name, input) in rows() {
        let cells: Vec<String> = columns()
            .iter()
            .map(|progress| cell(progress, &input(progress)))
            .collect();
        lines.push(format!("| {name} | {} |", cells.join(" | ")));
    }
    lines.join("\n")
}

#[test]
fn the_documented_table_is_what_the_machine_does() {
    let docs = include_str!("../../../../../docs/durable.md");
    let table = table();
    assert!(
        docs.contains(&table),
        "docs/durable.md should hold:\n{table}"
    );
}

/// Its fire may be waiting in the queue: firing it again with every cycle would fill that.
#[test]
fn an_overdue_one_is_fired_again_once_in_its_patience() {
    let waits = stands(State::Scheduled, 1, Some(2), 0);
    let again = Input::Reconcile(Patience::default());
    let fired = judge_at(at(24), &waits, &again).write.unwrap().to;
    assert!(judge_at(at(24), &fired, &again).write.is_none());
    assert!(judge_at(at(25), &fired, &again).write.is_some());
}
