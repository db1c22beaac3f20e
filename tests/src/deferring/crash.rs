//! Engines are killed at every named place between two effects, and at random instants; the next process goes on.
//!
//! A life is a process on a store: it is told to begin some transactions, to resolve, cancel or fire others, and dies. After the
//! last, everything must be as the dependency says: nothing lost, nothing done twice, each end told. Each store has two lanes:
//! whole steps in one transaction, and one thing after the other. `MAMPARO_CRASHES` says how many lives there are for each store,
//! `MAMPARO_CRASH_SEED` makes them others.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::time::Duration;

use fastrand::Rng;
use mamparo_durable::fail_point::{Doing, FailPoint};
use mamparo_durable::machine::State;
use mamparo_testkit::private::PrivatePostgres;
use tokio::time::{sleep_until, timeout};

use super::checks::{Told, each_is_as_the_dependency_says, until_all_ended};
use super::dependency::Dependency;
use super::engine::{BY_MESSAGE, UNSENT, open};
use super::process::{Said, Spec, Worker};

/// How many lives there are for each store, unless the environment says more.
const LIVES: usize = 100;

/// As many transactions begin in each life.
const BEGINS: usize = 20;

/// A process that has not died where it should by then, is killed.
const LONGEST_LIFE: u64 = 700;

const LEASE: Duration = Duration::from_millis(300);

/// How long all may take after the last death.
const PATIENCE: Duration = Duration::from_secs(30);

fn number(variable: &str, default: usize) -> usize {
    env::var(variable).map_or(default, |text| text.parse().unwrap())
}

/// Where a process can die that does whole steps, or one thing after the other.
fn points(whole: bool) -> Vec<FailPoint> {
    let reachable = |point: &FailPoint| match point {
        // What is written there is never the last of a step, but for the reconciler's note.
        FailPoint::Committing(State::Scheduling | State::Sending)
        | FailPoint::Committed(State::Scheduling | State::Sending) => false,
        FailPoint::Committing(_) | FailPoint::Committed(_) | FailPoint::Moved => whole,
        FailPoint::Written(_) | FailPoint::Done(_) | FailPoint::Begun => !whole,
        _ => true,
    };
    FailPoint::all().into_iter().filter(reachable).collect()
}

/// Those that are reached seldom.
fn is_rare(point: FailPoint) -> bool {
    matches!(
        point,
        FailPoint::Found
            | FailPoint::Moved
            | FailPoint::Done(Doing::Unschedule | Doing::Refire | Doing::Alert)
    )
}

struct Lane {
    spec: Spec,
    dependency: Dependency,
    rng: Rng,
    told: Told,
    /// What was told to a process that died before it said that it did it.
    undone: BTreeSet<String>,
    deaths: BTreeMap<String, u32>,
}

impl Lane {
    async fn new(place: String, seed: u64) -> Self {
        let dependency = Dependency::start(seed).await;
        let mut spec = Spec::new(&place, dependency.address);
        spec.lease = LEASE;
        spec.restless = true;
        Self {
            spec,
            dependency,
            rng: Rng::with_seed(seed),
            told: Told::default(),
            undone: BTreeSet::new(),
            deaths: BTreeMap::new(),
        }
    }

    fn millis(&mut self, most: u64) -> Duration {
        Duration::from_millis(self.rng.u64(..=most))
    }

    /// Makes up what a life is told, and after how long.
    fn orders(&mut self, life: usize) -> Vec<(Duration, String)> {
        let again = std::mem::take(&mut self.undone).into_iter();
        let mut orders: Vec<_> = again.map(|line| (Duration::ZERO, line)).collect();
        for number in 0..BEGINS {
            let (prefix, verb) = match self.rng.u32(..20) {
                0..4 => (BY_MESSAGE, None),
                4 => (UNSENT, None),
                5 => ("a", Some("resolve")),
                6 => ("b", Some("cancel")),
                7 => ("c", Some("fire")),
                _ => ("t", None),
            };
            let id = format!("{prefix}-{life}-{number}t");
            let begins = self.millis(300);
            orders.push((begins, format!("begin {id}")));
            if let Some(verb) = verb {
                let later = begins + self.millis(250);
                orders.push((later, format!("{verb} {id}")));
            }
            self.told.begun.insert(id, verb);
        }
        orders.sort();
        orders
    }

    fn hear(&mut self, said: Said) {
        match said {
            Said::Alert(alert) => self.told.alert(&alert),
            Said::Did(line) => {
                let (order, note) = line.rsplit_once(' ').unwrap();
                let (verb, id) = order.split_once(' ').unwrap();
                if note == "Failed" {
                    return;
                }
                self.undone.remove(order);
                if note == "Applied" && matches!(verb, "resolve" | "cancel") {
                    self.told.done.insert(id.to_owned());
                }
            }
            Said::Stopped(millis) => assert!(millis <= 5_000, "a stop took {millis} ms"),
        }
    }

