//! A Prometheus of our own, on loopback.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use tokio::process::{Child, Command};

/// As long as a server may take to be ready.
const START: Duration = Duration::from_secs(20);

const HELP: &str = "scripts/peers prometheus installs it where it can";

/// The server, stopped and its data removed when it is dropped.
pub(super) struct Prometheus {
    address: SocketAddr,
    client: Client<HttpConnector, Empty<Bytes>>,
    // Before the folder that it writes to.
    server: Child,
    _folder: Folder,
}

/// One series of an answer: its labels, and its value.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    labels: Value,
    pub(super) value: f64,
}

impl Sample {
    pub(super) fn label(&self, name: &str) -> &str {
        self.labels[name].as_str().unwrap_or_default()
    }
}

impl Prometheus {
    /// Starts one that scrapes a target each second, and reckons by these rules as often.
    pub(super) async fn start(job: &str, target: SocketAddr, rules: &str) -> Self {
        let folder = Folder::new();
        fs::write(folder.0.join("rules.yml"), rules).unwrap();
        let config = format!(
            "global: {{ scrape_interval: 1s, evaluation_interval: 1s }}\n\
             rule_files: [rules.yml]\n\
             scrape_configs: [{{ job_name: {job}, static_configs: [{{ targets: ['{target}'] }}] }}]\n"
        );
        let path = folder.0.join("prometheus.yml");
        fs::write(&path, config).unwrap();
        // Free until now, and nobody else asks for it.
        let address = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let server = Command::new("prometheus")
            .arg(format!("--config.file={}", path.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                folder.0.join("data").display()
            ))
            .arg(format!("--web.listen-address={address}"))
            .arg("--log.level=error")
            .env("GOMAXPROCS", "1")
            .kill_on_drop(true)
            .spawn();
        let server =
            server.unwrap_or_else(|error| panic!("prometheus does not start: {error}; {HELP}"));
        let prometheus = Self {
            address,
            client: Client::builder(TokioExecutor::new()).build_http(),
            server,
            _folder: folder,
        };
        let ready = tokio::time::timeout(START, prometheus.until_ready()).await;
        ready.expect("prometheus is ready in time");
        prometheus
    }

    /// Stops it; a failed test does so by dropping it.
    pub(super) async fn stop(mut self) {
        self.server.kill().await.unwrap();
    }

    async fn until_ready(&self) {
        while self.get("/-/ready").await.is_none() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Evaluates an expression now.
    pub(super) async fn query(&self, expression: &str) -> Vec<Sample> {
        let path = format!("/api/v1/query?query={}", encoded(expression));
        let answer = self
            .get(&path)
            .await
            .unwrap_or_else(|| panic!("{expression} is refused"));
        let result = answer["data"]["result"]
            .as_array()
            .expect("an instant vector");
        let samples = result.iter().map(|series| Sample {
            labels: series["metric"].clone(),
            value: series["value"][1].as_str().unwrap().parse().unwrap(),
        });
        samples.collect()
    }

    /// The values of a label among the series that match.
    pub(super) async fn label_values(&self, series: &str, label: &str) -> Vec<String> {
        let path = format!("/api/v1/label/{label}/values?match[]={}", encoded(series));
        let answer = self
            .get(&path)
            .await
            .unwrap_or_else(|| panic!("{series} is refused"));
        let values = answer["data"].as_array().unwrap().iter();
        values
            .map(|value| value.as_str().unwrap().to_owned())
            .collect()
    }

    /// Asks for a path; nothing where the answer is no success.
    async fn get(&self, path: &str) -> Option<Value> {
        let uri = format!("http://{}{path}", self.address).parse().unwrap();
        let answer = self.client.get(uri).await.ok()?;
        let good = answer.status().is_success();
        let body = answer.into_body().collect().await.ok()?.to_bytes();
        good.then(|| serde_json::from_slice(&body).unwrap_or(Value::Null))
    }
}

/// Runs promtool, the server's companion, on a file.
pub(super) fn promtool(command: &[&str], file: &Path) -> Output {
    let output = std::process::Command::new("promtool")
        .args(command)
        .arg(file)
        .stdin(Stdio::null())
        .output();
    output.unwrap_or_else(|error| panic!("promtool does not start: {error}; {HELP}"))
}

/// A folder that is removed when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let name = format!("mamparo-prometheus-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let code = |byte: u8| match byte {
        byte if plain(byte) => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(code).collect()
}
