//! Engines are killed at every named place between two effects, and at random instants; the next process goes on.
//!
//! A life is a process on a store: it is told to begin some transactions, to resolve, cancel or fire others, and dies. After the
//! last, everything must be as the dependency says: nothing lost, nothing done twice, each end told. Each store has two lanes:
//! whole steps in one transaction, and one thing after the other. `MAMPARO_CRASHES` says how many lives there are for each store (with
//! twenty transactions each, and on AWS with three), `MAMPARO_CRASH_SEED` makes them others.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::time::Duration;

use fastrand::Rng;
use mamparo_aws::plan::{self, Plan};
use mamparo_durable::fail_point::{Doing, FailPoint};
use mamparo_durable::machine::State;
use mamparo_testkit::private::{PrivateMoto, PrivatePostgres};
use tokio::process::Command;
use tokio::time::{sleep_until, timeout};

use super::checks::{Told, each_is_as_the_dependency_says, until_all_ended};
use super::dependency::Dependency;
use super::engine::{BY_MESSAGE, UNSENT, aws, open};
use super::process::{Said, Spec, Worker};

/// How much is lived through on a store, unless the environment says more.
#[derive(Clone, Copy)]
struct Pace {
    /// How many lives there are.
    lives: usize,
    /// As many transactions begin in each.
    begins: usize,
    /// A process that has not died where it should by then, is killed.
    longest_life: u64,
    /// After how long what a dead process had in hand is taken up.
    lease: Duration,
    /// How long all may take after the last death.
    patience: Duration,
}

const QUICK: Pace = Pace {
    lives: 100,
    begins: 20,
    longest_life: 700,
    lease: Duration::from_millis(300),
    patience: Duration::from_secs(30),
};

/// On what answers as AWS does, and more slowly.
const SLOW: Pace = Pace {
    lives: 12,
    begins: 3,
    longest_life: 2_000,
    lease: Duration::from_secs(2),
    patience: Duration::from_secs(120),
};

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
    pace: Pace,
    spec: Spec,
    dependency: Dependency,
    rng: Rng,
    told: Told,
    /// What was told to a process that died before it said that it did it.
    undone: BTreeSet<String>,
    deaths: BTreeMap<String, u32>,
}

impl Lane {
    async fn new(place: String, seed: u64, pace: Pace) -> Self {
        let dependency = Dependency::start(seed).await;
        let mut spec = Spec::new(&place, dependency.address);
        spec.lease = pace.lease;
        spec.restless = true;
        Self {
            pace,
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
        for number in 0..self.pace.begins {
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
            Some(point) if is_rare(point) => Duration::from_millis(3 * self.pace.longest_life),
            Some(_) => Duration::from_millis(self.pace.longest_life),
            None => self.millis(self.pace.longest_life),
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
            let said = timeout(self.pace.patience, worker.says()).await;
            self.hear(said.expect("it does all that it is told").unwrap());
        }
        let backend = open(&self.spec.place).await;
        let transactions = self.told.begun.len() as u64;
        until_all_ended(&backend, transactions, self.pace.patience).await;
        worker.terminate().await;
        while let Some(said) = worker.says().await {
            self.hear(said);
        }
        each_is_as_the_dependency_says(&backend, &self.dependency, &self.told).await;
    }
}

async fn lane(place: String, whole: bool, seed: u64, pace: Pace) {
    let lives = pace.lives / 2;
    let place = if whole {
        place
    } else {
        format!("{place} parts")
    };
    let points = points(whole);
    let mut lane = Lane::new(place, seed, pace).await;
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

async fn nothing_is_lost_and_nothing_is_done_twice(whole: String, parts: String, pace: Pace) {
    let pace = Pace {
        lives: number("MAMPARO_CRASHES", pace.lives),
        ..pace
    };
    let seed = number("MAMPARO_CRASH_SEED", 0) as u64;
    println!("MAMPARO_CRASHES={} MAMPARO_CRASH_SEED={seed}", pace.lives);
    tokio::join!(
        lane(whole, true, seed, pace),
        lane(parts, false, seed + 1, pace)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_engine_loses_nothing_and_does_nothing_twice_over_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name| format!("sqlite {}", folder.path().join(name).display());
    nothing_is_lost_and_nothing_is_done_twice(place("whole.db"), place("parts.db"), QUICK).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_engine_loses_nothing_and_does_nothing_twice_over_postgres() {
    let server = PrivatePostgres::start().await;
    let place = |schema| format!("postgres {} {schema}", server.url());
    nothing_is_lost_and_nothing_is_done_twice(place("whole"), place("parts"), QUICK).await;
}

/// Its schedules are fired late, early and twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_engine_loses_nothing_and_does_nothing_twice_over_aws() {
    let server = PrivateMoto::start().await;
    let seed = number("MAMPARO_CRASH_SEED", 0).to_string();
    let mut fires = Vec::new();
    for prefix in ["whole", "parts"] {
        let aws = aws(&server.url(), prefix).await;
        let plan = Plan::of(&aws);
        plan::apply(&aws, &plan, &mut |_| {}).await.unwrap();
        let program = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/fires.py");
        let mut fired = Command::new(server.python());
        fired.args([program, &server.url(), &plan.group().name, &seed]);
        fires.push(fired.kill_on_drop(true).spawn().unwrap());
    }
    let place = |prefix| format!("aws {} {prefix}", server.url());
    nothing_is_lost_and_nothing_is_done_twice(place("whole"), place("parts"), SLOW).await;
}
