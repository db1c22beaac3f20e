//! Random schedules: servers are killed (`kill -9`) at random instants, while callers time out, repeat and come together.
//!
//! A schedule is up to three keys, each asked for up to four times around the instant of the crash. Afterwards, with the next
//! process on the same store, each key is asked for until it is answered. Then there is exactly one payment for each, and
//! whatever was answered, before or after, said that one; in the end each is published once. `MAMPARO_CRASHES` says how many
//! schedules there are for each store; `MAMPARO_CRASH_SEED` makes them others.

use std::env;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fastrand::Rng;
use mamparo_core::clock;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::process::{self, PAUSES, Server};
use super::shop::{Shop, answer};

/// How many schedules there are for each store, unless the environment says more.
const SCHEDULES: usize = 40;

/// Schedules at once, each with a server process of its own; all share one store.
const LANES: usize = 4;

/// Short, so that the next process takes over soon, and so that runs lose their lease on a busy machine.
const LEASE: Duration = Duration::from_millis(150);

/// How long a key may be asked for after a crash before it counts as lost.
const PATIENCE: Duration = Duration::from_secs(20);

fn number(variable: &str, default: usize) -> usize {
    env::var(variable).map_or(default, |text| text.parse().unwrap())
}

/// What all schedules have seen.
#[derive(Debug, Default)]
struct Seen {
    keys: AtomicUsize,
    answered_before_the_crash: AtomicUsize,
    unanswered: AtomicUsize,
    made_but_unanswered: AtomicUsize,
}

fn count(counter: &AtomicUsize, more: usize) {
    counter.fetch_add(more, Ordering::Relaxed);
}

fn millis(rng: &mut Rng, most: u64) -> Duration {
    Duration::from_millis(rng.u64(..=most))
}

/// Asks once; `Some` is the text of a payment that was acknowledged.
async fn ask(
    client: reqwest::Client,
    url: String,
    key: String,
    pauses: String,
    patience: Duration,
) -> Option<String> {
    let request = client
        .post(url)
        .header("idempotency-key", format!("\"{key}\""));
    let request = request.header(PAUSES, pauses).timeout(patience).body(key);
    let answer = request.send().await.ok()?;
    let status = answer.status().as_u16();
    assert!(matches!(status, 200 | 409 | 500 | 503), "{answer:?}");
    let text = answer.text().await.ok()?;
    (status == 200).then_some(text)
}

/// One caller: waits, asks, gives up after a while.
async fn caller(client: reqwest::Client, url: String, key: String, mut rng: Rng) -> Option<String> {
    sleep(millis(&mut rng, 60)).await;
    let pauses = [(); 3].map(|()| rng.u64(..8).to_string()).join(",");
    let patience = Duration::from_millis(1) + millis(&mut rng, 250);
    ask(client, url, key, pauses, patience).await
}

async fn until_answered(client: &reqwest::Client, server: &Server, key: &str) -> String {
    let start = clock::now();
    while start.elapsed() < PATIENCE {
        let second = Duration::from_secs(1);
        let asked = ask(
            client.clone(),
            server.url(),
            key.into(),
            String::new(),
            second,
        );
        if let Some(text) = asked.await {
            return text;
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("{key} is lost");
}

/// Runs one schedule on a server, and returns the process that came after it.
async fn schedule(seed: u64, shop: &Shop, place: &str, server: Server, seen: &Seen) -> Server {
    let mut rng = Rng::with_seed(seed);
    let client = reqwest::Client::builder()
        .pool_max_idle_per_host(0)
        .no_proxy()
        .build()
        .unwrap();
    let keys: Vec<_> = (0..rng.usize(1..=3))
        .map(|key| format!("{seed}-{key}"))
        .collect();
    let callers: Vec<Vec<_>> = keys
        .iter()
        .map(|key| {
            let asked = (0..rng.usize(1..=4)).map(|_| {
                tokio::spawn(caller(
                    client.clone(),
                    server.url(),
                    key.clone(),
                    rng.fork(),
                ))
            });
            asked.collect()
        })
        .collect();
    sleep(millis(&mut rng, 250)).await;
    server.kill().await;
    let server = Server::start(place, LEASE).await;
    for (key, callers) in keys.iter().zip(callers) {
        let mut answers = Vec::new();
        for caller in callers {
            answers.extend(caller.await.unwrap());
        }
        count(&seen.keys, 1);
        count(
            &seen.answered_before_the_crash,
            usize::from(!answers.is_empty()),
        );
        count(&seen.unanswered, usize::from(answers.is_empty()));
        let made = !shop.paid(key).await.is_empty();
        count(
            &seen.made_but_unanswered,
            usize::from(answers.is_empty() && made),
        );
        answers.push(until_answered(&client, &server, key).await);
        let paid = shop.paid(key).await;
        assert_eq!(
            paid.len(),
            1,
            "payments of {key}, of which was said {answers:?}"
        );
        let right = answer(paid[0], key).into_body();
        assert!(
            answers.iter().all(|text| *text == right),
            "{key}: {answers:?}"
        );
    }
    server
}

async fn every_key_has_one_effect(place: String) {
    let schedules = number("MAMPARO_CRASHES", SCHEDULES);
    let start = number("MAMPARO_CRASH_SEED", 0);
    let seen = Arc::new(Seen::default());
    let shop = Shop::open(&place).await;
    let mut lanes = JoinSet::new();
    for lane in 0..LANES {
        let (seen, shop, place) = (Arc::clone(&seen), shop.clone(), place.clone());
        lanes.spawn(async move {
            let mut server = Server::start(&place, LEASE).await;
            for seed in (lane..schedules).step_by(LANES) {
                let seed = u64::try_from(start + seed).unwrap();
                server = schedule(seed, &shop, &place, server, &seen).await;
            }
        });
    }
    while let Some(done) = lanes.join_next().await {
        done.unwrap();
    }
    println!("{schedules} crashes: {seen:?}");
    let mut published = shop.published().await;
    let (keys, total) = (seen.keys.load(Ordering::Relaxed), published.len());
    published.sort_unstable();
    published.dedup();
    assert_eq!(
        (published.len(), total),
        (keys, keys),
        "published of the keys"
    );
    let before = [&seen.answered_before_the_crash, &seen.made_but_unanswered];
    let before = before.map(|counter| counter.load(Ordering::Relaxed));
    assert!(
        before[0] + before[1] > 0,
        "all crashes came too early: {seen:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_server_pays_once_for_each_key_over_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let place = process::sqlite(folder.path()).await;
    every_key_has_one_effect(place).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_server_pays_once_for_each_key_over_postgres() {
    let (_held, place) = process::postgres().await;
    every_key_has_one_effect(place).await;
}
