//! The budget: tallies that every thread adds to without a lock, against the ledger that counts them up under one.

#[path = "../../../crates/mamparo-core/src/budget/config.rs"]
mod config;
#[path = "../../../crates/mamparo-core/src/budget/error.rs"]
mod error;
#[path = "../../../crates/mamparo-core/src/budget/guard.rs"]
mod guard;
#[path = "../../../crates/mamparo-core/src/budget/handle.rs"]
mod handle;
#[path = "../../../crates/mamparo-core/src/budget/state.rs"]
mod state;
#[path = "../../../crates/mamparo-core/src/budget/tenant.rs"]
mod tenant;
#[path = "../../../crates/mamparo-core/src/budget/traffic.rs"]
mod traffic;

use std::sync::Arc;

use mamparo_core::clock;
use shuttle::thread;

use super::sync::{AtomicU64, Ordering::SeqCst};
use super::try_out::try_out;
use handle::Budget;

/// One token an operation, and none besides.
fn budget() -> Budget {
    let builder = Budget::builder().ratio(1.0).min_per_second(0);
    builder.build().unwrap()
}

fn withdraw(budget: &Budget) -> Option<guard::Withdrawal> {
    budget.withdraw(clock::now(), None, 0).ok()
}

/// Takes all that is left.
fn drain(budget: &Budget) -> usize {
    let tokens = std::iter::from_fn(|| withdraw(budget).map(guard::Withdrawal::spend));
    tokens.take(10).collect::<Vec<_>>().len()
}

fn in_threads(count: usize, run: impl Fn(usize) + Send + Sync + 'static) {
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

/// Row P-C2.
#[test]
fn one_of_several_threads_gets_the_last_token_in_every_interleaving() {
    try_out(|| {
        let (budget, sent) = (budget(), Arc::new(AtomicU64::new(0)));
        drop(budget.deposit(None));
        let (spending, counting) = (budget.clone(), Arc::clone(&sent));
        in_threads(3, move |_| {
            if let Some(withdrawal) = withdraw(&spending) {
                counting.fetch_add(1, SeqCst);
                drop(withdrawal.spend());
            }
        });
        assert_eq!(sent.load(SeqCst), 1);
        assert_eq!(budget.consumed(), 1);
    });
}

/// More threads than there are shards, so that some share one.
#[test]
fn every_operation_that_paid_in_can_take_one_token_and_no_token_is_taken_that_nobody_paid() {
    try_out(|| {
        let budget = budget();
        let paying = budget.clone();
        in_threads(4, move |_| {
            drop(paying.deposit(None));
            // Whoever was here before has taken no more than it paid in itself.
            let withdrawal = withdraw(&paying).expect("its own token");
            drop(withdrawal.spend());
        });
        assert_eq!((budget.consumed(), drain(&budget)), (4, 0));
    });
}

/// Row P-C2.
#[test]
fn a_token_that_is_given_back_is_there_once() {
    try_out(|| {
        let budget = budget();
        drop(budget.deposit(None));
        let shared = budget.clone();
        in_threads(3, move |number| match withdraw(&shared) {
            Some(withdrawal) if number == 0 => withdrawal.spend().not_sent(),
            withdrawal => drop(withdrawal),
        });
        assert_eq!((drain(&budget), budget.consumed()), (1, 1));
    });
}

/// Row C16.
#[test]
fn resends_in_flight_are_never_more_than_their_share_of_the_operations_in_flight() {
    try_out(|| {
        let builder = Budget::builder().ratio(1.0).min_per_second(10);
        let budget = builder.concurrent_ratio(0.5, 1).build().unwrap();
        let running = Arc::new(AtomicU64::new(0));
        let (shared, counting) = (budget.clone(), Arc::clone(&running));
        in_threads(4, move |_| {
            let operation = shared.deposit(None);
            if let Some(withdrawal) = withdraw(&shared) {
                let resends = counting.fetch_add(1, SeqCst) + 1;
                assert!(resends <= 2, "half of four operations");
                let in_flight = withdrawal.spend();
                counting.fetch_sub(1, SeqCst);
                drop(in_flight);
            }
            drop(operation);
        });
        let (first, second) = (withdraw(&budget), withdraw(&budget));
        assert!(first.is_some(), "no place is lost");
        assert!(second.is_none(), "no operation is in flight any more");
    });
}
