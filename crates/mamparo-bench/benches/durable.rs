//! What a deferral and a fire cost in SQLite, with few or many transactions waiting beside them.
//!
//! `cargo bench -p mamparo-bench --bench durable`; `MAMPARO_BENCH_TRANSACTIONS=100000` for how many go through, 20 000 else, and
//! `MAMPARO_BENCH_WAITING=1000000` for how many wait meanwhile, none else.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program that measures"
)]

#[path = "report/program.rs"]
mod program;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mamparo_core::clock::{self, SystemClock};
use mamparo_durable::backend::{Backend, Committed, NewTransaction, PostponeDue, QueueName, Step};
use mamparo_durable::handler::{Cycle, FireHandler, Reconciler, Runner, Settlement, plan};
use mamparo_durable::machine::{
    Answer, Context, Input, Note, Outcome, Patience, Record, Reply, Run, Schedule, TransactionId,
    Utc,
};
use mamparo_durable::policy::Policy;
use mamparo_sqlite::SqliteDurable;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tower::{Service, ServiceExt};

use program::{runtime, size};

const CALLERS: usize = 512;
const FEW_CALLERS: usize = 64;
const TOGETHER: usize = 500;
/// As many come due in a second, to see how late they are taken.
const EACH_SECOND: u64 = 2_000;
const LEASE: Duration = Duration::from_secs(600);
/// As many are due at one instant, to which they are moved within so long.
const HERD: usize = 100_000;
const HERD_IN: Duration = Duration::from_secs(60);
/// As many are stuck, among all that wait.
const STUCK: usize = 10_000;

fn main() {
    let runtime = runtime();
    // Below the build's folder, since a temporary one may lie in memory.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("engine.db");
    runtime.block_on(async {
        let (transactions, waiting) = (size("TRANSACTIONS", 20_000), size("WAITING", 0));
        fill(&path, waiting).await;
        let begun = clock::now();
        let backend = SqliteDurable::open(&path).unwrap().backend();
        println!("opened in {:?}", begun.elapsed());
        run(&backend, transactions).await;
        println!(
            "the file has {} MiB",
            fs::metadata(&path).unwrap().len() >> 20
        );
    });
}

async fn run(backend: &Backend, transactions: usize) {
    let runner = Runner::builder(backend.clone()).build();
    let store = backend.store();
    let begin = {
        let runner = runner.clone();
        move |number| begin(runner.clone(), number)
    };
    measured("begin", transactions, each(CALLERS, 0..transactions, begin)).await;
    let defer = {
        let runner = runner.clone();
        move |number| defer(runner.clone(), number)
    };
    let half = transactions / 2;
    let many = each(CALLERS, 0..half, defer.clone());
    measured("defer, 512 callers", half, many).await;
    let few = each(FEW_CALLERS, half..half * 2, defer);
    measured("defer, 64 callers", half, few).await;
    let now = runner.now();
    let mut due = PostponeDue::new("psp".into(), now, now, Duration::ZERO, u64::MAX);
    due.due_before = Utc::MAX;
    for what in ["each due at its own instant", "all due at one"] {
        let postpone = backend.outbox().unwrap().postpone(due.clone());
        let what = format!("postpone, {what}");
        let moved = measured(&what, half * 2, postpone).await.unwrap();
        assert_eq!(moved, half as u64 * 2);
    }
    measured("fire", half * 2, fire(backend, &runner, half * 2)).await;
    let patience = Patience {
        in_flight: Duration::ZERO,
        ..Patience::default()
    };
    let stuck = measured("find stuck", 1, store.stuck(runner.now(), patience, 10_000)).await;
    println!("  {} of them", stuck.unwrap().len());
    measured("census", 1, store.census(runner.now()))
        .await
        .unwrap();
    let fires = backend.queue(QueueName::Fires);
    measured("depth", 1, fires.depth()).await.unwrap();
    let idle = measured("ten seconds without anything due", 1, async {
        tokio::time::timeout(Duration::from_secs(10), fires.ready()).await
    });
    drop(idle.await);
    late(backend, runner.now()).await;
    herd(backend, &runner).await;
    reconcile(backend, &runner).await;
}

