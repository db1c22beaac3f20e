//! The rate limit: one word that every call changes.

#[path = "../../../crates/mamparo/src/rate_limit/meter.rs"]
mod meter;
#[path = "../../../crates/mamparo/src/rate_limit/state.rs"]
mod state;

use std::sync::Arc;
use std::time::Duration;

use shuttle::thread;

use super::sync::{AtomicU64, Ordering::SeqCst};
use super::try_out::try_out;
use meter::Meter;
use state::Gcra;

const INTERVAL: u64 = 10;

/// Two at once, and one more in each interval.
fn gcra() -> Gcra {
    Gcra::new(1, Duration::from_nanos(INTERVAL), 2)
}

/// Four threads that call now, then a bit later; some give back what they took. Returns how much stayed taken.
fn call_from_threads(meter: &Arc<Meter>, gives_back: fn(u64) -> bool) -> u64 {
    let taken = Arc::new(AtomicU64::new(0));
    let threads: Vec<_> = (0..4)
        .map(|number| {
            let (meter, taken) = (Arc::clone(meter), Arc::clone(&taken));
            thread::spawn(move || {
                for now in [0, INTERVAL] {
                    match meter.take(gcra(), now, 1) {
                        // By the latest of all clocks.
                        Ok(took) if gives_back(number) => meter.undo(gcra(), INTERVAL, took),
                        Ok(_) => drop(taken.fetch_add(1, SeqCst)),
                        Err(_) => {}
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    taken.load(SeqCst)
}

/// Row F4.
#[test]
fn no_interleaving_lets_more_pass_than_the_rate_and_a_burst() {
    try_out(|| {
        let meter = Arc::new(Meter::default());
        // Threads call at one instant or the other in any order, as if their clocks had been read early.
        let passed = call_from_threads(&meter, |_| false);
        assert_eq!(passed, 3, "two at first, one after an interval");
    });
}

/// What is given back is there for another at most once, and nothing is lost that would have come back by itself.
#[test]
fn what_is_given_back_is_taken_once_in_every_interleaving() {
    try_out(|| {
        let meter = Arc::new(Meter::default());
        let passed = call_from_threads(&meter, |number| number % 2 == 0);
        assert!(passed <= 3, "{passed} passed");
        let debt = meter.full_at();
        assert!(debt >= INTERVAL * passed, "what stayed taken is owed");
        assert!(
            debt <= INTERVAL * 3,
            "{debt} is more than was ever taken at once"
        );
    });
}

#[test]
fn a_limit_that_is_closed_lets_nothing_pass_that_was_not_taken_before() {
    try_out(|| {
        let meter = Arc::new(Meter::default());
        let closing = Arc::clone(&meter);
        let closer = thread::spawn(move || {
            closing.close(gcra(), 0, 100);
            closing.take(gcra(), INTERVAL, 1).is_err()
        });
        call_from_threads(&meter, |_| false);
        assert!(closer.join().unwrap());
        assert!(meter.take(gcra(), 99, 1).is_err());
    });
}
