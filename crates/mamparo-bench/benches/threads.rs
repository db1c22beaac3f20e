//! Two threads that share one instance of a service, beside two that have one each.
//!
//! The ratio of the two is what the shared cache lines cost; it is taken turn by turn, of turns in which nothing else
//! took a processor away.

use std::cell::RefCell;
use std::fs;
use std::future::poll_fn;
use std::hint::{self, black_box};
use std::io;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use comfy_table::Table as Grid;
use criterion::{Criterion, Throughput};
use http::Request;
use mamparo_core::BoxError;
use mamparo_core::clock::{self, Instant};
use tokio::runtime::{Builder, Runtime};
use tower::Service;

use crate::cases::floor::Floor;
use crate::cases::traffic::{Body, at_once, small};
use crate::cases::{ours, peers, tower_own, tower_resilience};
use crate::report::{grid, median};

const COLUMNS: [&str; 6] = [
    "two threads",
    "calls/µs, one thread",
    "two instances",
    "one instance",
    "one ÷ two",
    "undisturbed turns",
];

/// A turn takes at least this long; longer ones are interrupted more often.
const TURN: Duration = Duration::from_micros(200);

/// What a thread calls before the turn: a thread is new, and what is made once for it belongs to no call.
const WARM_UP: u64 = 64;

/// The share of a turn in which both threads must be under way.
const TOGETHER: f64 = 0.8;

/// As few undisturbed turns as make a median.
const ENOUGH: usize = 5;

/// Calls that a thread makes, one after the other.
type Job = Box<dyn FnMut(u64) + Send>;

/// What the threads do.
struct Case {
    name: &'static str,
    apart: [Job; 2],
    shared: [Job; 2],
}

fn cases() -> Result<Vec<Case>, BoxError> {
    Ok(vec![
        case("bare service", || Ok(at_once()))?,
        case("floor", || Ok(Floor::new(at_once())))?,
        case("failsafe", || Ok(peers::failsafe(at_once())))?,
        case("recloser", || Ok(peers::recloser(at_once())))?,
        case("seatbelt breaker", || Ok(peers::seatbelt(at_once())))?,
        case("tower-resilience breaker", || {
            tower_resilience::breaker(at_once())
        })?,
        case("our breaker", || Ok(ours::breaker(at_once())))?,
        case("our breaker, over 100 calls", || {
            ours::breaker_counting(at_once())
        })?,
        case("our breaker, over 10 s", || {
            ours::breaker_timing(Duration::from_secs(10), at_once())
        })?,
        case("tower ConcurrencyLimit", || Ok(tower_own::limit(at_once())))?,
        case("our bulkhead", || ours::bulkhead(at_once()))?,
        case("governor", || Ok(peers::governor(at_once())))?,
        case("our rate limit", || ours::rate_limit(at_once()))?,
        case("tower whole stack", || tower_own::whole(at_once()))?,
        case("tower-resilience whole stack", || {
            tower_resilience::whole(at_once())
        })?,
        case("our whole stack", || ours::whole(at_once()))?,
    ])
}

fn case<S>(name: &'static str, service: impl Fn() -> Result<S, BoxError>) -> Result<Case, BoxError>
where
    S: Service<Request<Body>> + Clone + Send + 'static,
{
    let runtime = runtime()?; // for those with a clock of their own
    let inside = runtime.enter();
    let (one, other) = (service()?, service()?);
    drop(inside);
    Ok(Case {
        name,
        apart: [job(one.clone())?, job(other)?],
        shared: [job(one.clone())?, job(one)?],
    })
}

fn job<S>(mut service: S) -> io::Result<Job>
where
    S: Service<Request<Body>> + Send + 'static,
{
    let runtime = runtime()?;
    Ok(Box::new(move |calls| {
        runtime.block_on(tokio::task::unconstrained(all(&mut service, calls)));
    }))
}

fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// What is pending waits: whoever contends for a lock gives the other thread its turn.
async fn all<S: Service<Request<Body>>>(service: &mut S, calls: u64) {
    for _ in 0..calls {
        if poll_fn(|cx| service.poll_ready(cx)).await.is_ok() {
            black_box(&service.call(black_box(small())).await);
        }
    }
}

/// Times all cases, as far as criterion's own arguments select them; none, if they select none.
pub(crate) fn time(criterion: &mut Criterion) -> Result<Option<Grid>, BoxError> {
    let mut table = grid(&COLUMNS);
    let mut shown = criterion.benchmark_group("two threads");
    shown
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(500));
    for mut case in cases()? {
        let turns = RefCell::new(Vec::new());
        let calls = case.calls_of_a_turn();
        shown.throughput(Throughput::Elements(2));
        shown.bench_function(case.name, |bencher| {
            bencher.iter_custom(|asked| {
                let mut turns = turns.borrow_mut();
                let before = turns.len();
                for _ in 0..(asked / calls).max(1) {
                    turns.push(case.turn(calls));
                }
                let new = turns[before..].iter().map(|turn| turn.shared.rate);
                Duration::from_nanos((2.0 * asked as f64 / median(new)) as u64)
            });
        });
        let turns = turns.into_inner();
        if !turns.is_empty() {
            table.add_row(row(case.name, &turns));
        }
    }
    shown.finish();
    Ok((table.row_count() > 0).then_some(table))
}