    /// One process, from its start to its death.
    async fn life(&mut self, life: usize, dies: Option<FailPoint>) {
        let longest = match dies {
            Some(point) if is_rare(point) => Duration::from_millis(3 * LONGEST_LIFE),
            Some(_) => Duration::from_millis(LONGEST_LIFE),
            None => self.millis(LONGEST_LIFE),
        };
        let mut spec = self.spec.clone();
        spec.dies = dies.map(|point| {
            let most = if is_rare(point) { 1 } else { 6 };
            (point.name(), self.rng.u32(1..=most))
        });
        let orders = self.orders(life);
        // Whatever is not answered is told to the next again.
        self.undone = orders.iter().map(|(_, line)| line.clone()).collect();
        let mut worker = Worker::start(&spec).await;
        let began = mamparo_core::clock::now();
        let mut orders = orders.into_iter().peekable();
        loop {
            let next = orders.peek().map_or(longest, |(at, _)| (*at).min(longest));
            tokio::select! {
                said = worker.says() => match said {
                    Some(said) => self.hear(said),
                    None => {
                        assert!(worker.has_aborted().await, "it died elsewhere than {dies:?}");
                        return self.died(dies);
                    }
                },
                () = sleep_until(began + next) => {
                    if began.elapsed() >= longest {
                        break;
                    }
                    if let Some((_, order)) = orders.next() {
                        worker.tell(&order).await;
                    }
                }
            }
        }
        worker.kill().await;
        while let Some(said) = worker.says().await {
            self.hear(said);
        }
        self.died(None);
    }

    fn died(&mut self, at: Option<FailPoint>) {
        let at = at.map_or_else(|| "at random".to_owned(), FailPoint::name);
        *self.deaths.entry(at).or_default() += 1;
    }

    /// The last process, which does all that is left and is stopped in good order.
    async fn last(&mut self) {
        let mut worker = Worker::start(&self.spec).await;
        for order in self.undone.clone() {
            worker.tell(&order).await;
        }
        while !self.undone.is_empty() {
            let said = timeout(PATIENCE, worker.says()).await;
            self.hear(said.expect("it does all that it is told").unwrap());
        }
        let backend = open(&self.spec.place).await;
        let transactions = self.told.begun.len() as u64;
        until_all_ended(&backend, transactions, PATIENCE).await;
        worker.terminate().await;
        while let Some(said) = worker.says().await {
            self.hear(said);
        }
        each_is_as_the_dependency_says(&backend, &self.dependency, &self.told).await;
    }
}

async fn lane(place: String, whole: bool, seed: u64, lives: usize) {
    let place = if whole {
        place
    } else {
        format!("{place} parts")
    };
    let points = points(whole);
    let mut lane = Lane::new(place, seed).await;
    let offset = lane.rng.usize(..points.len());
    let mut turns = points.iter().cycle().skip(offset);
    for life in 0..lives {
        // One in five dies at random.
        let point = if life % 5 == 4 { None } else { turns.next() };
        lane.life(life, point.copied()).await;
    }
    lane.last().await;
    let (keys, more) = lane.dependency.deliveries();
    println!(
        "seed {seed}, whole steps {whole}: {lives} lives, {} transactions, {keys} attempts of which {more} were sent twice; died {:#?}",
        lane.told.begun.len(),
        lane.deaths
    );
    if lives >= points.len() * 4 {
        let missing: Vec<_> = points
            .iter()
            .filter(|point| !is_rare(**point) && !lane.deaths.contains_key(&point.name()))
            .collect();
        assert!(missing.is_empty(), "nobody died at {missing:?}");
    }
}

async fn nothing_is_lost_and_nothing_is_done_twice(whole: String, parts: String) {
    let lives = number("MAMPARO_CRASHES", LIVES) / 2;
    let seed = number("MAMPARO_CRASH_SEED", 0) as u64;
    println!("MAMPARO_CRASHES={} MAMPARO_CRASH_SEED={seed}", lives * 2);
    tokio::join!(
        lane(whole, true, seed, lives),
        lane(parts, false, seed + 1, lives)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_engine_loses_nothing_and_does_nothing_twice_over_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name| format!("sqlite {}", folder.path().join(name).display());
    nothing_is_lost_and_nothing_is_done_twice(place("whole.db"), place("parts.db")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_engine_loses_nothing_and_does_nothing_twice_over_postgres() {
    let server = PrivatePostgres::start().await;
    let place = |schema| format!("postgres {} {schema}", server.url());
    nothing_is_lost_and_nothing_is_done_twice(place("whole"), place("parts")).await;
}
