//! A dependency that is dead, and a thousand callers that don't stop asking: how much of it reaches the dependency, by where
//! the breaker stands. The table of `docs/stack-order.md` has these figures.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mamparo::breaker::{BreakerLayer, BreakerPolicy, BreakerState};
use mamparo::retry::{RetryLayer, RetryPolicy};
use mamparo_core::{Budget, Event, Observer, Plain, What, clock};
use mamparo_testkit::service::{Script, Step};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tower::{Service, ServiceBuilder, ServiceExt};

const CALLERS: u64 = 1_000;
const LASTS: Duration = Duration::from_secs(10);

/// Between two operations of one caller.
const PAUSE: Duration = Duration::from_millis(500);

/// How long a call to the dead takes to fail.
const FAILS_AFTER: Duration = Duration::from_millis(20);

const THRESHOLD: usize = 5;
const PROBES: usize = 3;
const MAX_ATTEMPTS: usize = 3;

type Dependency = Script<u64, u64, ()>;

/// What a breaker said, and what it lets pass.
#[derive(Debug, Default)]
struct Heard {
    /// Calls that it let pass and that are not over: of operations or of attempts, by where it stands.
    in_flight: AtomicUsize,
    /// These, when it first opened.
    as_it_opened: OnceLock<usize>,
    openings: AtomicUsize,
}

/// Stands directly inside of the breaker.
fn counted<F: Future>(heard: &Arc<Heard>, call: F) -> impl Future<Output = F::Output> + use<F> {
    let heard = Arc::clone(heard);
    heard.in_flight.fetch_add(1, Relaxed);
    async move {
        let result = call.await;
        heard.in_flight.fetch_sub(1, Relaxed);
        result
    }
}

impl Observer for Heard {
    fn on(&self, event: &Event<'_>) {
        if let What::BreakerTransition(transition) = event.what
            && transition.to == Some(BreakerState::Open)
        {
            self.as_it_opened
                .get_or_init(|| self.in_flight.load(Relaxed));
            self.openings.fetch_add(1, Relaxed);
        }
    }
}

/// What reached the dependency.
#[derive(Debug)]
struct Reached {
    operations: usize,
    sends: usize,
    /// Calls that the breaker may have let pass: attempts or operations.
    bound: usize,
    openings: usize,
}

fn retry() -> RetryLayer<Plain> {
    // Nothing but the breaker may hold anybody back.
    let policy = RetryPolicy::builder()
        .max_attempts(MAX_ATTEMPTS as u32)
        .budget(Budget::unlimited());
    RetryLayer::new(policy.build().unwrap(), Plain::idempotent())
}

/// Lets the callers ask through what `stack` makes of the breaker and the dependency.
async fn ask<S>(stack: impl FnOnce(BreakerLayer<Plain>, Arc<Heard>, Dependency) -> S) -> Reached
where
    S: Service<u64, Response = u64, Future: Send> + Clone + Send + 'static,
{
    fastrand::seed(7);
    let dead = || Step::error("dead").after(FAILS_AFTER);
    let dependency = Dependency::noting(|_| (), []).otherwise(dead);
    let heard = Arc::new(Heard::default());
    let policy = BreakerPolicy::builder()
        .consecutive_failures(THRESHOLD as u32)
        .probes(PROBES as u32);
    let breaker = BreakerLayer::new(policy.build().unwrap(), Plain::idempotent());
    let breaker = breaker.observer(heard.clone());
    let service = stack(breaker, Arc::clone(&heard), dependency.clone());

    let (operations, end) = (Arc::new(AtomicUsize::new(0)), clock::now() + LASTS);
    let mut callers = JoinSet::new();
    for number in 0..CALLERS {
        let (service, operations) = (service.clone(), Arc::clone(&operations));
        callers.spawn(async move {
            // Spread over their pause, as callers are that know nothing of each other.
            sleep(PAUSE * number as u32 / CALLERS as u32).await;
            while clock::now() < end {
                operations.fetch_add(1, Relaxed);
                assert!(service.clone().oneshot(number).await.is_err());
                sleep(PAUSE).await;
            }
        });
    }
    while let Some(caller) = callers.join_next().await {
        caller.unwrap();
    }
    let openings = heard.openings.load(Relaxed);
    Reached {
        operations: operations.load(Relaxed),
        sends: dependency.started(),
        bound: THRESHOLD + heard.as_it_opened.get().unwrap_or(&0) + PROBES * openings,
        openings,
    }
}

#[tokio::test(start_paused = true)]
async fn of_a_thousand_callers_only_what_the_breaker_lets_through_reaches_a_dead_dependency() {
    let attempts = ask(|breaker, heard, dependency| {
        let inside = ServiceBuilder::new().layer(retry()).layer(breaker);
        let inside = inside.map_future(move |call| counted(&heard, call));
        inside.service(dependency)
    });
    let operations = ask(|breaker, heard, dependency| {
        let outside = ServiceBuilder::new().layer(breaker);
        let outside = outside.map_future(move |call| counted(&heard, call));
        outside.layer(retry()).service(dependency)
    });
    let unprotected = ask(|breaker, _, dependency| {
        drop(breaker);
        ServiceBuilder::new().layer(retry()).service(dependency)
    });
    let (attempts, operations) = (attempts.await, operations.await);
    let unprotected = unprotected.await;
    println!("no breaker: {unprotected:?}");
    println!(
        "breaker inside of the retry:  {attempts:?}\nbreaker outside of the retry: {operations:?}"
    );
    assert_eq!(unprotected.sends, unprotected.operations * MAX_ATTEMPTS);
    assert!(unprotected.sends > 20_000);
    assert!(attempts.operations > 15_000 && operations.operations > 15_000);
    let tried_again = attempts.openings > 1 && operations.openings > 1;
    assert!(tried_again, "{attempts:?} {operations:?}");
    assert!(attempts.sends <= attempts.bound, "{attempts:?}");
    assert!(
        operations.sends <= operations.bound * MAX_ATTEMPTS,
        "{operations:?}"
    );
    assert!(
        attempts.sends < operations.sends,
        "the damage shows at once"
    );
}