/// One turn of a case.
struct Turn {
    alone: Ran,
    apart: Ran,
    shared: Ran,
}

/// What threads did in their turn.
#[derive(Clone, Copy)]
struct Ran {
    /// Calls in a nanosecond, of all of them.
    rate: f64,
    /// How long the slowest took.
    took: Duration,
    undisturbed: bool,
}

impl Case {
    fn turn(&mut self, calls: u64) -> Turn {
        Turn {
            apart: run(&mut self.apart, calls),
            shared: run(&mut self.shared, calls),
            alone: run(&mut self.apart[..1], calls),
        }
    }

    fn calls_of_a_turn(&mut self) -> u64 {
        let mut calls = 500;
        while run(&mut self.shared, calls).took < TURN {
            calls *= 2;
        }
        calls
    }
}

/// What one thread did.
struct Span {
    began: Instant,
    ended: Instant,
    interrupted: bool,
}

/// Lets each job run on a thread of its own, from the same instant on.
fn run(jobs: &mut [Job], calls: u64) -> Ran {
    let start = Start::new(jobs.len());
    let spans: Vec<Span> = thread::scope(|scope| {
        let threads = jobs.iter_mut().map(|job| {
            let start = &start;
            scope.spawn(move || span(job, start, calls))
        });
        let threads: Vec<_> = threads.collect();
        let spans = threads.into_iter().map(|thread| thread.join());
        spans.filter_map(Result::ok).collect()
    });
    let took = |span: &Span| span.ended - span.began;
    let longest = spans.iter().map(took).max().unwrap_or_default();
    let last_began = spans.iter().map(|span| span.began).max();
    let first_ended = spans.iter().map(|span| span.ended).min();
    let together = last_began
        .zip(first_ended)
        .map_or(Duration::ZERO, |(last, first)| {
            first.saturating_duration_since(last)
        });
    let rate = |span: &Span| calls as f64 / took(span).as_nanos() as f64;
    Ran {
        rate: spans.iter().map(rate).sum(),
        took: longest,
        undisturbed: !spans.iter().any(|span| span.interrupted)
            && together >= longest.mul_f64(TOGETHER),
    }
}

/// Lets threads begin in the same instant: they meet asleep, and then awake.
struct Start {
    asleep: Barrier,
    missing: AtomicUsize,
}

impl Start {
    fn new(threads: usize) -> Self {
        Self {
            asleep: Barrier::new(threads),
            missing: AtomicUsize::new(threads),
        }
    }

    fn wait(&self) {
        self.asleep.wait();
        self.missing.fetch_sub(1, Ordering::AcqRel);
        while self.missing.load(Ordering::Acquire) > 0 {
            hint::spin_loop();
        }
    }
}

fn span(job: &mut Job, start: &Start, calls: u64) -> Span {
    job(WARM_UP);
    let interruptions = times_interrupted();
    start.wait();
    let began = clock::now();
    job(calls);
    let ended = clock::now();
    Span {
        began,
        ended,
        interrupted: times_interrupted() > interruptions,
    }
}

/// How often something else took the processor away from this thread; unknown, and so never, elsewhere than on Linux.
fn times_interrupted() -> u64 {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let count = status
        .lines()
        .find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"));
    count
        .and_then(|count| count.trim().parse().ok())
        .unwrap_or(0)
}

fn row(name: &str, turns: &[Turn]) -> Vec<String> {
    let rate = |ran: fn(&Turn) -> Ran| {
        let runs = turns.iter().map(ran).filter(|ran| ran.undisturbed);
        figure(runs.map(|ran| 1000.0 * ran.rate).collect())
    };
    let pairs = turns
        .iter()
        .filter(|turn| turn.apart.undisturbed && turn.shared.undisturbed);
    let ratios: Vec<_> = pairs
        .map(|turn| turn.shared.rate / turn.apart.rate)
        .collect();
    let pairs = format!("{} of {}", ratios.len(), turns.len());
    vec![
        name.to_owned(),
        rate(|turn| turn.alone),
        rate(|turn| turn.apart),
        rate(|turn| turn.shared),
        figure(ratios),
        pairs,
    ]
}

fn figure(values: Vec<f64>) -> String {
    if values.len() < ENOUGH {
        return "–".to_owned();
    }
    format!("{:.2}", median(values.into_iter()))
}
