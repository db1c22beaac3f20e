//! Searches of every order of events, that must find nothing wrong.
//!
//! `MAMPARO_MODEL=large` searches larger bounds, for minutes.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use stateright::{Checker, Model};

use super::act::{Act, Checked};
use super::bounds::{Bounds, Looks, Repeat};
use super::judge::Wrong;
use super::world::World;

const NONE: Bounds = Bounds::none();
const CALM: Looks = Looks::WhenCalm;
const BUSY: Looks = Looks::Anytime(1);

/// Searches everything; says how many states there are, or what is wrong and the shortest way there.
pub(super) fn search(bounds: Bounds, threads: usize) -> Result<usize, (Wrong, Vec<Act>)> {
    let checker = Checked::new(bounds)
        .checker()
        .threads(threads)
        .spawn_bfs()
        .join();
    match checker.discovery("nothing is wrong") {
        None => Ok(checker.unique_state_count()),
        Some(path) => {
            let wrong = checker
                .model()
                .wrong(path.last_state())
                .expect("it was found to be wrong");
            Err((wrong, path.into_actions()))
        }
    }
}

fn hold(searches: &[Bounds]) {
    for bounds in searches {
        let begun = mamparo_core::clock::now();
        match search(*bounds, 2) {
            Ok(states) => println!("{states} states in {:.1?}: {bounds:?}", begun.elapsed()),
            Err((wrong, acts)) => {
                let steps: Vec<String> = acts.iter().map(|act| format!("  {act:?}")).collect();
                panic!(
                    "{wrong:?} after {} steps in {bounds:?}:\n{}",
                    steps.len(),
                    steps.join("\n")
                );
            }
        }
    }
}

fn is_large() -> bool {
    std::env::var("MAMPARO_MODEL").is_ok_and(|size| size == "large")
}

#[test]
#[rustfmt::skip]
fn with_one_handler_of_each_kind_nothing_is_lost_and_no_reconciler_is_needed() {
    hold(&[
        NONE,
        Bounds { crashes: 1, duplicates: 1, technical: 1, ..NONE },
        Bounds { crashes: 2, duplicates: 1, ..NONE },
        Bounds { crashes: 1, technical: 1, breaker: 1, ..NONE },
        Bounds { technical: 2, breaker: 1, ..NONE },
        Bounds { attempts: 3, crashes: 1, duplicates: 1, ..NONE },
        Bounds { attempts: 1, crashes: 1, duplicates: 1, technical: 1, ..NONE },
        Bounds { postponements: 0, crashes: 1, breaker: 1, technical: 1, ..NONE },
        Bounds { sends_original: true, crashes: 1, duplicates: 1, ..NONE },
        Bounds { sends_original: true, crashes: 1, technical: 1, ..NONE },
    ]);
}

#[test]
#[rustfmt::skip]
fn with_two_handlers_of_each_kind_nothing_is_lost_and_no_reconciler_is_needed() {
    hold(&[
        Bounds { parallel: 2, crashes: 1, duplicates: 1, ..NONE },
        Bounds { parallel: 2, duplicates: 1, technical: 1, ..NONE },
        Bounds { parallel: 2, crashes: 1, breaker: 1, ..NONE },
        Bounds { parallel: 2, duplicates: 1, breaker: 1, ..NONE },
    ]);
}

#[test]
#[rustfmt::skip]
fn whatever_operators_do_nothing_is_lost() {
    hold(&[
        Bounds { crashes: 1, operators: 1, ..NONE },
        Bounds { duplicates: 1, breaker: 1, operators: 1, ..NONE },
        Bounds { technical: 1, operators: 1, ..NONE },
        Bounds { operators: 2, ..NONE },
        Bounds { postponements: 0, operators: 1, technical: 1, ..NONE },
    ]);
}

#[test]
#[rustfmt::skip]
fn a_schedule_that_is_gone_once_it_fired_may_be_made_again() {
    hold(&[
        Bounds { purge: true, crashes: 1, duplicates: 1, ..NONE },
        Bounds { purge: true, crashes: 1, breaker: 2, ..NONE },
        Bounds { purge: true, crashes: 1, technical: 1, ..NONE },
    ]);
}

