//! Running the command.

use std::process::Stdio;
use std::time::Duration;

use mamparo_core::clock;
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// No call of a test takes longer, whatever goes wrong.
const LIMIT: Duration = Duration::from_secs(20);

/// What a run of the command left.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
}

/// Runs `mamparo` with these arguments.
pub(crate) async fn mamparo(args: &[&str]) -> Ran {
    with_stdin(args, b"").await
}

/// Runs `mamparo call` with these arguments.
pub(crate) async fn call(args: &[&str]) -> Ran {
    run([&["call"], args].concat(), b"").await
}

/// Runs `mamparo` with these arguments, and gives it this to read.
pub(crate) async fn with_stdin(args: &[&str], stdin: &[u8]) -> Ran {
    run(args.to_vec(), stdin).await
}

/// Runs `mamparo` with these arguments in this environment.
pub(crate) async fn with_env(args: &[&str], env: &[(&str, &str)]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mamparo"));
    command.envs(env.iter().copied());
    finished(command, args.to_vec(), b"").await
}

async fn run(args: Vec<&str>, stdin: &[u8]) -> Ran {
    finished(Command::new(env!("CARGO_BIN_EXE_mamparo")), args, stdin).await
}

async fn finished(mut command: Command, args: Vec<&str>, stdin: &[u8]) -> Ran {
    for proxy in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
        command.env_remove(proxy);
    }
    let began = clock::now();
    let mut child = command
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("the command starts");
    let mut input = child.stdin.take().expect("a pipe");
    // It may end without reading.
    input.write_all(stdin).await.ok();
    drop(input);
    let output = tokio::time::timeout(LIMIT, child.wait_with_output()).await;
    let output = output.expect("it ends").expect("it can be waited for");
    Ran {
        code: output.status.code().expect("it exits by itself"),
        stdout: output.stdout,
        stderr: String::from_utf8(output.stderr).expect("text"),
        took: clock::now() - began,
    }
}

impl Ran {
    /// Returns stdout, as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Returns the last line of stderr: the outcome.
    pub(crate) fn last_line(&self) -> &str {
        self.stderr.lines().last().unwrap_or_default()
    }

    /// Returns the lines of the waterfall that begin, but for blanks, with `label`.
    pub(crate) fn rows(&self, label: &str) -> Vec<&str> {
        let rows = self.stderr.lines().filter(|line| line.contains(" ms  "));
        rows.filter(|row| row.trim_start().starts_with(label))
            .collect()
    }
}
