//! The defer plane beside River's Rust client and apalis: deferrals and fires a second, and how late what is due is taken.
//!
//! `cargo bench -p mamparo-bench --features peers --bench durable_peers`; `MAMPARO_BENCH_TRANSACTIONS` says how many are deferred, and how
//! many come due at one instant (20 000 else), `MAMPARO_BENCH_SECONDS` how long work comes due steadily (10),
//! `MAMPARO_BENCH_TURNS` how many turns each system has (3).

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program that measures"
)]

#[path = "../peers/rust/src/later.rs"]
mod later;
mod processes;
#[path = "report/program.rs"]
mod program;

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use later::{AT_ONCE, Later, PUT_OFF, Seen, measure};
use mamparo_core::BoxError;
use mamparo_core::clock::SystemClock;
use mamparo_durable::backend::{Backend, Request};
use mamparo_durable::engine::{Engine, Running, Transaction};
use mamparo_durable::machine::{Answer, Outcome, State, TransactionId, Utc};
use mamparo_durable::policy::{Policies, Policy, Wait};
use mamparo_postgres::{Postgres, Settings};
use mamparo_sqlite::SqliteDurable;
use mamparo_testkit::private::PrivatePostgres;
use processes::{Process, median, rust_peers, table};
use program::{runtime, size};
use tokio::task::JoinSet;
use tower::service_fn;

/// A figure's name in the table, the line that has it, and its place there.
const FIGURES: [(&str, &str, usize); 6] = [
    ("deferrals/s", "deferrals", 0),
    ("fires/s", "fires", 0),
    ("late by p50, ms, at 250/s", "late 250", 0),
    ("p99, ms", "late 250", 1),
    ("late by p50, ms, at 2 000/s", "late 2000", 0),
    ("p99, ms", "late 2000", 1),
];

fn main() {
    let runtime = runtime();
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[1..] {
        ["work", url, count, seconds] => {
            let (count, seconds) = (count.parse().unwrap(), seconds.parse().unwrap());
            runtime.block_on(work(url, count, seconds));
        }
        _ => runtime.block_on(compare()),
    }
}

/// Ours, as a process of its own.
async fn work(url: &str, count: u64, seconds: i64) {
    let backend = match url.strip_prefix("sqlite:") {
        Some(file) => SqliteDurable::open(file).unwrap().backend(),
        None => {
            let settings = Settings::builder(url).build().unwrap();
            Postgres::connect(settings).await.unwrap().backend()
        }
    };
    let wait = Wait::builder().base(PUT_OFF).jitter(0.0).build().unwrap();
    let policy = Policy::builder().business(wait).build().unwrap();
    let engine = Engine::builder(backend.clone())
        .policies(Policies::new(policy))
        .answers(AT_ONCE)
        .fires(AT_ONCE)
        .requests(AT_ONCE)
        .build()
        .unwrap();
    let seen = Arc::new(Seen::default());
    let mut ours = Ours {
        backend,
        engine,
        seen: Arc::clone(&seen),
        running: None,
    };
    measure(&mut ours, &seen, count, seconds).await;
}

struct Ours {
    backend: Backend,
    engine: Engine,
    seen: Arc<Seen>,
    running: Option<Running>,
}

impl Later for Ours {
    fn now(&self) -> i64 {
        Utc::of(&SystemClock).millis()
    }

    async fn put(&self, due: &[i64]) {
        for part in due.chunks(AT_ONCE) {
            let mut under_way = JoinSet::new();
            for &due in part {
                under_way.spawn(put(self.engine.clone(), due));
            }
            under_way.join_all().await;
        }
    }

    async fn start(&mut self) {
        let seen = Arc::clone(&self.seen);
        let sender = service_fn(move |request: Request| {
            let due = str::from_utf8(&request.body).unwrap().parse().unwrap();
            let refused = seen.refuses(due, Utc::of(&SystemClock).millis());
            let outcome = if refused {
                Outcome::Refused
            } else {
                Outcome::Success
            };
            async move { Ok::<_, BoxError>(Some(request.answer(outcome))) }
        });
        self.running = Some(self.engine.run(sender));
    }

