//! Times a case and the first of its group in turns, so that whatever slows the machine slows both.

use std::cell::RefCell;
use std::time::Duration;

use criterion::Criterion;
use mamparo_core::BoxError;
use mamparo_core::clock;

use super::cpu;
use crate::cases::{Group, latency};

pub(crate) const WARM_UP: Duration = Duration::from_millis(500);
pub(crate) const MEASUREMENT: Duration = Duration::from_secs(1);

/// Calls between two looks at the clock, even where criterion asks for fewer: a short turn would measure its own start.
const TURN: u64 = 2_000;

/// A case in one turn, beside the first of its group.
#[derive(Clone, Copy)]
pub(crate) struct Turn {
    pub(crate) case: Took,
    pub(crate) first: Took,
}

/// What one call took, in nanoseconds.
#[derive(Clone, Copy, Default)]
pub(crate) struct Took {
    pub(crate) cpu: f64,
    pub(crate) wall: f64,
    /// Of the calls of a turn, where each was timed.
    pub(crate) p99: Option<f64>,
}

/// The turns of each case of a group, in its order; no turns for a case that the command line left out.
pub(crate) type Timed = Vec<Vec<Turn>>;

/// Times all cases of a group, as far as criterion's own arguments select them.
pub(crate) fn time(criterion: &mut Criterion, group: &Group) -> Result<Timed, BoxError> {
    let mut timed = Vec::new();
    let mut shown = criterion.benchmark_group(group.name);
    for case in &group.cases {
        let (mut work, mut first) = (case.make()?, group.cases[0].make()?);
        let turns = RefCell::new(Vec::new());
        shown.bench_function(case.name, |bencher| {
            bencher.iter_custom(|calls| {
                let mut turns = turns.borrow_mut();
                let before = turns.len();
                for _ in 0..(calls / TURN).max(1) {
                    let turn = turn(&mut *work, &mut *first, turns.len());
                    turns.push(turn);
                }
                let new = &turns[before..];
                let each = new.iter().map(|turn| turn.case.cpu).sum::<f64>() / new.len() as f64;
                Duration::from_nanos((each * calls as f64) as u64)
            });
        });
        timed.push(turns.into_inner());
    }
    shown.finish();
    Ok(timed)
}

/// One turn; every other one begins with the first of the group.
fn turn(work: &mut dyn FnMut(u64), first: &mut dyn FnMut(u64), number: usize) -> Turn {
    if number.is_multiple_of(2) {
        let first = took(first);
        let case = took(work);
        Turn { case, first }
    } else {
        let case = took(work);
        let first = took(first);
        Turn { case, first }
    }
}

fn took(work: &mut dyn FnMut(u64)) -> Took {
    let (wall, cpu) = (clock::now(), cpu::time());
    work(TURN);
    let (cpu, wall) = (cpu::time() - cpu, wall.elapsed());
    let each = |time: Duration| time.as_nanos() as f64 / TURN as f64;
    Took {
        cpu: each(cpu),
        wall: each(wall),
        p99: latency::p99().map(|took| took.as_nanos() as f64),
    }
}

/// The middle of some values.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
