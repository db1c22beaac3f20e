use super::{
    Budget, BudgetBuilder, Cap, Deposit, InFlight, MAX_PER_SECOND, TENANT_SLOTS, Tenant, Withdrawal,
};
use crate::clock::{self, Instant};
use crate::shard::Tally;
use fastrand::Rng;
use proptest::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// Only the ratio pays, and saving is not limited.
fn ratio_only(ratio: f64) -> BudgetBuilder {
    Budget::builder()
        .ratio(ratio)
        .min_per_second(0)
        .burst(u32::MAX)
}

fn deposit(budget: &Budget, operations: u64) {
    for _ in 0..operations {
        drop(budget.deposit(None));
    }
}

fn send_if_paid(budget: &Budget, now: Instant) -> bool {
    budget.withdraw(now, None, 0).map(Withdrawal::spend).is_ok()
}

/// Sends resends until the budget refuses one (or pays for a million), and counts them.
fn drain(budget: &Budget, now: Instant) -> u64 {
    (0..1_000_000)
        .take_while(|_| send_if_paid(budget, now))
        .count() as u64
}

fn refused_by(budget: &Budget, tenant: Option<Tenant>, resends_so_far: u32) -> Option<Cap> {
    let answer = budget.withdraw(clock::now(), tenant, resends_so_far);
    answer.err().map(|exhausted| exhausted.cap())
}

mod traffic {
    use super::*;

    #[test]
    fn ratios_pay_for_exactly_their_share_of_operations() {
        for (ratio, operations, resends) in [
            (0.2, 1_000_000, 200_000),
            (0.6, 1_000, 600),
            (0.9, 1_000, 900),
            (0.1, 9, 0),
            (0.3, 10, 3),
            (1.0, 7, 7),
            (0.0, 1_000, 0),
        ] {
            let budget = ratio_only(ratio).build().unwrap();
            deposit(&budget, operations);
            assert_eq!(drain(&budget, clock::now()), resends, "ratio {ratio}");
        }
    }

    #[test]
    fn the_default_pays_twenty_percent_and_ten_at_once() {
        let budget = Budget::default();
        deposit(&budget, 100);
        assert_eq!(drain(&budget, clock::now()), 30);
    }

    #[test]
    fn the_builder_starts_from_the_same_defaults() {
        let built = Budget::builder().build().unwrap();
        assert_eq!(format!("{built:?}"), format!("{:?}", Budget::default()));
    }

    #[test]
    fn a_healthy_hour_saves_no_more_than_the_burst() {
        let budget = Budget::builder().burst(100).build().unwrap();
        deposit(&budget, 100_000);
        let an_hour_later = clock::now() + 3_600 * SECOND;
        assert_eq!(drain(&budget, an_hour_later), 110);
    }

    #[test]
    fn the_reserve_refills_continuously_and_saves_one_second() {
        let budget = Budget::builder().ratio(0.0).build().unwrap();
        let start = clock::now();
        assert_eq!(drain(&budget, start), 10);
        assert_eq!(drain(&budget, start + SECOND / 20), 0);
        assert_eq!(drain(&budget, start + SECOND / 10), 1);
        assert_eq!(drain(&budget, start + SECOND / 2), 4);
        assert_eq!(drain(&budget, start + 60 * SECOND), 10);
    }

    #[test]
    fn time_that_goes_backwards_pays_nothing() {
        let budget = Budget::builder().ratio(0.0).build().unwrap();
        let start = clock::now();
        assert_eq!(drain(&budget, start + SECOND), 10);
        assert_eq!(drain(&budget, start), 0);
        assert_eq!(drain(&budget, start + SECOND), 0);
    }

    #[test]
    fn a_token_goes_back_to_where_it_came_from() {
        let budget = Budget::builder().min_per_second(1).build().unwrap();
        let start = clock::now();
        deposit(&budget, 5);
        let of_reserve = budget.withdraw(start, None, 0).unwrap();
        let saved = budget.withdraw(start, None, 0).unwrap();
        assert_eq!(drain(&budget, start), 0);

        drop(of_reserve);
        // The reserve is full again, so that a second adds nothing to it.
        assert_eq!(drain(&budget, start + SECOND), 1);
        drop(saved);
        assert_eq!(drain(&budget, start + SECOND), 1);
    }

