//! `mamparo demo --metrics`, as a process.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// As long as it may take to say its next line, beside how long it is well.
const PATIENCE: Duration = Duration::from_secs(20);

/// The demonstration, killed when it is dropped.
pub(super) struct Demo {
    pub(super) address: SocketAddr,
    well: Duration,
    lines: Lines<BufReader<ChildStdout>>,
    _process: Child,
}

impl Demo {
    /// Starts one that is well for so long, with a queue in this RabbitMQ.
    pub(super) async fn start(well: Duration, amqp: &str) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_mamparo"))
            .args(["demo", "--metrics", "127.0.0.1:0", "--amqp", amqp, "--well"])
            .arg(format!("{}ms", well.as_millis()))
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the command starts");
        let lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        let mut demo = Self {
            address: SocketAddr::from(([0; 4], 0)),
            well,
            lines,
            _process: process,
        };
        let line = demo.next_line().await;
        let address = line.strip_prefix("metrics at http://");
        let address = address.and_then(|it| it.strip_suffix("/metrics"));
        demo.address = address.expect(&line).parse().unwrap();
        demo
    }

    /// Waits until it says that it is in trouble.
    pub(super) async fn until_in_trouble(&mut self) {
        while !self.next_line().await.starts_with("in trouble") {}
    }

    async fn next_line(&mut self) -> String {
        let line = tokio::time::timeout(self.well + PATIENCE, self.lines.next_line()).await;
        let line = line.expect("it says something").unwrap();
        line.expect("it goes on")
    }
}
