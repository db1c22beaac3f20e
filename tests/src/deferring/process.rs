//! An engine in a process of its own, which does what it is told in lines, and can be killed.

use std::env;
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::time::Duration;

use mamparo::rate_limit::RateLimitPolicy;
use mamparo::serve::termination;
use mamparo_core::clock;
use mamparo_durable::engine::Engine;
use mamparo_durable::machine::TransactionId;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;

use crate::own_process;

use super::engine::{ALERT, Moody, Sender, builder, hasty, open, transaction};

const SPEC: &str = "MAMPARO_TEST_ENGINE";
const FAIL_POINT: &str = "MAMPARO_FAIL_POINT";

/// What it says once it runs, and once it did what it was told.
const RUNS: &str = "runs";
const DID: &str = "did ";
const STOPPED: &str = "stopped after ";

/// The default of engines.
pub(super) const LEASE: Duration = Duration::from_millis(2_500);

/// The signal of a process that aborts.
const SIGABRT: i32 = 6;

/// What an engine is started with.
#[derive(Clone, Debug)]
pub(super) struct Spec {
    pub(super) place: String,
    pub(super) dependency: SocketAddr,
    pub(super) lease: Duration,
    /// Where it dies, and the how manieth time there.
    pub(super) dies: Option<(String, u32)>,
    /// At most so many a second.
    pub(super) rate: Option<u32>,
    /// Whether its breaker is open now and then, and its reconciler in a hurry.
    pub(super) restless: bool,
}

impl Spec {
    pub(super) fn new(place: &str, dependency: SocketAddr) -> Self {
        Self {
            place: place.to_owned(),
            dependency,
            lease: LEASE,
            dies: None,
            rate: None,
            restless: false,
        }
    }

    fn text(&self) -> String {
        let lease = self.lease.as_millis();
        let rate = self.rate.unwrap_or(0);
        format!(
            "{}\n{}\n{lease}\n{rate}\n{}",
            self.place, self.dependency, self.restless
        )
    }

    fn parse(text: &str) -> Self {
        let mut lines = text.lines();
        let mut line = || lines.next().unwrap();
        Self {
            place: line().to_owned(),
            dependency: line().parse().unwrap(),
            lease: Duration::from_millis(line().parse().unwrap()),
            rate: Some(line().parse().unwrap()).filter(|rate| *rate > 0),
            restless: line().parse().unwrap(),
            dies: None,
        }
    }
}

/// A process that runs an engine; it ends with its owner.
pub(super) struct Worker {
    process: Child,
    input: ChildStdin,
    /// What it says, but for `runs`.
    said: mpsc::UnboundedReceiver<String>,
}

impl Worker {
    /// Starts one, which may die before it runs.
    pub(super) async fn start(spec: &Spec) -> Self {
        let mut command = own_process::command("deferring::process::works");
        command.env(SPEC, spec.text()).stdin(Stdio::piped());
        if let Some((name, hits)) = &spec.dies {
            command.env(FAIL_POINT, format!("{name}:{hits}"));
        }
        let mut process = command.spawn().unwrap();
        let input = process.stdin.take().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let (tell, said) = mpsc::unbounded_channel();
        let (runs, run) = tokio::sync::oneshot::channel();
        tokio::spawn(async move {
            let mut runs = Some(runs);
            while let Ok(Some(line)) = lines.next_line().await {
                let told = [DID, ALERT, STOPPED].iter().any(|it| line.starts_with(it));
                if line == RUNS {
                    runs.take().map(|runs| runs.send(()));
                } else if told && tell.send(line).is_err() {
                    return;
                }
            }
        });
        // An error says that it is dead.
        drop(run.await);
        Self {
            process,
            input,
            said,
        }
    }

    /// Tells it something; whoever is dead does not hear it.
    pub(super) async fn tell(&mut self, line: &str) {
        drop(self.input.write_all(format!("{line}\n").as_bytes()).await);
    }

