//! Any mix of calls, cancellations, panics, errors and resizes.

use std::collections::VecDeque;
use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};

use mamparo_core::{BoxError, Plain, Tenant};
use proptest::prelude::*;
use tower::{Layer, Service, service_fn};

use super::super::partition::{Ledger, Partitions, Seat, Share};
use super::super::places::{Entry, Places};
use super::super::*;
use super::cast::*;

/// What the inner service does with a call.
#[derive(Clone, Copy, Debug)]
enum End {
    Answer,
    Error,
    Panic,
    Hang,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Call(End),
    Poll(usize),
    Drop(usize),
    Resize(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let end = prop_oneof![
        Just(End::Answer),
        Just(End::Error),
        Just(End::Panic),
        Just(End::Hang)
    ];
    let step = prop_oneof![
        4 => end.prop_map(Step::Call),
        4 => (0..20_usize).prop_map(Step::Poll),
        2 => (0..20_usize).prop_map(Step::Drop),
        1 => (1..5_usize).prop_map(Step::Resize),
    ];
    prop::collection::vec(step, 0..120)
}

async fn answer(end: End) -> Result<u32, BoxError> {
    match end {
        End::Answer => Ok(7),
        End::Error => Err("down".into()),
        End::Panic => panic!("while it runs"),
        End::Hang => pending().await,
    }
}

proptest! {
    /// Rows E6 and E7: no more run than may, nobody waits for a place that is free, and all comes back in the end.
    #[test]
    fn nothing_is_lost_or_given_twice(steps in steps(), max_waiting in 0..4_usize) {
        let layer = plain(sized(2, max_waiting).wait_until_deadline());
        let mut service: Bulkhead<_, Plain> = layer.layer(service_fn(answer));
        let handle = layer.handle();
        let mut calls: VecDeque<Call<u32>> = VecDeque::new();
        for step in steps {
            let before = handle.in_flight();
            match step {
                Step::Call(end) => calls.push_back(Box::pin(service.call(end))),
                Step::Poll(at) => if let Some(call) = calls.get_mut(at) {
                    let polled = catch_unwind(AssertUnwindSafe(|| poll(call)));
                    // As a runtime does with what has ended, or panicked.
                    if !matches!(polled, Ok(std::task::Poll::Pending)) {
                        drop(calls.remove(at));
                    }
                },
                Step::Drop(at) => drop(calls.remove(at)),
                Step::Resize(limit) => handle.resize(limit).unwrap(),
            }
            let (in_flight, queued, limit) = (handle.in_flight(), handle.queued(), handle.limit());
            prop_assert!(in_flight <= limit || in_flight <= before, "{in_flight} of {limit}");
            prop_assert!(queued <= max_waiting);
            prop_assert!(queued == 0 || in_flight >= limit, "{queued} wait for a free place");
            prop_assert!(in_flight + queued <= calls.len());
        }
        calls.clear();
        prop_assert_eq!((handle.in_flight(), handle.queued()), (0, 0));
    }

    /// Whatever tenants do, nobody gets more than its burst, and everybody what it is guaranteed.
    #[test]
    fn shares_are_kept(steps in prop::collection::vec((0..5_usize, any::<bool>(), 0..40_usize), 0..300)) {
        let percent = |guaranteed, burst| Share::percent(guaranteed, burst).unwrap();
        let names = ["a", "b", "c", "d"].map(Tenant::of);
        let partitions = Partitions::builder()
            .tenant(names[0], percent(40, 60))
            .tenant(names[1], percent(20, 100))
            .others(percent(20, 30))
            .build()
            .unwrap();
        let seat = |tenant: usize| partitions.seat(names.get(tenant).copied());
        let places = Places::new(20, 0, Some(partitions.clone()));
        let mut running: Vec<(usize, Seat)> = Vec::new();
        for (tenant, enters, at) in steps {
            let count = |wanted: fn(usize) -> bool| running.iter().filter(|(who, _)| wanted(*who)).count();
            let (a, b, others) = (count(|who| who == 0), count(|who| who == 1), count(|who| who > 1));
            if !enters {
                if at < running.len() {
                    places.leave(running.swap_remove(at).1);
                }
                continue;
            }
            let entered = places.enter(seat(tenant)) == Entry::Entered;
            let own = running.iter().filter(|(who, _)| *who == tenant).count();
            let kept = match tenant {
                0 => entered || a >= 8,
                1 => entered || b >= 4,
                _ => entered || others >= 4 || own >= 6,
            };
            prop_assert!(kept, "a guarantee was not kept");
            let within = [12, 20, 6, 6, 6][tenant];
            prop_assert!(!entered || own < within, "more than a burst");
            if entered {
                running.push((tenant, seat(tenant)));
            }
            prop_assert!(running.len() <= 20);
            prop_assert_eq!(places.occupancy().in_flight(), running.len());
        }
        for (_, seat) in running {
            places.leave(seat);
        }
        prop_assert_eq!(places.occupancy().in_flight(), 0);
        prop_assert_eq!(places.running_for(seat(0)), 0);
    }

    /// Rounding makes no guarantee empty: all of them together fit at any limit.
    #[test]
    fn guarantees_never_exceed_what_there_is(limit in 1..200_usize, first in 0..=100_u8) {
        let (first, second) = (first, 100 - first);
        let names = ["a", "b"].map(Tenant::of);
        let partitions = Partitions::builder()
            .tenant(names[0], Share::percent(first, 100).unwrap())
            .tenant(names[1], Share::percent(second, 100).unwrap())
            .build()
            .unwrap();
        let mut ledger = Ledger::new(&partitions);
        for name in names {
            let seat = partitions.seat(Some(name));
            while ledger.fits(&partitions, limit, seat) {
                ledger.enter(seat);
            }
        }
        let used = names.map(|name| ledger.used_by(partitions.seat(Some(name))));
        prop_assert_eq!(used.iter().sum::<usize>(), limit);
        prop_assert!(used[1] >= limit * usize::from(second) / 100);
    }
}