    async fn put_off(&self) -> u64 {
        let census = self.backend.store().census(Utc::of(&SystemClock)).await;
        let counts = census.unwrap().counts;
        let waiting = counts
            .iter()
            .filter(|count| count.state == State::Scheduled);
        waiting.map(|count| count.transactions).sum()
    }
}

/// What is due later has been refused once, and waits for its instant.
async fn put(engine: Engine, due: i64) {
    let id = TransactionId::new(format!("payment-{:016x}", fastrand::u64(..))).unwrap();
    let new = Transaction::new(id.clone(), "payment", due.to_string());
    if due == 0 {
        engine.begin(new).await.unwrap();
        return;
    }
    let refused = Answer::new(1, 0, Outcome::Refused);
    engine.begin(new.answered(refused)).await.unwrap();
    let due = Utc::from_millis(due).unwrap();
    engine.move_to(&id, due, None).await.unwrap();
}

/// A system, its program with what comes before the URL, where its data are, and its figures by their lines.
struct Contender {
    name: &'static str,
    program: Vec<String>,
    postgres: bool,
    lines: HashMap<String, Vec<Vec<f64>>>,
}

impl Contender {
    fn new(name: &'static str, program: &[&str], postgres: bool) -> Self {
        Self {
            name,
            program: program.iter().map(ToString::to_string).collect(),
            postgres,
            lines: HashMap::new(),
        }
    }

    /// Medians over the turns; a system that failed in all of them has none.
    fn row(&self) -> Vec<String> {
        let figures = FIGURES.map(|(_, line, place)| {
            let turns = self.lines.get(line)?;
            let turns = turns.iter().map(|figures| figures[place]).collect();
            Some(format!("{:.0}", median(turns)))
        });
        let figures = figures.map(|figure| figure.unwrap_or_else(|| "–".to_owned()));
        [self.name.to_owned()].into_iter().chain(figures).collect()
    }
}

async fn compare() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut contenders = contenders();
    let turns = size("TURNS", 3);
    for number in 0..turns {
        for (place, contender) in contenders.iter_mut().enumerate() {
            println!("turn {number}, {}", contender.name);
            if contender.postgres {
                let server = PrivatePostgres::durable().await;
                turn(contender, &server.url());
            } else {
                let file = folder.path().join(format!("{place}-{number}.db"));
                turn(contender, &url(&file));
            }
        }
    }
    let columns: Vec<&str> = ["system"]
        .into_iter()
        .chain(FIGURES.map(|(name, ..)| name))
        .collect();
    let table = table(&columns, contenders.iter().map(Contender::row));
    println!("medians of {turns} turns\n{table}");
}

fn contenders() -> Vec<Contender> {
    let ours = std::env::current_exe().unwrap();
    let ours = ours.to_str().unwrap();
    let mut all = vec![
        Contender::new("ours, PostgreSQL", &[ours, "work"], true),
        Contender::new("ours, SQLite", &[ours, "work"], false),
    ];
    if let Some(built) = rust_peers() {
        let path = |name: &str| built.join(name).display().to_string();
        all.extend([
            Contender::new("riverqueue, PostgreSQL", &[&path("riverqueue")], true),
            Contender::new("apalis, PostgreSQL", &[&path("apalis")], true),
            Contender::new("apalis, SQLite", &[&path("apalis")], false),
        ]);
    }
    all
}

fn url(file: &Path) -> String {
    format!("sqlite:{}", file.display())
}

/// One system from its start to its end, with a store of its own.
fn turn(contender: &mut Contender, url: &str) {
    let (count, seconds) = (size("TRANSACTIONS", 20_000), size("SECONDS", 10));
    let mut command = Command::new(&contender.program[0]);
    command.args(&contender.program[1..]).arg(url);
    command.args([count.to_string(), seconds.to_string()]);
    let mut process = Process::start(&mut command);
    loop {
        let line = process.line();
        if line.is_empty() {
            // Of a process that has ended but was not waited for yet.
            println!("  {:.1?} of its processor, in all", process.busy());
            return;
        }
        println!("  {line}");
        let (name, figures) = line.split_once('\t').unwrap();
        let figures = figures.split('\t').map(|figure| figure.parse().unwrap());
        let turns = contender.lines.entry(name.to_owned()).or_default();
        turns.push(figures.collect());
    }
}
