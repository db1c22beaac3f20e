//! The bulkhead: places that are taken and given back without a lock, against the line of those who wait under one.

mod adaptive;
#[path = "../../../../crates/mamparo/src/bulkhead/partition.rs"]
mod partition;
#[path = "../../../../crates/mamparo/src/bulkhead/places.rs"]
mod places;
#[path = "../../../../crates/mamparo/src/bulkhead/state.rs"]
mod state;

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mamparo_core::{Tenant, Verdict, clock};
use shuttle::{future, thread};

use super::sync::{AtomicU64, Ordering::SeqCst};
use super::try_out::try_out;
use adaptive::{AdaptiveLimit, Aimd, Governor, LimitAlgorithm, Window};
use partition::{Partitions, Seat, Share};
use places::{Entry, Places};

/// A bulkhead, and how many calls run in it.
struct Hold {
    places: Places,
    running: AtomicU64,
    most: u64,
}

impl Hold {
    fn new(limit: usize, max_waiting: usize) -> Arc<Self> {
        Arc::new(Self {
            places: Places::new(limit, max_waiting, None),
            running: AtomicU64::new(0),
            most: limit as u64,
        })
    }

    /// Waits for the place, as a call's future does; shuttle finds out when nobody wakes it.
    fn wait(&self, ticket: u64) {
        future::block_on(poll_fn(|cx| {
            if self.places.poll(ticket, cx) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        }));
    }

    fn run(&self, seat: Seat) {
        let before = self.running.fetch_add(1, SeqCst);
        assert!(before < self.most, "more run than may");
        self.running.fetch_sub(1, SeqCst);
        self.places.leave(seat);
    }

    /// Makes a call, and tells whether it was made.
    fn call(&self) -> bool {
        let seat = Seat::default();
        match self.places.enter(seat) {
            Entry::Entered => {}
            Entry::Queued(ticket) => self.wait(ticket),
            Entry::Full => return false,
        }
        self.run(seat);
        true
    }

    fn assert_empty(&self) {
        let left = self.places.occupancy();
        assert_eq!((left.in_flight(), left.queued()), (0, 0));
    }
}

fn in_threads<T: Send + 'static>(
    runs: impl IntoIterator<Item = Box<dyn FnOnce() -> T + Send>>,
) -> Vec<T> {
    let threads: Vec<_> = runs.into_iter().map(thread::spawn).collect();
    let ends = threads.into_iter().map(|thread| thread.join().unwrap());
    ends.collect()
}

fn on<T>(
    hold: &Arc<Hold>,
    run: impl FnOnce(&Hold) -> T + Send + 'static,
) -> Box<dyn FnOnce() -> T + Send> {
    let hold = Arc::clone(hold);
    Box::new(move || run(&hold))
}

/// Rows E1 and E6.
#[test]
fn no_more_run_than_may_and_everybody_who_waits_is_woken() {
    try_out(|| {
        let hold = Hold::new(1, 2);
        let made = in_threads((0..3).map(|_| on(&hold, Hold::call)));
        assert_eq!(made, [true; 3]);
        hold.assert_empty();
    });
}

#[test]
fn who_is_refused_was_refused_because_others_were_inside() {
    try_out(|| {
        let hold = Hold::new(2, 0);
        let made = in_threads((0..3).map(|_| on(&hold, Hold::call)));
        assert!(made.iter().filter(|made| **made).count() >= 2);
        hold.assert_empty();
    });
}

/// Rows E2 and E7.
#[test]
fn a_waiter_that_goes_away_as_it_is_served_passes_the_place_on() {
    try_out(|| {
        let hold = Hold::new(1, 2);
        let seat = Seat::default();
        assert_eq!(hold.places.enter(seat), Entry::Entered);
        let Entry::Queued(ticket) = hold.places.enter(seat) else {
            panic!("the place is taken")
        };
        let leaves = on(&hold, |hold| hold.run(Seat::default()));
        let gives_up = on(&hold, move |hold| {
            hold.places.abandon(ticket, Seat::default())
        });
        let waits = on(&hold, |hold| assert!(hold.call()));
        in_threads([leaves, gives_up, waits]);
        hold.assert_empty();
    });
}

