//! A hundred clients that fail in the same instant, before a dependency that can serve ten: what jitter is for.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mamparo::retry::{RetryLayer, RetryPolicy};
use mamparo_core::clock::{self, Instant};
use mamparo_core::{Backoff, BoxError, Budget, Jitter, Plain};
use mamparo_testkit::service::{Script, Step};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tower::{Layer, ServiceExt};

use crate::own_process::{self, Said};

const CLIENTS: usize = 100;

/// Requests that the dependency serves at once; it refuses what comes besides.
const CAPACITY: usize = 10;

/// How long it serves one.
const SERVICE: Duration = Duration::from_millis(5);

/// Other draws, that all must keep what jitter promises.
const SEEDS: std::ops::Range<u64> = 0..20;

fn retry(jitter: Jitter) -> RetryLayer<Plain> {
    // Nothing but the jitter may hold anybody back.
    let policy = RetryPolicy::builder()
        .backoff(Backoff::builder().jitter(jitter).build().unwrap())
        .budget(Budget::unlimited())
        .max_attempts(100);
    RetryLayer::new(policy.build().unwrap(), Plain::idempotent())
}

#[derive(Debug)]
struct Dependency {
    broken_until: Instant,
    places: Semaphore,
    sends: Mutex<Vec<Instant>>,
}

impl Dependency {
    async fn serve(&self) -> Result<(), BoxError> {
        let now = clock::now();
        if now <= self.broken_until {
            return Err("down".into());
        }
        self.sends.lock().unwrap().push(now);
        let _place = self.places.try_acquire()?;
        tokio::time::sleep(SERVICE).await;
        Ok(())
    }
}

/// What the dependency has to bear after the instant of failure.
#[derive(Debug)]
struct Storm {
    /// How often it was called.
    work: usize,
    /// The most calls within the time that it takes to serve one.
    peak: usize,
}

/// Lets everybody fail at once, and all of them retry until they are served.
async fn storm(jitter: Jitter, seed: u64) -> Storm {
    fastrand::seed(seed);
    let dependency = Arc::new(Dependency {
        broken_until: clock::now(),
        places: Semaphore::new(CAPACITY),
        sends: Mutex::default(),
    });
    let serving = Arc::clone(&dependency);
    let inner = tower::service_fn(move |()| {
        let dependency = Arc::clone(&serving);
        async move { dependency.serve().await }
    });
    let service = retry(jitter).layer(inner);
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        clients.spawn(service.clone().oneshot(()));
    }
    while let Some(served) = clients.join_next().await {
        served.unwrap().unwrap();
    }
    let mut sends = dependency.sends.lock().unwrap().clone();
    sends.sort_unstable();
    let busiest = sends.iter().enumerate().map(|(first, &from)| {
        let within = sends.partition_point(|&at| at < from + SERVICE);
        within - first
    });
    Storm {
        work: sends.len(),
        peak: busiest.max().unwrap(),
    }
}

#[tokio::test(start_paused = true)]
async fn full_jitter_takes_half_the_work_and_four_fifths_of_the_peak_out_of_a_retry_storm() {
    let without = storm(Jitter::None, 0).await;
    // Ten are served, and ninety come back together; eighty after that.
    assert_eq!((without.work, without.peak), (550, CLIENTS));
    for seed in SEEDS {
        let with = storm(Jitter::Full, seed).await;
        assert!(2 * with.work < without.work, "seed {seed}: {with:?}");
        assert!(5 * with.peak < without.peak, "seed {seed}: {with:?}");
    }
}

/// Says how long one operation waits before each of its resends; run by the test below, in processes of its own.
#[tokio::test(start_paused = true)]
#[ignore = "is run by another test"]
async fn says_its_waits() {
    let down = Script::<u32, u32>::new([]).otherwise(|| Step::error("down"));
    let service = retry(Jitter::Full).layer(down.clone());
    let given_up = tokio::time::timeout(Duration::from_secs(60), service.oneshot(1)).await;
    assert!(given_up.is_err());
    let starts = down.starts();
    let waits = starts
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).as_millis());
    let waits: Vec<_> = waits.collect();
    println!("waits: {waits:?}");
}

#[tokio::test]
async fn two_processes_started_together_wait_differently() {
    let start = || {
        own_process::command("storm::says_its_waits")
            .spawn()
            .unwrap()
    };
    let (mut one, mut other) = (start(), start());
    let one = Said::by(&mut one).after("waits: ").await;
    let other = Said::by(&mut other).after("waits: ").await;
    assert!(one.matches(',').count() > 9, "{one}");
    assert_ne!(one, other);
}
