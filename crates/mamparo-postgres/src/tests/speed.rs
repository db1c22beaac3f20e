//! What a step costs: `cargo test --release -p mamparo-postgres speed -- --ignored --nocapture --test-threads 1`.
//!
//! `MAMPARO_BENCH_TRANSACTIONS` says how many go through, or are moved; `MAMPARO_BENCH_WAITING=1000000` how many wait for
//! hours beside those that come due one after the other, 100 000 else.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mamparo_core::clock;
use mamparo_durable::backend::{Message, Outbox as _, QueueName, Scheduler as _, Step};
use mamparo_durable::handler::{Runner, Settlement};
use mamparo_durable::machine::{Answer, Fire, Input, Outcome, Schedule};
use mamparo_testkit::private::PrivatePostgres;

use super::support::{commit_all, id, new, now, schema, settings, sql, waiting};
use crate::Postgres;

const CALLERS: usize = 512;
const LEASE: Duration = Duration::from_secs(600);

/// How many, from the environment.
fn many(what: &str, default: usize) -> usize {
    std::env::var(format!("MAMPARO_BENCH_{what}"))
        .ok()
        .and_then(|many| many.parse().ok())
        .unwrap_or(default)
}

/// Two engines on a server that keeps what it commits.
async fn engines() -> (PrivatePostgres, Vec<Postgres>) {
    let server = PrivatePostgres::durable().await;
    let settings = settings(&server.url()).schema(schema()).build().unwrap();
    let one = Postgres::connect(settings).await.unwrap();
    let other = one.beside().await;
    (server, vec![one, other])
}

/// CPU milliseconds of this process and of the server's.
fn cpu(server: &PrivatePostgres) -> (f64, f64) {
    let ticks = |process: u32, with_ended: bool| {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        let fields: Vec<&str> = stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .collect();
        let last = if with_ended { 15 } else { 13 };
        let field = |place: usize| {
            fields
                .get(place)
                .and_then(|ticks| ticks.parse::<f64>().ok())
        };
        (11..last).filter_map(field).sum::<f64>() * 10.0
    };
    let postmaster = server.process();
    let tasks = format!("/proc/{postmaster}/task/{postmaster}/children");
    let children = fs::read_to_string(tasks).unwrap_or_default();
    let children = children
        .split_whitespace()
        .filter_map(|child| child.parse().ok());
    let server = ticks(postmaster, true) + children.map(|child| ticks(child, false)).sum::<f64>();
    (ticks(std::process::id(), false), server)
}

/// Has so many callers do all of it, and says what one cost.
async fn measure<F>(
    name: &str,
    server: &PrivatePostgres,
    count: usize,
    callers: usize,
    work: impl Fn(usize) -> F + Send + Sync + 'static,
) where
    F: Future<Output = ()> + Send,
{
    let (next, work) = (Arc::new(AtomicUsize::new(0)), Arc::new(work));
    let (start, (mine, theirs)) = (clock::now(), cpu(server));
    let callers = (0..callers).map(|_| {
        let (next, work) = (Arc::clone(&next), Arc::clone(&work));
        tokio::spawn(async move {
            let mut waits = Vec::new();
            loop {
                let place = next.fetch_add(1, Ordering::Relaxed);
                if place >= count {
                    return waits;
                }
                let start = clock::now();
                work(place).await;
                waits.push(start.elapsed());
            }
        })
    });
    let mut waits: Vec<Duration> = futures_util::future::try_join_all(callers)
        .await
        .unwrap()
        .concat();
    let (took, (mine_after, theirs_after)) = (start.elapsed(), cpu(server));
    waits.sort_unstable();
    let each = |before: f64, after: f64| (after - before) * 1_000.0 / count as f64;
    let (mine, theirs) = (each(mine, mine_after), each(theirs, theirs_after));
    println!(
        "{name}: {:.0}/s, CPU {:.1} us each (engine {mine:.1}, server {theirs:.1}), p50 {:.1?}, p99 {:.1?}",
        count as f64 / took.as_secs_f64(),
        mine + theirs,
        waits[count / 2],
        waits[count * 99 / 100],
    );
}

fn name(number: usize) -> String {
    format!("payment-{number:08}")
}