/// Row E4.
#[test]
fn nobody_overtakes_who_waits_already() {
    try_out(|| {
        let hold = Hold::new(1, 2);
        let seat = Seat::default();
        assert_eq!(hold.places.enter(seat), Entry::Entered);
        let Entry::Queued(first) = hold.places.enter(seat) else {
            panic!("the place is taken")
        };
        let leaves = on(&hold, |hold| hold.places.leave(Seat::default()));
        let comes_later = on(&hold, move |hold| {
            let cx = Context::from_waker(Waker::noop());
            match hold.places.enter(Seat::default()) {
                Entry::Entered => panic!("before those who wait"),
                Entry::Queued(second) => {
                    let served = hold.places.poll(second, &cx);
                    assert!(!served || hold.places.poll(first, &cx), "out of order");
                }
                Entry::Full => panic!("there is a line"),
            }
        });
        in_threads([leaves, comes_later]);
        let left = hold.places.occupancy();
        assert_eq!((left.in_flight(), left.queued()), (1, 1));
    });
}

#[test]
fn a_limit_that_changes_meanwhile_leaves_nobody_waiting_for_a_free_place() {
    try_out(|| {
        let hold = Hold::new(3, 4);
        let resizes = on(&hold, |hold| {
            hold.places.set_limit(1);
            hold.places.serve();
            hold.places.set_limit(2);
            hold.places.serve();
        });
        let calls = (0..3).map(|_| on(&hold, |hold| assert!(hold.call())));
        in_threads(calls.chain([resizes]));
        hold.assert_empty();
    });
}

#[test]
fn shares_are_kept_from_several_threads() {
    try_out(|| {
        let acme = Tenant::of("acme");
        let partitions = Partitions::builder()
            .tenant(acme, Share::percent(50, 100).unwrap())
            .build()
            .unwrap();
        let (named, other) = (partitions.seat(Some(acme)), partitions.seat(None));
        let hold = Arc::new(Hold {
            places: Places::new(2, 2, Some(partitions)),
            running: AtomicU64::new(0),
            most: 2,
        });
        let call = move |seat: Seat| {
            move |hold: &Hold| {
                match hold.places.enter(seat) {
                    Entry::Entered => {}
                    Entry::Queued(ticket) => hold.wait(ticket),
                    Entry::Full => panic!("there is a line"),
                }
                hold.run(seat);
            }
        };
        in_threads([
            on(&hold, call(named)),
            on(&hold, call(other)),
            on(&hold, call(other)),
        ]);
        hold.assert_empty();
        assert_eq!(hold.places.running_for(named), 0);
    });
}

/// Counts how often it is asked.
#[derive(Debug, Default)]
struct Asked(Aimd, Arc<std::sync::atomic::AtomicU64>);

impl LimitAlgorithm for Asked {
    fn next(&self, limit: f64, window: &Window) -> f64 {
        self.1.fetch_add(1, SeqCst);
        self.0.next(limit, window)
    }
}

/// Row K6: no update is lost.
#[test]
fn updates_from_several_threads_are_those_of_one() {
    const EACH: usize = 20;
    try_out(|| {
        let hold = Hold::new(20, 0);
        let algorithm = Asked::default();
        let asked = Arc::clone(&algorithm.1);
        let settings = AdaptiveLimit::builder(algorithm).window(Duration::from_nanos(1));
        let governor = Arc::new(Governor::new(settings.build().unwrap(), 20));
        let learn = |_| {
            let governor = Arc::clone(&governor);
            on(&hold, move |hold| {
                for _ in 0..EACH {
                    let since = governor.start();
                    let now = clock::now() + Duration::from_millis(1);
                    governor.learn(&hold.places, since, now, Verdict::SUCCESS, 20);
                }
            })
        };
        in_threads((0..2).map(learn));
        // After each ten calls, or the one after them, one place more; as one thread would have it.
        let asked = asked.load(SeqCst);
        assert!((3..=4).contains(&asked), "{asked}");
        assert_eq!(hold.places.occupancy().limit() as u64, 20 + asked);
    });
}