    /// Waits for the next line that it says, after `did ` what it was told; `None` once it is dead.
    pub(super) async fn says(&mut self) -> Option<Said> {
        let line = self.said.recv().await?;
        let said = match line.split_once(' ') {
            Some(("did", what)) => Said::Did(what.to_owned()),
            Some(("alert", what)) => Said::Alert(what.to_owned()),
            _ => Said::Stopped(line[STOPPED.len()..].parse().unwrap()),
        };
        Some(said)
    }

    /// Ends it as a crash does (`kill -9`), and waits until it is gone.
    pub(super) async fn kill(&mut self) {
        self.process.kill().await.unwrap();
    }

    /// Its processor time up to now.
    pub(super) fn processor_time(&self) -> Duration {
        let pid = self.process.id().expect("it runs");
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let (_, after) = stat.rsplit_once(')').unwrap();
        let fields: Vec<_> = after.split_whitespace().collect();
        let ticks = |field: &str| field.parse::<u64>().unwrap();
        // Hundredths of a second, on every Linux.
        Duration::from_millis(10 * (ticks(fields[11]) + ticks(fields[12])))
    }

    /// Waits until it is gone, and says whether it died at a fail point.
    pub(super) async fn has_aborted(&mut self) -> bool {
        self.process.wait().await.unwrap().signal() == Some(SIGABRT)
    }

    /// Tells it to stop, as whoever runs services does.
    pub(super) async fn terminate(&self) {
        let pid = self.process.id().expect("it runs").to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status().await;
        assert!(sent.unwrap().success());
    }
}

/// What a worker says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// What it did, and what came of it.
    Did(String),
    /// An alert: its name, the transaction, how many, and why.
    Alert(String),
    /// It was told to stop, and did so after so many milliseconds.
    Stopped(u64),
}

async fn obey(engine: Engine, dependency: SocketAddr, line: String) {
    let Some((verb, name)) = line.split_once(' ') else {
        return;
    };
    let id = TransactionId::new(name).unwrap();
    let done = match verb {
        "begin" => engine
            .begin(transaction(name, dependency))
            .await
            .map(|_| "Applied".to_owned()),
        "resolve" => engine.resolve(&id, None).await.map(debug),
        "cancel" => engine.cancel(&id, None).await.map(debug),
        _ => engine.fire_now(&id, None).await.map(debug),
    };
    // Whoever told it tells it again.
    let done = done.unwrap_or_else(|_| "Failed".to_owned());
    println!("\n{DID}{verb} {name} {done}");
}

fn debug(value: impl std::fmt::Debug) -> String {
    format!("{value:?}")
}

/// The engine's own process; started by the tests around.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "is run by other tests"]
async fn works() {
    let Ok(spec) = env::var(SPEC) else { return };
    let spec = Spec::parse(&spec);
    let stop = termination().unwrap();
    let backend = open(&spec.place).await;
    let sender = Sender::new(&backend);
    let mut engine = builder(backend, spec.lease);
    if let Some(rate) = spec.rate {
        let rate = RateLimitPolicy::per(Duration::from_secs(1), rate).burst(1);
        let rate = rate.max_wait(Duration::from_secs(120)).build().unwrap();
        engine = engine.rate(rate);
    }
    if spec.restless {
        engine = engine.gatekeeper(Moody).patience(hasty(spec.lease));
    }
    let engine = engine.build().unwrap();
    let running = engine.run(sender);
    println!("\n{RUNS}");
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let obeys = async {
        while let Ok(Some(line)) = lines.next_line().await {
            tokio::spawn(obey(engine.clone(), spec.dependency, line));
        }
    };
    tokio::select! {
        () = obeys => {}
        () = stop => {}
    }
    let began = clock::now();
    running.stop().await.unwrap();
    println!("\n{STOPPED}{}", began.elapsed().as_millis());
    // A read of its input, which has no end, holds the runtime.
    std::process::exit(0);
}