/// Begins so many transactions, and publishes a refusal of each.
async fn begin_and_answer(engine: &Postgres, count: usize) {
    for part in (0..count).collect::<Vec<_>>().chunks(1_000) {
        let begin = part.iter().map(|number| {
            let mut step = Step::new(id(&name(*number)));
            step.begin = Some(new(&name(*number)));
            step
        });
        commit_all(engine, begin.collect()).await;
    }
    let answers = engine.queue(QueueName::Answers);
    let answer = |number| Message::Answer {
        id: id(&name(number)),
        answer: Answer::new(1, 0, Outcome::Refused).with_reason("CANCELLED"),
    };
    for part in (0..count).collect::<Vec<_>>().chunks(1_000) {
        answers
            .publish(part.iter().map(|number| answer(*number)).collect())
            .await
            .unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures: it takes long, and the machine for itself"]
async fn speed_of_whole_steps() {
    let (server, engines) = engines().await;
    let count = many("TRANSACTIONS", 20_000);
    begin_and_answer(&engines[0], count).await;
    let runners: Vec<Runner> = engines
        .iter()
        .map(|engine| Runner::builder(engine.backend()).build())
        .collect();
    for (queue, label) in [(QueueName::Answers, "A"), (QueueName::Fires, "B")] {
        if queue == QueueName::Fires {
            sql(
                &engines[0],
                "UPDATE messages SET ready_at = 0 WHERE queue = 'fires'",
            )
            .await;
        }
        let (start, (mine, theirs)) = (clock::now(), cpu(&server));
        let mut taken = Vec::new();
        while taken.len() < count {
            taken.extend(engines[0].queue(queue).take(256, LEASE).await.unwrap());
        }
        let (took, (mine_after, theirs_after)) = (start.elapsed(), cpu(&server));
        let each = |before: f64, after: f64| (after - before) * 1_000.0 / count as f64;
        println!(
            "take of {label}: {:.0}/s, CPU engine {:.1}, server {:.1} us each",
            count as f64 / took.as_secs_f64(),
            each(mine, mine_after),
            each(theirs, theirs_after)
        );
        let runners = runners.clone();
        let taken = Arc::new(taken);
        measure(
            &format!("step {label}"),
            &server,
            count,
            CALLERS,
            move |place| {
                let (runner, delivery) = (runners[place % 2].clone(), taken[place].clone());
                async move {
                    let input = match delivery.message {
                        Message::Answer { ref answer, .. } => Input::Answer(answer.clone()),
                        Message::Fire { attempt, seq, .. } => Input::Fire(Fire::new(attempt, seq)),
                        Message::Request(_) => unreachable!("not taken"),
                    };
                    let handled = runner.handle(
                        delivery.message.id(),
                        |_| input,
                        Some(delivery.receipt.clone()),
                    );
                    assert_eq!(handled.await.unwrap().settlement, Settlement::Acknowledged);
                }
            },
        )
        .await;
    }
}

/// How late fires are taken at a steady rate, beside so many that wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures: it takes long, and the machine for itself"]
async fn speed_of_fires_that_come_due_one_after_the_other() {
    const EACH_SECOND: u64 = 2_000;
    let (server, engines) = engines().await;
    let (engine, crowd) = (&engines[0], many("WAITING", 100_000));
    let schedule = |fire_at| Schedule {
        attempt: 2,
        seq: 0,
        fire_at,
    };
    // Over the two hours or so after the next, in no order, as waits are.
    let later = || {
        let millis = fastrand::u64(3_600_000..10_800_000);
        schedule(now().plus(Duration::from_millis(millis)))
    };
    for part in (0..crowd).collect::<Vec<_>>().chunks(5_000) {
        let crowd = part.iter().map(|number| (id(&name(*number)), later()));
        let created = engine.create(crowd.collect()).await;
        assert!(created.iter().all(Result::is_ok));
    }
    let (start, count) = (now().plus(Duration::from_secs(4)), 10 * EACH_SECOND);
    let due = |number: u64| start.plus(Duration::from_millis(number * 1_000 / EACH_SECOND));
    for part in (0..count).collect::<Vec<_>>().chunks(5_000) {
        let due = part
            .iter()
            .map(|number| (id(&format!("due-{number}")), schedule(due(*number))));
        engine.create(due.collect()).await;
    }
    let before = cpu(&server);
    let (fires, mut late) = (engine.queue(QueueName::Fires), Vec::new());
    while (late.len() as u64) < count {
        let taken = fires.take(256, LEASE).await.unwrap();
        let at = now();
        late.extend(taken.iter().map(|fire| at.millis() - fire.since.millis()));
        if taken.is_empty() {
            fires.ready().await;
        } else {
            fires
                .acknowledge(taken.into_iter().map(|fire| fire.receipt).collect())
                .await
                .unwrap();
        }
    }
    let after = cpu(&server);
    late.sort_unstable();
    let place = |share: usize| late[late.len() * share / 100 - 1];
    println!(
        "{EACH_SECOND}/s due beside {crowd}: late by p50 {} ms, p99 {} ms, at least {} ms; CPU {:.0} us each",
        place(50),
        place(99),
        late[0],
        (after.0 + after.1 - before.0 - before.1) * 1_000.0 / count as f64
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures: it takes long, and the machine for itself"]
async fn speed_of_a_breaker_that_moves_a_hundred_thousand() {
    let (server, engines) = engines().await;
    let count = many("TRANSACTIONS", 100_000);
    for part in (0..count).collect::<Vec<_>>().chunks(5_000) {
        waiting(&engines[0], part.iter().map(|number| name(*number)), now()).await;
    }
    let until = now().plus(Duration::from_secs(600));
    let due = mamparo_durable::backend::PostponeDue::new(
        "psp".into(),
        now(),
        until,
        Duration::from_secs(60),
        count as u64,
    );
    let (start, before) = (clock::now(), cpu(&server));
    assert_eq!(engines[0].postpone(due).await.unwrap(), count as u64);
    let (took, after) = (start.elapsed(), cpu(&server));
    println!(
        "moved {count} in {took:.1?}, CPU of the server {:.0} ms",
        after.1 - before.1
    );
}
