//! A process ends under load, and another goes on with what it had in hand.

use std::collections::BTreeSet;
use std::time::Duration;

use mamparo_core::clock;
use mamparo_durable::machine::{State, TransactionId};
use mamparo_testkit::private::PrivatePostgres;
use tokio::time::sleep;

use super::checks::{Told, each_is_as_the_dependency_says, until_all_ended};
use super::dependency::{Dependency, STUCK, WILLING};
use super::engine::open;
use super::process::{LEASE, Said, Spec, Worker};

/// What a dead process had in hand is taken up again by then.
const SOON: Duration = Duration::from_secs(3);

/// What one engine does in a second or so.
const LOAD: usize = 300;

/// Tells a worker to begin so many, and waits until it has.
async fn begin(worker: &mut Worker, told: &mut Told, ids: impl Iterator<Item = String>) {
    let mut undone = BTreeSet::new();
    for id in ids {
        worker.tell(&format!("begin {id}")).await;
        undone.insert(format!("begin {id} Applied"));
        told.begun.insert(id, None);
    }
    while !undone.is_empty() {
        if let Said::Did(what) = worker.says().await.unwrap() {
            assert!(undone.remove(&what), "{what}");
        }
    }
}

/// Waits until some have been sent; none is answered at once.
async fn in_hand(dependency: &Dependency) {
    while dependency.deliveries().0 < 32 {
        sleep(Duration::from_millis(5)).await;
    }
}

fn load(name: &str) -> impl Iterator<Item = String> {
    (0..LOAD).map(move |number| format!("{WILLING}-{name}-{number}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_engines_on_one_postgres_one_finishes_what_the_other_had_within_the_lease() {
    let server = PrivatePostgres::start().await;
    let place = format!("postgres {} engines", server.url());
    let dependency = Dependency::start(1).await;
    let spec = Spec::new(&place, dependency.address);
    let mut dies = Worker::start(&spec).await;
    let mut lives = Worker::start(&spec).await;
    let mut told = Told::default();
    begin(&mut dies, &mut told, load("one")).await;
    begin(&mut lives, &mut told, load("other")).await;
    in_hand(&dependency).await;
    dies.kill().await;
    let died = clock::now();
    let backend = open(&place).await;
    until_all_ended(&backend, told.begun.len() as u64, Duration::from_secs(30)).await;
    let took = died.elapsed();
    let (_, again) = dependency.deliveries();
    println!("{took:?} after its death all had ended; {again} were sent again");
    assert!(again > 0, "it had nothing in hand");
    assert!(took < LEASE + Duration::from_secs(1), "{took:?}");
    each_is_as_the_dependency_says(&backend, &dependency, &told).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_on_sqlite_that_is_killed_under_load_resumes_all_within_three_seconds() {
    let folder = tempfile::tempdir().unwrap();
    let place = format!("sqlite {}", folder.path().join("engine.db").display());
    let dependency = Dependency::start(2).await;
    let spec = Spec::new(&place, dependency.address);
    let mut worker = Worker::start(&spec).await;
    let mut told = Told::default();
    begin(&mut worker, &mut told, load("one")).await;
    in_hand(&dependency).await;
    worker.kill().await;
    let next = Worker::start(&spec).await;
    let began = clock::now();
    let backend = open(&place).await;
    until_all_ended(&backend, told.begun.len() as u64, Duration::from_secs(30)).await;
    let (_, again) = dependency.deliveries();
    let last = dependency
        .instants()
        .into_iter()
        .max()
        .unwrap()
        .duration_since(began);
    println!("{last:?} after the restart all were resumed; {again} were sent again");
    assert!(again > 0, "it had nothing in hand");
    assert!(last <= SOON, "{last:?}");
    each_is_as_the_dependency_says(&backend, &dependency, &told).await;
    drop(next);
}

/// SIGTERM: who is quick is done, who hangs is given back and sent again under the same key; no attempt is spent, and no delivery.
async fn a_stop_drains(place: &str) {
    let dependency = Dependency::start(3).await;
    let spec = Spec::new(place, dependency.address);
    let mut worker = Worker::start(&spec).await;
    let mut told = Told::default();
    let hangs: Vec<_> = (0..8).map(|number| format!("{STUCK}-{number}")).collect();
    begin(&mut worker, &mut told, hangs.clone().into_iter()).await;
    begin(&mut worker, &mut told, load("quick")).await;
    let began = clock::now();
    worker.terminate().await;
    let mut stopped = None;
    while let Some(said) = worker.says().await {
        if let Said::Stopped(millis) = said {
            stopped = Some(millis);
        }
    }
    let took = began.elapsed();
    println!("it stopped after {stopped:?} ms, and was gone after {took:?}");
    assert!(
        stopped.is_some_and(|millis| millis >= 3_000),
        "it did not wait"
    );
    assert!(took <= Duration::from_secs(5), "{took:?}");
    let backend = open(place).await;
    for id in &hangs {
        let id = TransactionId::new(id.as_str()).unwrap();
        let loaded = backend.store().load(vec![id]).await.pop();
        let progress = loaded.unwrap().unwrap().unwrap().progress;
        assert_eq!(
            (
                progress.state,
                progress.attempt_current,
                progress.postponements
            ),
            (State::InFlight, 1, 0)
        );
    }
    let next = Worker::start(&spec).await;
    let began = clock::now();
    until_all_ended(&backend, told.begun.len() as u64, Duration::from_secs(30)).await;
    let took = began.elapsed();
    // What was given back waits for no lease.
    assert!(took < Duration::from_millis(2_500), "{took:?}");
    let (keys, again) = dependency.deliveries();
    assert_eq!((keys, again), (told.begun.len(), 8));
    each_is_as_the_dependency_says(&backend, &dependency, &told).await;
    drop(next);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_drains_in_five_seconds_and_spends_no_attempt_over_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("engine.db");
    a_stop_drains(&format!("sqlite {}", file.display())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_drains_in_five_seconds_and_spends_no_attempt_over_postgres() {
    let server = PrivatePostgres::start().await;
    a_stop_drains(&format!("postgres {} stops", server.url())).await;
}
