//! The rate of two engines on one store, as their dependency sees it.

use std::time::Duration;

use mamparo_testkit::private::PrivatePostgres;

use super::checks::{Told, each_is_as_the_dependency_says, until_all_ended};
use super::dependency::{Dependency, ONCE_LATER};
use super::engine::open;
use super::process::{Said, Spec, Worker};

const RATE: u32 = 10;

/// Each is sent twice: refused, and done.
const TRANSACTIONS: usize = 30;

/// One more, since a request is under way for a while, and not always for as long.
const MOST: usize = RATE as usize + 1;

async fn two_engines_keep_one_rate(place: &str) {
    let dependency = Dependency::start(4).await;
    let mut spec = Spec::new(place, dependency.address);
    spec.rate = Some(RATE);
    let mut workers = [Worker::start(&spec).await, Worker::start(&spec).await];
    let mut told = Told::default();
    for number in 0..TRANSACTIONS {
        let id = format!("{ONCE_LATER}-{number}x");
        workers[number % 2].tell(&format!("begin {id}")).await;
        told.begun.insert(id, None);
    }
    for number in 0..TRANSACTIONS {
        let said = workers[number % 2].says().await.unwrap();
        assert!(matches!(said, Said::Did(_)), "{said:?}");
    }
    let backend = open(place).await;
    let all = TRANSACTIONS as u64;
    until_all_ended(&backend, all, Duration::from_secs(60)).await;
    each_is_as_the_dependency_says(&backend, &dependency, &told).await;
    let mut instants = dependency.instants();
    instants.sort();
    let second = Duration::from_secs(1);
    let within = |from: usize| {
        let later = instants[from..].iter();
        later
            .take_while(|at| **at - instants[from] < second)
            .count()
    };
    let most = (0..instants.len()).map(within).max().unwrap();
    let took = instants[instants.len() - 1] - instants[0];
    println!(
        "{} requests in {took:?}, at most {most} in a second",
        instants.len()
    );
    assert!(most <= MOST, "{most} in a second");
    // And it is used: none waits without need.
    let least = Duration::from_secs(instants.len() as u64) / RATE;
    assert!(took < least * 2, "{took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_engines_on_one_postgres_share_one_rate() {
    let server = PrivatePostgres::start().await;
    two_engines_keep_one_rate(&format!("postgres {} rates", server.url())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_engines_on_one_sqlite_file_share_one_rate() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("engine.db");
    two_engines_keep_one_rate(&format!("sqlite {}", file.display())).await;
}
