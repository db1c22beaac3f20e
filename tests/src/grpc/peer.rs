//! Servers and clients of grpcio, in Python processes of their own (tests/peers).

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use mamparo_testkit::grpc::FILE_DESCRIPTOR_SET;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout};

use crate::python::{self, HELP};

/// How long a peer's line is waited for: a Python process takes a while to start on a busy machine.
const LINE_LIMIT: Duration = Duration::from_secs(30);

/// A server of grpcio that answers by script; it goes when this is dropped.
#[derive(Debug)]
pub(super) struct Grpcio {
    pub(super) address: SocketAddr,
    lines: Arc<Mutex<Vec<Value>>>,
    _process: Child,
}

impl Grpcio {
    /// Starts a server with a list of answers, as tests/peers/server.py describes them.
    pub(super) async fn start(answers: Value) -> Self {
        let (process, mut output) = run("server.py", &answers);
        let port = next(&mut output).await["port"].as_u64().unwrap();
        let lines = Arc::default();
        tokio::spawn(keep(output, Arc::clone(&lines)));
        Self {
            address: format!("127.0.0.1:{port}").parse().unwrap(),
            lines,
            _process: process,
        }
    }

    /// The calls that it saw, once there are as many as expected: they are told after they are answered.
    pub(super) async fn calls(&self, expected: usize) -> Vec<Value> {
        self.told("method", expected).await
    }

    /// The ends of calls that it saw, once there are as many as expected.
    pub(super) async fn ends(&self, expected: usize) -> Vec<Value> {
        self.told("ended", expected).await
    }

    async fn told(&self, key: &str, expected: usize) -> Vec<Value> {
        let enough = async {
            loop {
                let lines = self.lines.lock().unwrap().clone();
                let told: Vec<Value> = lines
                    .into_iter()
                    .filter(|line| line.get(key).is_some())
                    .collect();
                if told.len() >= expected {
                    return told;
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let told = tokio::time::timeout(LINE_LIMIT, enough).await;
        told.unwrap_or_else(|_| panic!("grpcio never saw {expected} calls: {:?}", self.lines))
    }
}

/// Makes calls with a client of grpcio, as tests/peers/client.py describes them, and returns how each went.
pub(super) async fn grpcio_calls(address: SocketAddr, mut calls: Value) -> Vec<Value> {
    let list = calls.as_array_mut().unwrap();
    for call in &mut *list {
        call["target"] = json!(address.to_string());
    }
    let expected = list.len();
    let (_process, mut output) = run("client.py", &calls);
    let mut outcomes = Vec::new();
    while outcomes.len() < expected {
        outcomes.push(next(&mut output).await);
    }
    outcomes
}

/// The values of one key in metadata as the peers print it.
pub(super) fn values<'a>(metadata: &'a Value, key: &str) -> Vec<&'a str> {
    let pairs = metadata.as_array().unwrap().iter();
    let of_key = pairs.filter(|pair| pair[0] == key);
    of_key.map(|pair| pair[1].as_str().unwrap()).collect()
}

fn run(script: &str, what: &Value) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut process = python::program(script)
        .arg(descriptors())
        .arg(what.to_string())
        .env("GRPC_VERBOSITY", "NONE")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap_or_else(|error| panic!("Python does not run ({error}): {HELP}"));
    let output = process.stdout.take().unwrap();
    (process, BufReader::new(output).lines())
}

async fn next(output: &mut Lines<BufReader<ChildStdout>>) -> Value {
    let line = tokio::time::timeout(LINE_LIMIT, output.next_line()).await;
    let line = line.expect("grpcio says something").unwrap();
    let line = line.unwrap_or_else(|| panic!("grpcio ended, see above: {HELP}"));
    serde_json::from_str(&line).unwrap()
}

async fn keep(mut output: Lines<BufReader<ChildStdout>>, lines: Arc<Mutex<Vec<Value>>>) {
    while let Ok(Some(line)) = output.next_line().await {
        let line = serde_json::from_str(&line).unwrap();
        lines.lock().unwrap().push(line);
    }
}

fn descriptors() -> &'static Path {
    static WRITTEN: OnceLock<PathBuf> = OnceLock::new();
    WRITTEN.get_or_init(|| {
        let file = format!("echo.{}.bin", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(file);
        std::fs::write(&path, FILE_DESCRIPTOR_SET).unwrap();
        path
    })
}
