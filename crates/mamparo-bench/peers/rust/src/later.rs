//! What is measured of systems that keep work for later, in the same way for all: each program includes it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// As long is what is refused put off.
pub(crate) const PUT_OFF: Duration = Duration::from_secs(3_600);

/// No more is in a worker's hands at once.
pub(crate) const AT_ONCE: usize = 512;

/// As many come due in a second, to see how late they are taken.
const RATES: [i64; 2] = [250, 2_000];

/// Until the first comes due: this, and as long as putting in takes where it is slow.
const HEAD_START_MS: i64 = 3_000;
const PUT_IN_EACH_MS: i64 = 2;

const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// A system with its store.
pub(crate) trait Later {
    /// Milliseconds since 1970.
    fn now(&self) -> i64;

    /// Stores what comes due at these instants; 0 is work for now, which will be refused.
    async fn put(&self, due: &[i64]);

    /// Starts the workers.
    async fn start(&mut self);

    /// How much is put off, durably.
    async fn put_off(&self) -> u64;
}

/// What workers were given.
#[derive(Default)]
pub(crate) struct Seen {
    refused: AtomicU64,
    late: Mutex<Vec<i64>>,
}

impl Seen {
    /// Called by a worker; returns whether the work is to be put off.
    pub(crate) fn refuses(&self, due: i64, now: i64) -> bool {
        if due == 0 {
            self.refused.fetch_add(1, Ordering::Relaxed);
        } else {
            self.late().push(now - due);
        }
        due == 0
    }

    fn late(&self) -> MutexGuard<'_, Vec<i64>> {
        self.late.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Prints a line for each figure: a name, and numbers with a tab before each.
pub(crate) async fn measure(system: &mut impl Later, seen: &Seen, count: u64, seconds: i64) {
    system.put(&vec![0; count as usize]).await;
    let begun = system.now();
    system.start().await;
    while seen.refused.load(Ordering::Relaxed) < count || system.put_off().await < count {
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    println!("deferrals\t{:.0}", rate(count, system.now() - begun));

    let start = start_of(system, count as i64);
    let herd = lateness(system, seen, vec![start; count as usize]).await;
    println!("fires\t{:.0}", rate(count, herd[herd.len() - 1]));

    for each_second in RATES {
        let (all, start) = (
            each_second * seconds,
            start_of(system, each_second * seconds),
        );
        let due = (0..all).map(|number| start + number * 1_000 / each_second);
        let late = lateness(system, seen, due.collect()).await;
        let at = |share: usize| late[(late.len() - 1) * share / 100];
        println!("late {each_second}\t{}\t{}\t{}", at(50), at(99), at(0));
    }
}

fn rate(count: u64, millis: i64) -> f64 {
    count as f64 * 1_000.0 / millis.max(1) as f64
}

fn start_of(system: &impl Later, count: i64) -> i64 {
    system.now() + HEAD_START_MS + count / PUT_IN_EACH_MS
}

/// How late each was given to a worker, sorted.
async fn lateness(system: &impl Later, seen: &Seen, due: Vec<i64>) -> Vec<i64> {
    seen.late().clear();
    system.put(&due).await;
    assert!(system.now() < due[0], "came due before all was put in");
    while seen.late().len() < due.len() {
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    let mut late = std::mem::take(&mut *seen.late());
    late.sort_unstable();
    late
}