    #[test]
    fn clones_spend_from_the_same_balance() {
        let retries = ratio_only(0.5).build().unwrap();
        let hedges = retries.clone();
        deposit(&retries, 2);
        assert!(send_if_paid(&hedges, clock::now()));
        assert!(!send_if_paid(&retries, clock::now()));
        assert_eq!(retries.consumed(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_allowed_and_consumed_can_be_read() {
        let budget = Budget::builder().burst(1).build().unwrap();
        let start = clock::now();
        deposit(&budget, 99);
        drop(budget.withdraw(start, None, 0));
        assert_eq!(budget.consumed(), 0);
        assert_eq!(drain(&budget, start), 11);
        assert_eq!(budget.consumed(), 11);
        assert_eq!(budget.allowed(start), 19 + 10);
        assert_eq!(budget.allowed(start + 6 * SECOND), 19 + 10 + 60);
    }

    proptest! {
        #[test]
        fn resends_never_exceed_what_was_paid_in_and_may_use_all_of_it(
            ratio in 0..=1_000_000_u32,
            min_per_second in 0..=20_u32,
            rounds in prop::collection::vec((0..50_u64, 0..50_u32), 1..40),
        ) {
            let budget = ratio_only(f64::from(ratio) / 1e6)
                .min_per_second(min_per_second)
                .build()
                .unwrap();
            let now = clock::now();
            let reserve = u64::from(min_per_second);
            // The budget was made a moment before `now`; its full reserve can't have grown.
            let paid_in = |operations| operations * u64::from(ratio) / 1_000_000 + reserve;
            let (mut operations, mut sent) = (0, 0);
            for (deposits, asked) in rounds {
                deposit(&budget, deposits);
                operations += deposits;
                sent += (0..asked).filter(|_| send_if_paid(&budget, now)).count() as u64;
                prop_assert!(sent <= paid_in(operations));
            }
            prop_assert_eq!(sent + drain(&budget, now), paid_in(operations));
        }

        #[test]
        fn the_reserve_pays_at_most_its_rate_and_one_second_more(
            min_per_second in 1..=1_000_u32,
            pauses in prop::collection::vec(0..2_000_000_000_u64, 1..20),
        ) {
            let budget = ratio_only(0.0).min_per_second(min_per_second).build().unwrap();
            let start = clock::now();
            let (mut now, mut sent) = (start, 0);
            for pause in pauses {
                now += Duration::from_nanos(pause);
                sent += drain(&budget, now);
                let rate = u128::from(min_per_second);
                let by_time = (now - start).as_nanos() * rate / 1_000_000_000;
                prop_assert!(u128::from(sent) <= by_time + rate);
            }
        }
    }
}

mod guards {
    use super::*;

    /// Row T7.
    #[test]
    fn deposits_and_withdrawals_balance_over_a_million_random_operations() {
        let budget = ratio_only(0.2).build().unwrap();
        let now = clock::now();
        let mut rng = Rng::with_seed(370);
        let (mut operations, mut held, mut sent) = (0_u64, Vec::new(), 0_u64);
        for _ in 0..1_000_000 {
            match rng.u8(..4) {
                0 | 1 => {
                    deposit(&budget, 1);
                    operations += 1;
                }
                2 => held.extend(budget.withdraw(now, None, 0)),
                _ if held.is_empty() => {}
                _ => {
                    let withdrawal = held.swap_remove(rng.usize(..held.len()));
                    if rng.bool() {
                        drop(withdrawal.spend());
                        sent += 1;
                    }
                }
            }
            assert!(sent + held.len() as u64 <= operations / 5);
        }
        drop(held);
        assert_eq!(budget.consumed(), sent);
        assert_eq!(sent + drain(&budget, now), operations / 5);
    }

    /// Row P-C2.
    #[test]
    fn of_many_threads_exactly_one_gets_the_last_token() {
        for _ in 0..50 {
            let budget = ratio_only(1.0).build().unwrap();
            deposit(&budget, 1);
            let (winners, start) = (AtomicUsize::new(0), Barrier::new(64));
            let withdraw = || {
                start.wait();
                let sent = send_if_paid(&budget, clock::now());
                winners.fetch_add(sent.into(), SeqCst);
            };
            thread::scope(|scope| {
                (0..64).for_each(|_| drop(scope.spawn(withdraw)));
            });
            assert_eq!(winners.into_inner(), 1);
        }
    }

    /// Row P-C2.
    #[test]
    fn dropping_during_the_backoff_neither_leaks_nor_returns_twice() {
        let budget = ratio_only(1.0).max_concurrent(64).build().unwrap();
        deposit(&budget, 8);
        let now = clock::now();
        let cancel = || (0..1_000).for_each(|_| drop(budget.withdraw(now, None, 0)));
        thread::scope(|scope| {
            (0..64).for_each(|_| drop(scope.spawn(cancel)));
        });
        assert_eq!(budget.consumed(), 0);
        let unspent: Vec<_> = (0..64)
            .map_while(|_| budget.withdraw(now, None, 0).ok())
            .collect();
        assert_eq!(unspent.len(), 8);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_is_cancelled_in_its_backoff_returns_its_token() {
        let budget = ratio_only(1.0).build().unwrap();
        deposit(&budget, 1);
        let resend = async {
            let withdrawal = budget.withdraw(clock::now(), None, 0);
            tokio::time::sleep(SECOND).await;
            withdrawal.map(Withdrawal::spend)
        };
        assert!(tokio::time::timeout(SECOND / 2, resend).await.is_err());
        assert_eq!(drain(&budget, clock::now()), 1);
    }

    #[test]
    fn deposits_of_many_threads_are_all_counted() {
        let budget = ratio_only(0.5).build().unwrap();
        thread::scope(|scope| {
            (0..64).for_each(|_| drop(scope.spawn(|| deposit(&budget, 1_000))));
        });
        assert_eq!(drain(&budget, clock::now()), 32_000);
    }

    #[test]
    fn what_one_thread_adds_another_may_take_away() {
        let tally = Tally::new(2);
        tally.increment(1);
        thread::scope(|scope| {
            scope.spawn(|| tally.decrement(1));
        });
        assert_eq!((tally.sum(0), tally.sum(1)), (0, 0));
    }
}

mod concurrency {
    use super::*;

    /// Row C16.
    #[test]
    fn resends_in_flight_are_a_share_of_the_operations_in_flight() {
        let budget = ratio_only(1.0).concurrent_ratio(0.2, 3).build().unwrap();
        let operations: Vec<Deposit> = (0..100).map(|_| budget.deposit(None)).collect();
        let now = clock::now();
        let (in_flight, all_fail) = (Mutex::new(Vec::new()), Barrier::new(100));
        thread::scope(|scope| {
            for _ in 0..100 {
                scope.spawn(|| {
                    all_fail.wait();
                    let sent = budget.withdraw(now, None, 0).map(Withdrawal::spend);
                    in_flight.lock().unwrap().extend(sent);
                });
            }
        });
        let mut in_flight: Vec<InFlight> = in_flight.into_inner().unwrap();
        assert_eq!(in_flight.len(), 20);
        assert_eq!(refused_by(&budget, None, 0), Some(Cap::Concurrency));

        in_flight.pop();
        assert_eq!(refused_by(&budget, None, 0), None);
        drop(operations);
        assert_eq!(refused_by(&budget, None, 0), Some(Cap::Concurrency));
    }

    /// Row C16.
    #[test]
    fn with_few_operations_in_flight_the_minimum_counts() {
        let budget = ratio_only(1.0).concurrent_ratio(0.2, 3).build().unwrap();
        deposit(&budget, 100);
        let operation = budget.deposit(None);
        let withdrawals: Vec<_> = (0..100)
            .map_while(|_| budget.withdraw(clock::now(), None, 0).ok())
            .collect();
        assert_eq!(withdrawals.len(), 3);
        drop(operation);
    }

    #[test]
    fn a_place_is_held_from_the_backoff_until_the_resend_is_over() {
        let budget = Budget::builder().max_concurrent(1).build().unwrap();
        let waiting = budget.withdraw(clock::now(), None, 0).unwrap();
        assert_eq!(refused_by(&budget, None, 0), Some(Cap::Concurrency));
        let sent = waiting.spend();
        assert_eq!(refused_by(&budget, None, 0), Some(Cap::Concurrency));
        drop(sent);
        assert_eq!(refused_by(&budget, None, 0), None);
    }

    #[test]
    fn a_refused_resend_holds_no_place() {
        let budget = ratio_only(1.0).max_concurrent(1).build().unwrap();
        assert_eq!(refused_by(&budget, None, 0), Some(Cap::Traffic));
        deposit(&budget, 1);
        assert_eq!(refused_by(&budget, None, 0), None);
    }

    #[test]
    fn one_operation_gets_no_more_resends_than_allowed() {
        let budget = Budget::builder().per_operation(2).build().unwrap();
        assert_eq!(refused_by(&budget, None, 1), None);
        assert_eq!(refused_by(&budget, None, 2), Some(Cap::Operation));
    }
}

mod tenants {
    use super::*;

    const NOISY: Option<Tenant> = Some(Tenant::of("noisy"));
    const QUIET: Option<Tenant> = Some(Tenant::of("quiet"));

    #[test]
    fn a_tenant_is_paid_by_its_own_operations() {
        let budget = ratio_only(1.0).per_tenant(0.5, 0).build().unwrap();
        for _ in 0..10 {
            drop(budget.deposit(NOISY));
            drop(budget.deposit(None));
        }
        for _ in 0..5 {
            drop(budget.withdraw(clock::now(), NOISY, 0).unwrap().spend());
        }
        assert_eq!(refused_by(&budget, NOISY, 0), Some(Cap::Tenant));
        assert_eq!(refused_by(&budget, QUIET, 0), Some(Cap::Tenant));
        assert_eq!(refused_by(&budget, None, 0), None);
    }

    #[test]
    fn a_dropped_withdrawal_gives_back_to_the_tenant_too() {
        let budget = ratio_only(1.0).per_tenant(1.0, 0).build().unwrap();
        drop(budget.deposit(NOISY));
        for _ in 0..3 {
            assert_eq!(refused_by(&budget, NOISY, 0), None);
        }
    }

    #[test]
    fn what_the_dependency_refuses_costs_the_tenant_nothing() {
        let budget = ratio_only(0.5).per_tenant(1.0, 0).build().unwrap();
        drop(budget.deposit(NOISY));
        assert_eq!(refused_by(&budget, NOISY, 0), Some(Cap::Traffic));
        drop(budget.deposit(None));
        assert_eq!(refused_by(&budget, NOISY, 0), None);
    }

    #[test]
    fn tenants_without_budgets_of_their_own_share_the_dependency_s() {
        let budget = ratio_only(1.0).build().unwrap();
        drop(budget.deposit(NOISY));
        assert_eq!(refused_by(&budget, QUIET, 0), None);
    }

    #[test]
    fn names_hash_as_published_and_are_not_shown() {
        let hashes = ["", "a", "foobar"].map(|name| format!("{:?}", Tenant::of(name)));
        let published = ["cbf29ce484222325", "af63dc4c8601ec8c", "85944171f73967e8"];
        assert_eq!(hashes, published.map(|hash| format!("Tenant({hash})")));
    }

    #[test]
    fn similar_names_spread_over_the_slots() {
        let mut slots = vec![0; TENANT_SLOTS];
        for n in 0..TENANT_SLOTS {
            slots[Tenant::of(&format!("tenant-{n}")).slot()] += 1;
        }
        let used = slots.iter().filter(|n| **n > 0).count();
        // Thrown at random, 1 - 1/e of the slots are hit.
        assert!(used > TENANT_SLOTS * 55 / 100, "{used}");
    }
}

#[test]
fn nonsense_is_refused_and_named() {
    let refused = |builder: BudgetBuilder| builder.build().unwrap_err().setting();
    let budget = Budget::builder;
    for ratio in [f64::NAN, -0.1, 1.01, f64::INFINITY] {
        assert_eq!(refused(budget().ratio(ratio)), "budget.ratio");
        let share = budget().concurrent_ratio(ratio, 3);
        assert_eq!(refused(share), "budget.concurrent_ratio");
        let tenant = budget().per_tenant(ratio, 1);
        assert_eq!(refused(tenant), "budget.per_tenant.ratio");
    }
    let much = MAX_PER_SECOND + 1;
    for (setting, builder) in [
        ("budget.min_per_second", budget().min_per_second(much)),
        (
            "budget.per_tenant.min_per_second",
            budget().per_tenant(0.1, much),
        ),
        ("budget.burst", budget().burst(0)),
        ("budget.max_concurrent", budget().max_concurrent(0)),
        ("budget.min_concurrent", budget().concurrent_ratio(0.2, 0)),
        ("budget.per_operation", budget().per_operation(0)),
    ] {
        assert_eq!(refused(builder), setting);
    }
    let extreme = budget().ratio(1.0).burst(u32::MAX);
    assert!(extreme.min_per_second(MAX_PER_SECOND).build().is_ok());
}

#[test]
fn an_unlimited_budget_pays_for_everything_and_says_so() {
    let budget = Budget::unlimited();
    assert_eq!(
        (0..1_000)
            .filter(|_| send_if_paid(&budget, clock::now()))
            .count(),
        1_000
    );
    assert_eq!(budget.consumed(), 1_000);
    assert_eq!(budget.allowed(clock::now()), u64::MAX);
}

#[test]
fn an_operation_is_resent_once_it_is_sent_again_and_not_before_nor_twice() {
    let budget = Budget::unlimited();
    let now = clock::now();
    let withdraw = |so_far| budget.withdraw(now, None, so_far).unwrap();
    drop(withdraw(0)); // given up during its backoff
    assert_eq!(budget.traffic().resent, 0);
    withdraw(0).spend().not_sent();
    assert_eq!(budget.traffic().resent, 0);
    drop(withdraw(0).spend());
    drop(withdraw(1).spend());
    assert_eq!((budget.traffic().resent, budget.traffic().resends), (1, 2));
}

#[test]
fn tokens_are_what_can_be_withdrawn_now() {
    let budget = ratio_only(0.5).build().unwrap();
    deposit(&budget, 7);
    let now = clock::now();
    assert_eq!(budget.tokens(now), Some(3));
    assert_eq!(drain(&budget, now), 3);
    assert_eq!(budget.tokens(now), Some(0));
}
