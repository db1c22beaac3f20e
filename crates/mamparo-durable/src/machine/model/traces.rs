//! Runs of the model, as what they ask of a store and a scheduler, for every backend to replay.

use std::collections::BTreeSet;

use stateright::Model;

use super::super::{Ask, Effect, Expect, Progress, Schedule};
use super::act::{Act, Checked, Who};
use super::bounds::{Bounds, Looks};
use super::world::{Worker, World};

/// Runs of each search that are kept: those with the most writes that miss.
const KEPT: usize = 8;

/// Random runs of each search among which those are chosen.
const TRIED: u64 = 400;

const NONE: Bounds = Bounds::none();

#[rustfmt::skip]
const SEARCHES: [Bounds; 6] = [
    Bounds { parallel: 2, crashes: 2, duplicates: 2, ..NONE },
    Bounds { parallel: 2, technical: 2, duplicates: 1, breaker: 1, ..NONE },
    Bounds { parallel: 2, operators: 2, duplicates: 1, crashes: 1, ..NONE },
    Bounds { attempts: 3, crashes: 1, duplicates: 1, technical: 1, breaker: 1, operators: 1, ..NONE },
    Bounds { losses: 1, crashes: 1, operators: 1, looks: Looks::Anytime(2), ..NONE },
    Bounds { sends_original: true, parallel: 2, crashes: 1, technical: 1, ..NONE },
];

/// `MAMPARO_WRITE_TRACES=1` writes them anew.
#[test]
fn the_traces_that_backends_replay_are_the_models_own() {
    let traces: Vec<String> = SEARCHES.iter().flat_map(|bounds| of(*bounds)).collect();
    let traces = traces.join("\n\n") + "\n";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/conformance/traces.txt");
    if std::env::var_os("MAMPARO_WRITE_TRACES").is_some() {
        std::fs::write(path, &traces).unwrap();
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        kept == traces,
        "write them anew with MAMPARO_WRITE_TRACES=1"
    );
}

fn of(bounds: Bounds) -> Vec<String> {
    let checked = Checked::new(bounds);
    let runs: BTreeSet<(usize, String)> = (0..TRIED).map(|seed| run(&checked, seed)).collect();
    runs.into_iter()
        .rev()
        .take(KEPT)
        .map(|(_, trace)| trace)
        .collect()
}

/// One random run to its end: how many writes missed, and the trace.
fn run(checked: &Checked, seed: u64) -> (usize, String) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut world = World::new(&checked.bounds, &checked.setting);
    let mut trace = vec![format!("begin {}", line(&world.row))];
    loop {
        let mut acts = Vec::new();
        checked.actions(&world, &mut acts);
        let next = acts
            .into_iter()
            .filter_map(|act| checked.next_state(&world, act).map(|next| (act, next)));
        let mut next: Vec<(Act, World)> = next.collect();
        if next.is_empty() {
            break;
        }
        let (act, after) = next.swap_remove(rng.usize(..next.len()));
        trace.extend(asked(&world, act));
        world = after;
    }
    trace.push(format!("end {}", line(&world.row)));
    let trace = trace.join("\n");
    (trace.matches("missed").count(), trace)
}

/// What a worker asks in this act, and what comes of it.
fn asked(world: &World, act: Act) -> Option<String> {
    let Act::Step(who) = act else {
        return None;
    };
    let worker: &Worker = match who {
        Who::A(at) => world.a.get(at)?,
        Who::B(at) => world.b.get(at)?,
        Who::Reconciler => world.reconciler.as_ref()?,
        Who::Operator => world.operator.as_ref()?,
    };
    match worker.run.ask() {
        Ask::Write(write) => {
            let applied = write.expect == world.row.expect();
            let said = if applied { "applied" } else { "missed" };
            Some(format!(
                "write {} {} {said}",
                condition(&write.expect),
                line(&write.to)
            ))
        }
        // At its end the model makes no more schedules: nothing looks at them.
        Ask::Effect(Effect::Schedule(schedule)) if !world.row.state.is_terminal() => {
            let Schedule {
                attempt,
                seq,
                fire_at,
            } = schedule;
            let known = world
                .schedules
                .iter()
                .any(|entry| (entry.n, entry.seq) == (*attempt, *seq));
            let said = if known { "same" } else { "new" };
            Some(format!(
                "schedule {attempt} {seq} {} {said}",
                fire_at.millis() / 3_600_000
            ))
        }
        Ask::Effect(Effect::Unschedule { attempt, seq }) => {
            Some(format!("unschedule {attempt} {seq}"))
        }
        _ => None,
    }
}

fn condition(expect: &Expect) -> String {
    let next = expect
        .attempt_next
        .map_or_else(|| "-".to_owned(), |next| next.to_string());
    format!(
        "{} {} {next} {}",
        expect.state, expect.attempt_current, expect.schedule_seq
    )
}

fn line(progress: &Progress) -> String {
    let hour = progress.next_fire_at.map_or_else(
        || "-".to_owned(),
        |at| (at.millis() / 3_600_000).to_string(),
    );
    let end = progress
        .end
        .map_or_else(|| "-".to_owned(), |end| end.as_str().replace(' ', "_"));
    format!(
        "{} {} {hour} {end}",
        condition(&progress.expect()),
        progress.postponements
    )
}
