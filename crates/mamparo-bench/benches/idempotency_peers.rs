//! Idempotency keys over HTTP, beside axum-idempotent and express-idempotency: one handler, one client, servers in turns.
//!
//! `cargo bench -p mamparo-bench --features peers --bench idempotency_peers`; `MAMPARO_BENCH_KEYS` says how many keys each turn has (10 000
//! else), `MAMPARO_BENCH_REPLAYS` how often they are repeated (40 000), `MAMPARO_BENCH_TURNS` how many turns each server has (5).

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program that measures"
)]

mod load;
mod processes;
#[path = "report/program.rs"]
mod program;

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, process, thread};

use axum::error_handling::HandleErrorLayer;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::routing::post;
use axum::{BoxError, Router};
use load::{Ask, Connections};
use mamparo::idempotency::{
    IdempotencyLayer, IdempotencyPolicy, IdempotencyStore, MemoryStore, OnExpiry,
};
use mamparo_sqlite::SqliteIdempotency;
use processes::{Process, median, peers, rust_peers, table};
use program::{runtime, size};
use tokio::net::TcpListener;

/// Without a key, before anything is measured: connections, caches and Node's compiler are warm then.
const WARM: u64 = 5_000;

fn main() {
    let runtime = runtime();
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[1..] {
        ["serve", "memory"] => runtime.block_on(serve(MemoryStore::new())),
        ["serve", file] => runtime.block_on(serve(SqliteIdempotency::open(file).unwrap())),
        _ => runtime.block_on(compare()),
    }
}

/// A server of ours with the handler of all; prints the port that it listens on.
async fn serve<St: IdempotencyStore>(store: St) {
    // Whoever started it is gone.
    thread::spawn(|| {
        drop(std::io::stdin().read_to_end(&mut Vec::new()));
        process::exit(0);
    });
    let policy = IdempotencyPolicy::for_all_callers();
    let policy = policy.on_expiry(OnExpiry::RunAgain).build().unwrap();
    let charges = Arc::new(AtomicU64::new(0));
    let handler = move |_: String| {
        let number = charges.fetch_add(1, Ordering::Relaxed);
        let answer = format!(r#"{{"id":"ch_{number}","amount":100,"status":"succeeded"}}"#);
        async { ([(CONTENT_TYPE, "application/json")], answer) }
    };
    let router = Router::new().route("/charges", post(handler));
    let refused = async |error: BoxError| {
        println!("refused: {error}");
        StatusCode::SERVICE_UNAVAILABLE
    };
    let keys = IdempotencyLayer::new(store, policy);
    let router = router.layer((HandleErrorLayer::new(refused), keys));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("{}", listener.local_addr().unwrap().port());
    axum::serve(listener, router).await.unwrap();
}

/// A server, how it is started, and what its turns came to.
struct Contender {
    name: &'static str,
    start: Box<dyn Fn() -> Command>,
    /// Its answers are kept for a session, which this path gives.
    session: Option<&'static str>,
    turns: Vec<Turn>,
}

/// First executions and replays: how many a second, and what each took of the server's processor time, in microseconds.
struct Turn {
    first: (f64, f64),
    replay: (f64, f64),
}

impl Contender {
    fn new(name: &'static str, start: impl Fn() -> Command + 'static) -> Self {
        Self {
            name,
            start: Box::new(start),
            session: None,
            turns: Vec::new(),
        }
    }

    fn row(&self) -> Vec<String> {
        let of = |figure: fn(&Turn) -> f64| median(self.turns.iter().map(figure).collect());
        vec![
            self.name.to_owned(),
            format!("{:.0}", of(|turn| turn.first.0)),
            format!("{:.1}", of(|turn| turn.first.1)),
            format!("{:.0}", of(|turn| turn.replay.0)),
            format!("{:.1}", of(|turn| turn.replay.1)),
        ]
    }
}

async fn compare() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut contenders = contenders(folder.path());
    let (keys, replays, turns) = (
        size("KEYS", 10_000),
        size("REPLAYS", 40_000),
        size("TURNS", 5),
    );
    for number in 0..turns {
        for contender in &mut contenders {
            let turn = turn(contender, keys, replays).await;
            println!(
                "turn {number}, {}: {:.0} first executions/s, {:.0} replays/s",
                contender.name, turn.first.0, turn.replay.0
            );
            contender.turns.push(turn);
        }
    }
    let columns = [
        "server",
        "first executions/s",
        "µs of its processor",
        "replays/s",
        "µs of its processor",
    ];
    let table = table(&columns, contenders.iter().map(Contender::row));
    println!("{keys} keys, {replays} replays, medians of {turns} turns\n{table}");
}

fn contenders(folder: &Path) -> Vec<Contender> {
    let ours = |store: String| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["serve", &store]);
        command
    };
    let file = folder.join("keys.db");
    let mut all = vec![
        Contender::new("ours, memory", move || ours("memory".into())),
        Contender::new("ours, SQLite, durable", move || ours(fresh(&file))),
    ];
    if let Some(built) = rust_peers() {
        let start = move || Command::new(built.join("axum_idempotent"));
        let mut peer = Contender::new("axum-idempotent, memory", start);
        peer.session = Some("/session");
        all.push(peer);
    }
    if let Some(modules) = peers("peer-node", &[]) {
        all.push(Contender::new("express-idempotency, memory", move || {
            node(&modules)
        }));
    }
    all
}

/// Removes what an earlier turn left.
fn fresh(file: &Path) -> String {
    for end in ["", "-wal", "-shm"] {
        drop(fs::remove_file(format!("{}{end}", file.display())));
    }
    file.display().to_string()
}

fn node(modules: &PathBuf) -> Command {
    let mut command = Command::new("node");
    command
        .env("NODE_PATH", modules)
        .env("NODE_ENV", "production");
    command.arg(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/peers/express/server.js"
    ));
    command
}

/// One server from its start to its end.
async fn turn(contender: &Contender, keys: u64, replays: u64) -> Turn {
    let mut server = Process::start(&mut (contender.start)());
    let port = server.line().parse().unwrap();
    let mut connections = Connections::open(port, contender.session).await;
    connections.ask(Ask::WithoutKey, WARM, keys).await;
    let first = measured(&server, &mut connections, Ask::First, keys, keys).await;
    let replay = measured(&server, &mut connections, Ask::Again, replays, keys).await;
    Turn { first, replay }
}

async fn measured(
    server: &Process,
    connections: &mut Connections,
    ask: Ask,
    calls: u64,
    keys: u64,
) -> (f64, f64) {
    let before = server.busy();
    let took = connections.ask(ask, calls, keys).await;
    let busy = server.busy() - before;
    let calls = calls as f64;
    (calls / took.as_secs_f64(), busy.as_secs_f64() * 1e6 / calls)
}
