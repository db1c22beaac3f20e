//! A store, its policy, and engines that run on it.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};

use mamparo_testkit::private::PrivateMoto;

use crate::run::{Ran, with_env};

/// A folder with a policy, and a file of transactions that the first command makes, or a server that has them.
#[derive(Debug)]
pub(super) struct Place {
    folder: PathBuf,
    store: String,
    env: Vec<(&'static str, String)>,
    /// Where its answers and requests are, if not in the file.
    broker: Option<String>,
}

impl Place {
    /// `name` is the test's own. Waits are a fifth of a second.
    pub(super) fn new(name: &str, url: &str) -> Self {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("durable-{name}"));
        drop(std::fs::remove_dir_all(&folder));
        std::fs::create_dir_all(&folder).unwrap();
        let place = Self {
            store: format!("sqlite:{}", folder.join("engine.db").display()),
            folder,
            env: Vec::new(),
            broker: None,
        };
        place.policy(&format!(
            r#"
# The same files may be another program's too.
[dependency.ledger]
protocol = "grpc"

[dependency.psp]
url = "{url}"
deadline = "5s"
defer.field = "status"
defer.refused_values = ["CANCELLED"]
defer.refused = [409]
defer.wait = {{ base = "200ms", cap = "200ms", jitter = 0.0 }}
defer.technical_wait = {{ base = "200ms", cap = "200ms", jitter = 0.0 }}
"#
        ));
        place
    }

    /// The same, with a RabbitMQ for answers and requests.
    pub(super) fn with_broker(self, url: String) -> Self {
        Self {
            broker: Some(url),
            ..self
        }
    }

    /// The same on a server that answers as AWS does; `name` is the prefix, and what is there is made.
    pub(super) async fn on_aws(name: &str, url: &str) -> Self {
        let mut place = Self::new(name, url);
        place.store = format!("aws:{name}");
        let server = PrivateMoto::shared().await;
        place.env = vec![
            ("AWS_ENDPOINT_URL", server.url()),
            ("AWS_REGION", "eu-west-1".to_owned()),
            ("AWS_ACCESS_KEY_ID", "test".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "test".to_owned()),
        ];
        let applied = with_env(&["aws", "apply", "--prefix", name], &place.env()).await;
        assert_eq!(applied.code, 0, "{}", applied.stderr);
        place
    }

    fn env(&self) -> Vec<(&str, &str)> {
        let env = self.env.iter();
        env.map(|(name, value)| (*name, value.as_str())).collect()
    }

    pub(super) fn policy(&self, text: &str) {
        std::fs::write(self.folder.join("policies.toml"), text).unwrap();
    }

    pub(super) fn policies(&self) -> String {
        self.folder.join("policies.toml").display().to_string()
    }

    pub(super) fn store(&self) -> String {
        match &self.broker {
            Some(broker) => format!("{},{broker}", self.store),
            None => self.store.clone(),
        }
    }

    /// Runs a command on the store.
    pub(super) async fn run(&self, args: &[&str]) -> Ran {
        with_env(&[args, &["--store", &self.store()]].concat(), &self.env()).await
    }

    pub(super) async fn submit(&self, id: &str) -> Ran {
        let policies = self.policies();
        let psp = [
            "--dependency",
            "psp",
            "--policy",
            &policies,
            "-d",
            "5 EUR",
            "--json",
        ];
        self.run(&[&["tx", "submit", id, "/charges"], &psp[..]].concat())
            .await
    }

    /// Returns the transactions in a state.
    pub(super) async fn listed(&self, state: &str) -> Vec<Value> {
        let ran = self
            .run(&["tx", "list", "--json", "--max", "100000", "--state", state])
            .await;
        ran.json()["transactions"].as_array().unwrap().clone()
    }

    /// Waits until so many have succeeded.
    pub(super) async fn succeeded(&self, many: usize) {
        for _ in 0..400 {
            if self.listed("SUCCEEDED").await.len() == many {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!(
            "not all succeed: {:?}",
            self.run(&["engine", "status"]).await
        );
    }

    pub(super) async fn engine(&self, more: &[&str]) -> Engine {
        let mut child = Command::new(env!("CARGO_BIN_EXE_mamparo"))
            .args(["engine", "run", "--poll", "50ms", "--reconcile-every", "1s"])
            .args(["--store", &self.store(), "--policy", &self.policies()])
            .args(more)
            .envs(self.env())
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut engine = Engine { child, stderr };
        engine.says("running").await;
        engine
    }
}

/// `mamparo engine run`, as a process.
#[derive(Debug)]
pub(super) struct Engine {
    child: Child,
    stderr: Lines<BufReader<ChildStderr>>,
}

impl Engine {
    /// Waits for a line on stderr that has this in it.
    pub(super) async fn says(&mut self, what: &str) -> String {
        let mut said = Vec::new();
        let limit = tokio::time::timeout(Duration::from_secs(20), async {
            while let Some(line) = self.stderr.next_line().await.unwrap() {
                if line.contains(what) {
                    return Some(line);
                }
                said.push(line);
            }
            None
        });
        let line = limit.await.ok().flatten();
        line.unwrap_or_else(|| panic!("{what} is not said: {said:#?}"))
    }

    /// Sends it a signal: TERM, HUP, KILL.
    pub(super) async fn signal(&self, name: &str) {
        let pid = self.child.id().unwrap().to_string();
        let sent = Command::new("kill")
            .args([&format!("-{name}"), &pid])
            .status();
        assert!(sent.await.unwrap().success());
    }

    /// Waits for its end, and returns its exit code, if it had one.
    pub(super) async fn ended(mut self) -> Option<i32> {
        let ended = tokio::time::timeout(Duration::from_secs(20), self.child.wait());
        ended.await.expect("it ends").unwrap().code()
    }
}
