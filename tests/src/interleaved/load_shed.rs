//! Load shedding: places that are counted, and answers that are counted and forgotten.

#[path = "../../../crates/mamparo/src/load_shed/config.rs"]
mod config;
#[path = "../../../crates/mamparo/src/load_shed/load.rs"]
mod load;
#[path = "../../../crates/mamparo/src/load_shed/state.rs"]
mod state;

/// What requests are worth makes no difference here.
mod priority {
    #[derive(Clone, Copy)]
    pub(super) enum Priority {
        Any,
    }

    impl Priority {
        pub(super) const COUNT: usize = 4;
    }
}

use std::sync::Arc;
use std::time::Duration;

use shuttle::thread;

use super::sync::{AtomicU64, Ordering::SeqCst};
use super::try_out::try_out;
use config::{LoadShedPolicy, Throttle};
use load::{Answers, InFlight};

const SECOND: u64 = 1_000_000_000;

fn in_threads(count: u64, run: impl Fn(u64) + Send + Sync + 'static) {
    let run = Arc::new(run);
    let threads: Vec<_> = (0..count)
        .map(|number| {
            let run = Arc::clone(&run);
            thread::spawn(move || run(number))
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn no_more_calls_are_let_in_than_may_be_and_each_that_leaves_makes_room() {
    try_out(|| {
        let places = Arc::new(InFlight::default());
        let running = AtomicU64::new(0);
        let shared = Arc::clone(&places);
        in_threads(4, move |_| {
            for _ in 0..2 {
                if shared.enter(2, 1.0) {
                    assert!(running.fetch_add(1, SeqCst) < 2);
                    running.fetch_sub(1, SeqCst);
                    shared.leave();
                }
            }
        });
        assert_eq!(places.running(), 0);
        assert!(places.enter(1, 1.0));
    });
}

/// Calls end while the window moves on: what is forgotten is forgotten once, and never more than was counted.
#[test]
fn what_is_counted_is_forgotten_with_its_window() {
    let rule = Throttle {
        k: 1.0,
        window: Duration::from_secs(10),
    };
    let settings = LoadShedPolicy::builder().max_rejection(1.0);
    try_out(move || {
        let answers = Arc::new(Answers::default());
        let shared = Arc::clone(&answers);
        in_threads(3, move |number| {
            for second in [number, number + 1, number + 11] {
                shared.count(rule, second * SECOND, false);
                let rejection = shared.rejection(&settings, rule, 1.0, || second * SECOND);
                assert!(rejection <= 0.9, "of nine calls at most, not {rejection}");
            }
        });
        let left = answers.rejection(&settings, rule, 1.0, || 60 * SECOND);
        assert!(
            left.abs() < f64::EPSILON,
            "all is forgotten, and not {left}"
        );
    });
}