#[test]
#[rustfmt::skip]
fn the_reconciler_mends_what_is_lost_and_hurts_nothing_whenever_it_looks() {
    hold(&[
        Bounds { losses: 1, crashes: 1, technical: 1, looks: CALM, ..NONE },
        Bounds { losses: 1, operators: 1, looks: CALM, ..NONE },
        Bounds { losses: 2, looks: CALM, ..NONE },
        Bounds { crashes: 1, looks: BUSY, ..NONE },
        Bounds { duplicates: 1, looks: BUSY, ..NONE },
        Bounds { technical: 1, looks: BUSY, ..NONE },
        Bounds { breaker: 1, looks: BUSY, ..NONE },
        Bounds { looks: Looks::Anytime(2), ..NONE },
    ]);
}

#[test]
#[rustfmt::skip]
fn a_dependency_that_is_silent_on_repeats_ends_in_outcome_unknown_at_last() {
    hold(&[
        Bounds { technical: 1, crashes: 1, repeat: Repeat::Silent, looks: CALM, ..NONE },
        Bounds { losses: 1, crashes: 1, repeat: Repeat::Silent, looks: CALM, ..NONE },
        Bounds { technical: 2, repeat: Repeat::TimesOut, looks: CALM, ..NONE },
        Bounds { losses: 1, crashes: 1, repeat: Repeat::TimesOut, looks: CALM, ..NONE },
    ]);
}

#[test]
#[rustfmt::skip]
fn whole_steps_in_one_transaction_lose_nothing_either() {
    let outbox = Bounds { outbox: true, ..NONE };
    hold(&[
        Bounds { parallel: 2, crashes: 1, duplicates: 1, technical: 1, breaker: 1, ..outbox },
        Bounds { crashes: 1, technical: 1, operators: 1, ..outbox },
        Bounds { losses: 1, crashes: 1, technical: 1, looks: CALM, ..outbox },
        Bounds { crashes: 1, operators: 1, looks: BUSY, ..outbox },
    ]);
}

#[test]
#[rustfmt::skip]
fn larger_bounds_hold_too() {
    if !is_large() {
        return;
    }
    hold(&[
        Bounds { parallel: 2, crashes: 1, technical: 1, ..NONE },
        Bounds { crashes: 1, breaker: 1, operators: 1, ..NONE },
        Bounds { crashes: 1, technical: 1, operators: 1, ..NONE },
        Bounds { crashes: 1, operators: 2, ..NONE },
        Bounds { technical: 1, breaker: 1, operators: 1, ..NONE },
        Bounds { purge: true, crashes: 1, duplicates: 1, technical: 1, ..NONE },
        Bounds { losses: 1, crashes: 1, operators: 1, looks: CALM, ..NONE },
        Bounds { crashes: 1, duplicates: 1, looks: BUSY, ..NONE },
        Bounds { crashes: 1, technical: 3, repeat: Repeat::TimesOut, looks: CALM, ..NONE },
        Bounds { outbox: true, crashes: 1, duplicates: 1, technical: 1, breaker: 1, operators: 1, ..NONE },
    ]);
}

/// Without this, a run that goes round for ever would be no state in which nothing can happen, and so not be found.
#[test]
#[rustfmt::skip]
fn every_run_ends_for_no_state_comes_twice() {
    for bounds in [
        Bounds { crashes: 1, duplicates: 1, breaker: 1, ..NONE },
        Bounds { parallel: 2, duplicates: 1, ..NONE },
        Bounds { technical: 1, losses: 1, looks: CALM, ..NONE },
        Bounds { technical: 1, losses: 1, repeat: Repeat::Silent, looks: CALM, ..NONE },
        Bounds { technical: 1, repeat: Repeat::TimesOut, looks: CALM, ..NONE },
        Bounds { operators: 1, looks: BUSY, ..NONE },
    ] {
        let shown = format!("{bounds:?}");
        assert!(!comes_twice(&Checked::new(bounds)), "{shown}");
    }
}

/// A depth-first search for a way from a state back to itself.
fn comes_twice(checked: &Checked) -> bool {
    let mut done: HashMap<u64, bool> = HashMap::new();
    let first = World::new(&checked.bounds, &checked.setting);
    let mut way = vec![(hash(&first), checked.next_states(&first))];
    done.insert(hash(&first), false);
    while let Some((at, next)) = way.last_mut() {
        let Some(world) = next.pop() else {
            done.insert(*at, true);
            way.pop();
            continue;
        };
        match done.get(&hash(&world)) {
            Some(true) => {}
            Some(false) => return true,
            None => {
                done.insert(hash(&world), false);
                way.push((hash(&world), checked.next_states(&world)));
            }
        }
    }
    false
}

fn hash(world: &World) -> u64 {
    let mut hasher = DefaultHasher::new();
    world.hash(&mut hasher);
    hasher.finish()
}