/// How long it takes until all that is due at one instant is claimed.
async fn herd(backend: &Backend, runner: &Runner) {
    put(
        backend,
        runner,
        (20_000_000, "herd"),
        HERD,
        |new, context| then(new, refused(), context),
    )
    .await;
    let (now, instant) = (runner.now(), runner.now().plus(HERD_IN));
    let mut due = PostponeDue::new("herd".into(), instant, now, Duration::ZERO, u64::MAX);
    due.due_before = Utc::MAX;
    let moved = backend.outbox().unwrap().postpone(due).await.unwrap();
    assert_eq!(moved, HERD as u64);
    let left = instant.since(runner.now());
    assert!(!left.is_zero(), "they are due before all are moved");
    tokio::time::sleep(left).await;
    measured("a herd", HERD, fire(backend, runner, HERD)).await;
}

/// How long it takes until all whose answer was lost two hours ago are sent again.
async fn reconcile(backend: &Backend, runner: &Runner) {
    put(backend, runner, (30_000_000, "other"), STUCK, |new, _| {
        let record = &mut new.record;
        record.progress.updated_at = record.progress.updated_at.minus(Duration::from_secs(7_200));
        Step::new(record.terms.id.clone())
    })
    .await;
    let reconciler = Reconciler::builder(runner.clone()).build().unwrap();
    let mended = measured("mend what is stuck", STUCK, async {
        let (mut cycle, mut mended) = (Cycle::default(), 0);
        loop {
            cycle = reconciler.cycle(cycle).await.unwrap();
            mended += cycle.mended;
            if cycle.found == 0 {
                return mended;
            }
        }
    });
    assert_eq!(mended.await, STUCK);
}

/// How late fires are taken that come due one after the other.
async fn late(backend: &Backend, now: Utc) {
    let (start, count) = (now.plus(Duration::from_secs(3)), 10 * EACH_SECOND);
    let due = (0..count).map(|number| {
        let fire_at = start.plus(Duration::from_millis(number * 1_000 / EACH_SECOND));
        let schedule = Schedule {
            attempt: 2,
            seq: 0,
            fire_at,
        };
        let id = TransactionId::new(format!("due-{number}")).unwrap();
        (id, schedule)
    });
    let created = backend.scheduler().create(due.collect()).await;
    assert!(created.iter().all(Result::is_ok));
    let (fires, mut late) = (backend.queue(QueueName::Fires), Vec::new());
    while (late.len() as u64) < count {
        fires.ready().await;
        let taken = fires.take(256, LEASE).await.unwrap();
        let now = Utc::of(&SystemClock).millis();
        late.extend(taken.iter().map(|fire| now - fire.since.millis()));
        let receipts = taken.into_iter().map(|fire| fire.receipt).collect();
        fires.acknowledge(receipts).await.unwrap();
    }
    late.sort_unstable();
    let at = |share: usize| late[(late.len() - 1) * share / 100];
    println!(
        "{EACH_SECOND} due a second: late by p50 {} ms, p99 {} ms, at least {} ms",
        at(50),
        at(99),
        late[0]
    );
}

fn id(number: usize) -> TransactionId {
    TransactionId::new(format!("payment-{number:08}x")).unwrap()
}

fn transaction(runner: &Runner, number: usize, dependency: &str) -> NewTransaction {
    let mut terms = runner.terms(id(number), "payment", None);
    terms.dependency = Some(dependency.into());
    NewTransaction::new(Record::in_flight(terms), vec![0; 200]).unwrap()
}

fn refused() -> Input {
    Input::Answer(Answer::new(1, 0, Outcome::Refused).with_reason("CANCELLED"))
}

async fn begin(runner: Runner, number: usize) {
    let new = transaction(&runner, number, "psp");
    runner.begin(new, None).await.unwrap();
}

/// Handler A's whole step.
async fn defer(runner: Runner, number: usize) {
    let handled = runner.handle(&id(number), |_| refused(), None).await;
    assert_eq!(handled.unwrap().note, Note::Applied);
}

/// Handler B's whole step, from the queue to the acknowledgement.
async fn fire(backend: &Backend, runner: &Runner, transactions: usize) {
    let fires = backend.queue(QueueName::Fires);
    let (handler, places) = (
        FireHandler::new(runner.clone(), ()),
        Arc::new(Semaphore::new(CALLERS)),
    );
    let mut left = transactions;
    while left > 0 {
        fires.ready().await;
        let taken = fires.take(TOGETHER, LEASE).await.unwrap();
        left -= taken.len();
        for fire in taken {
            let place = Arc::clone(&places).acquire_owned().await.unwrap();
            let mut handler = handler.clone();
            tokio::spawn(async move {
                let handled = handler.ready().await.unwrap().call(fire).await.unwrap();
                assert_eq!(handled.settlement, Settlement::Acknowledged);
                drop(place);
            });
        }
    }
    let _all = places.acquire_many(CALLERS as u32).await.unwrap();
}

