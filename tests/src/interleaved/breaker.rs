//! A breaker's state, reached by several threads at once.

use std::sync::Arc;
use std::time::Duration;

use mamparo_core::breaker::{BreakerCause, BreakerState};
use mamparo_core::clock;
use shuttle::thread;

use super::try_out::try_out;
use circuit::Circuit;
use config::{BreakerBuilder, BreakerPolicy};
use journal::Journal;
use ramp::Ramp;
use reading::Reading;
use ticket::Ticket;
use window::{Bad, Window};

#[path = "../../../crates/mamparo/src/breaker/circuit.rs"]
mod circuit;
#[path = "../../../crates/mamparo/src/breaker/config.rs"]
mod config;
#[path = "../../../crates/mamparo/src/breaker/journal.rs"]
mod journal;
#[path = "../../../crates/mamparo/src/breaker/phase.rs"]
mod phase;
#[path = "../../../crates/mamparo/src/breaker/ramp.rs"]
mod ramp;
#[path = "../../../crates/mamparo/src/breaker/reading.rs"]
mod reading;
#[path = "../../../crates/mamparo/src/breaker/state.rs"]
mod state;
#[path = "../../../crates/mamparo/src/breaker/streak.rs"]
mod streak;
#[path = "../../../crates/mamparo/src/breaker/ticket.rs"]
mod ticket;
#[path = "../../../crates/mamparo/src/breaker/window/mod.rs"]
mod window;

const SECOND: Duration = Duration::from_secs(1);

const FAILED: Bad = Bad {
    failed: true,
    slow: false,
};

fn policy() -> BreakerBuilder {
    BreakerPolicy::builder()
        .open_wait_jitter(0.0)
        .ramp(Ramp::none())
}

fn circuit(policy: BreakerBuilder) -> Arc<Circuit> {
    let policy = Arc::new(policy.build().unwrap());
    let journal = Arc::new(Journal::new());
    Arc::new(Circuit::new(policy, journal, None, true))
}

/// Lets each of the closures run on a thread of its own.
fn together<T: Send + 'static>(threads: Vec<Box<dyn FnOnce() -> T + Send>>) -> Vec<T> {
    let threads: Vec<_> = threads.into_iter().map(thread::spawn).collect();
    threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .collect()
}

fn repeat<T: Send + 'static>(
    threads: usize,
    circuit: &Arc<Circuit>,
    run: impl Fn(&Circuit) -> T + Send + Sync + Copy + 'static,
) -> Vec<T> {
    let one = |_| -> Box<dyn FnOnce() -> T + Send> {
        let circuit = Arc::clone(circuit);
        Box::new(move || run(&circuit))
    };
    together((0..threads).map(one).collect())
}

fn open(circuit: &Circuit) -> Ticket {
    let ticket = circuit.admit(clock::now).unwrap();
    circuit.bad(ticket, FAILED, None, clock::now());
    ticket
}

/// Rows A8 and T6: the places are dealt out one by one.
#[test]
fn no_more_probes_pass_than_there_are_places_and_as_many_as_there_are() {
    try_out(|| {
        let circuit = circuit(policy().consecutive_failures(1).probes(2));
        open(&circuit);
        let later = || clock::now() + 6 * SECOND;
        let passed = repeat(4, &circuit, move |circuit| circuit.admit(later).is_ok());
        assert_eq!(passed.into_iter().filter(|passed| *passed).count(), 2);
    });
}

/// Row A9: of those that reach the threshold at once, one opens it.
#[test]
fn a_threshold_that_several_reach_at_once_opens_it_once_and_no_failure_is_lost() {
    try_out(|| {
        for window in [Window::calls(32), Window::time(SECOND)] {
            let rule = policy().no_consecutive_failures().failures_in_window(3);
            let circuit = circuit(rule.window(window));
            repeat(3, &circuit, open);
            let read = circuit.read(clock::now());
            assert_eq!((read.state, read.openings), (BreakerState::Open, 1));
        }
    });
}

#[test]
fn good_and_bad_calls_of_several_threads_are_all_counted() {
    try_out(|| {
        for window in [Window::calls(32), Window::time(10 * SECOND)] {
            let rule = policy()
                .no_consecutive_failures()
                .failure_rate(1.0)
                .minimum_calls(32);
            let circuit = circuit(rule.window(window));
            repeat(3, &circuit, |circuit| {
                let ticket = circuit.admit(clock::now).unwrap();
                circuit.good(ticket, clock::now);
                open(circuit);
            });
            let rates = circuit.read(clock::now()).rates;
            assert_eq!((rates.calls, rates.failures), (6, 3));
        }
    });
}

/// Rows A1, A2, A4 and P-C5: whatever the order, what was admitted earlier decides nothing, and what ends gives back once.
#[test]
fn results_of_an_earlier_state_and_cancelled_probes_neither_close_it_nor_leave_a_place_taken() {
    try_out(|| {
        let circuit = circuit(
            policy()
                .consecutive_failures(1)
                .probes(1)
                .successes_to_close(1),
        );
        let early = circuit.admit(clock::now).unwrap();
        open(&circuit);
        let later = || clock::now() + 6 * SECOND;
        let (one, two) = (Arc::clone(&circuit), Arc::clone(&circuit));
        together(vec![
            Box::new(move || one.good(early, clock::now)),
            Box::new(move || {
                if let Ok(probe) = two.admit(later) {
                    two.cancel(probe);
                }
            }),
        ]);
        let read = circuit.read(later());
        assert_eq!((read.probes, read.late), (0, 1));
        assert_ne!(read.state, BreakerState::Closed);
        assert!(circuit.admit(later).is_ok(), "the place is free");
    });
}

/// Row A15: an observer, and a subscriber, hear the changes one by one and in their order.
#[test]
fn changes_are_told_one_at_a_time_and_in_order() {
    try_out(|| {
        let policy = Arc::new(policy().consecutive_failures(1).build().unwrap());
        let journal = Arc::new(Journal::new());
        let heard = Arc::new(Heard::default());
        journal.set_observer(Some(heard.clone()));
        let circuit = Arc::new(Circuit::new(policy, journal, None, true));
        repeat(2, &circuit, |circuit| {
            if let Ok(ticket) = circuit.admit(|| clock::now() + 6 * SECOND) {
                circuit.bad(ticket, FAILED, None, clock::now());
            }
            circuit.force(BreakerState::Disabled, clock::now());
            circuit.force(BreakerState::Closed, clock::now());
        });
        let heard = heard.0.lock().unwrap();
        for pair in heard.windows(2) {
            assert_eq!(pair[0].1, pair[1].0, "{heard:?}");
        }
        assert_eq!(heard.last().map(|last| last.1), Some(BreakerState::Closed));
    });
}

#[derive(Debug, Default)]
struct Heard(std::sync::Mutex<Vec<(BreakerState, BreakerState, BreakerCause)>>);

impl mamparo_core::Observer for Heard {
    fn on(&self, event: &mamparo_core::Event<'_>) {
        // Other threads may run while an observer does.
        thread::yield_now();
        let mamparo_core::What::BreakerTransition(change) = event.what else {
            return;
        };
        let mut heard = self.0.lock().unwrap();
        heard.push((change.from, change.to.unwrap(), change.cause));
    }
}
