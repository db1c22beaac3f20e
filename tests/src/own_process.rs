//! This test binary once more, in a process that runs one of its ignored tests alone.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

/// Whoever has said nothing by then, on whatever machine, does not work.
const LIMIT: Duration = Duration::from_secs(30);

/// What starts it: it ends with its owner, and what it prints is read.
pub(crate) fn command(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", test, "--ignored", "--nocapture"])
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// What a process prints.
pub(crate) struct Said(Lines<BufReader<ChildStdout>>);

impl Said {
    pub(crate) fn by(process: &mut Child) -> Self {
        let stdout = process.stdout.take().unwrap();
        Self(BufReader::new(stdout).lines())
    }

    /// Waits for the next line that has this in it, and returns what follows.
    pub(crate) async fn after(&mut self, mark: &str) -> String {
        let said = async {
            loop {
                let line = self.0.next_line().await.unwrap().expect("it says more");
                if let Some((_, said)) = line.split_once(mark) {
                    return said.to_owned();
                }
            }
        };
        timeout(LIMIT, said)
            .await
            .expect("it says something in time")
    }
}