/// Transactions that wait for another dependency, for hours.
async fn fill(path: &Path, waiting: usize) {
    let backend = SqliteDurable::open(path).unwrap().backend();
    let runner = Runner::builder(backend.clone()).build();
    put(
        &backend,
        &runner,
        (10_000_000, "other"),
        waiting,
        |new, context| then(new, refused(), context),
    )
    .await;
}

/// What follows when it begins with this.
fn then(new: &NewTransaction, input: Input, context: &Context<'_>) -> Step {
    let record = &new.record;
    let mut run = Run::new(input);
    let loaded = Reply::Loaded(Some(record.progress.clone()));
    run.reply(loaded, &record.terms, context);
    plan(run, &record.terms, context).step
}

/// Begins so many transactions, from that number on and to that dependency, each with a step of its own.
async fn put(
    backend: &Backend,
    runner: &Runner,
    (from, dependency): (usize, &str),
    count: usize,
    step: impl Fn(&mut NewTransaction, &Context<'_>) -> Step,
) {
    let policy = Policy::default();
    for first in (0..count).step_by(TOGETHER) {
        let numbers = first..count.min(first + TOGETHER);
        let steps = numbers.map(|number| {
            let mut new = transaction(runner, from + number, dependency);
            let context = Context::new(runner.now(), fastrand::f64(), &policy);
            let mut step = step(&mut new, &context);
            step.begin = Some(new);
            step
        });
        let steps = steps.collect();
        for committed in backend.outbox().unwrap().commit(steps).await {
            assert!(matches!(committed.unwrap(), Committed::Applied { .. }));
        }
    }
}

/// Calls for each number, so many at a time, and says how long the slowest hundredth took.
async fn each<W: Future<Output = ()> + Send + 'static>(
    callers: usize,
    numbers: std::ops::Range<usize>,
    work: impl Fn(usize) -> W + Clone + Send + 'static,
) {
    let (next, mut under_way) = (Arc::new(AtomicUsize::new(numbers.start)), JoinSet::new());
    for _ in 0..callers {
        let (next, work) = (Arc::clone(&next), work.clone());
        under_way.spawn(async move {
            let mut times = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= numbers.end {
                    return times;
                }
                let begun = clock::now();
                work(number).await;
                times.push(begun.elapsed());
            }
        });
    }
    let mut times = under_way.join_all().await.concat();
    times.sort_unstable();
    let at = |share: usize| times[(times.len() - 1) * share / 100];
    println!("  p50 {:?}, p99 {:?}", at(50), at(99));
}

async fn measured<T>(what: &str, count: usize, work: impl Future<Output = T>) -> T {
    let (begun, busy, before) = (clock::now(), busy(), threads());
    let done = work.await;
    let (took, busy, after) = (begun.elapsed(), self::busy() - busy, threads());
    let rate = count as f64 / took.as_secs_f64();
    let each = |busy: Duration| busy.as_secs_f64() * 1e6 / count as f64;
    let of = |(name, busy): (&String, &Duration)| {
        let before = before.get(name).copied().unwrap_or_default();
        format!("{name} {:.1}", each(busy.saturating_sub(before)))
    };
    let threads: Vec<_> = after.iter().map(of).collect();
    println!(
        "{what}: {count} in {took:.2?}, {rate:.0} a second, {:.1} µs of the processor each ({}), {} MiB resident",
        each(busy),
        threads.join(", "),
        resident()
    );
    done
}

/// The processor's time of the threads of each name.
fn threads() -> BTreeMap<String, Duration> {
    let mut threads = BTreeMap::new();
    for thread in fs::read_dir("/proc/self/task").into_iter().flatten() {
        let read = |name: &str| fs::read_to_string(thread.as_ref().ok()?.path().join(name)).ok();
        let (Some(name), Some(busy)) = (read("comm"), read("schedstat")) else {
            continue;
        };
        let busy = busy.split(' ').next().and_then(|busy| busy.parse().ok());
        let all: &mut Duration = threads.entry(name.trim().to_owned()).or_default();
        *all += Duration::from_nanos(busy.unwrap_or_default());
    }
    threads
}

/// The processor's time of this process, on all of its threads.
fn busy() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap()
}

fn resident() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = pages
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse::<u64>().ok());
    (pages.unwrap_or_default() * 4096) >> 20
}
