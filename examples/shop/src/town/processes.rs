//! All of it.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use mamparo_core::{BoxError, clock};
use tempfile::TempDir;
use tokio::time::sleep;

use super::Ground;
use super::process::Process;
use crate::services::NAMES;

/// How long a service may take to be ready, on a busy machine.
const READY: Duration = Duration::from_secs(60);

/// A second process of orders, for days on which there are two; see [`Town::start`].
pub(crate) const REPLICA: &str = "orders-2";

/// Between two looks.
const LOOK: Duration = Duration::from_millis(50);

/// How much faster than in earnest the shop's clock goes.
#[derive(Clone, Debug)]
pub(crate) struct Hurry {
    pub(crate) factor: u32,
    pub(crate) reconcile_every: Option<Duration>,
}

/// Broker, database and processes, for as long as it is kept.
pub(crate) struct Town {
    pub(crate) ground: Ground,
    folder: TempDir,
    addresses: BTreeMap<&'static str, SocketAddr>,
    processes: BTreeMap<&'static str, Process>,
    hurry: Hurry,
}

impl Town {
    /// Starts every service, and waits until each is ready.
    pub(crate) async fn build(ground: Ground, hurry: Hurry) -> Result<Self, BoxError> {
        // All at once, so that no two are the same.
        let names = NAMES.into_iter().chain([REPLICA]);
        let ports = names.map(|name| (name, TcpListener::bind((Ipv4Addr::LOCALHOST, 0))));
        let ports: Vec<_> = ports.collect();
        let mut addresses = BTreeMap::new();
        for (name, port) in ports {
            addresses.insert(name, port?.local_addr()?);
        }
        let mut town = Self {
            ground,
            folder: tempfile::Builder::new().prefix("shop-").tempdir()?,
            addresses,
            processes: BTreeMap::new(),
            hurry,
        };
        for name in NAMES {
            town.launch(name, &[])?;
        }
        for name in NAMES {
            town.ready(name).await?;
        }
        Ok(town)
    }

    pub(crate) fn url(&self, name: &str) -> String {
        let address = self.addresses.get(name);
        address.map_or_else(String::new, |address| format!("http://{address}"))
    }

    /// Where each process writes its log and its spans.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Keeps that folder.
    pub(crate) fn keep(&mut self) -> PathBuf {
        self.folder.disable_cleanup(true);
        self.folder.path().to_owned()
    }

    /// Starts a service that does not run, and waits until it is ready.
    pub(crate) async fn start(&mut self, name: &'static str) -> Result<(), BoxError> {
        self.launch(name, &[])?;
        self.ready(name).await
    }

    /// Stops a service and starts its release with these arguments.
    pub(crate) async fn deploy(
        &mut self,
        name: &'static str,
        arguments: &[&str],
    ) -> Result<(), BoxError> {
        self.take(name)?.stop().await?;
        self.launch(name, arguments)?;
        self.ready(name).await
    }

    /// Stops a service in good order.
    pub(crate) async fn remove(&mut self, name: &str) -> Result<(), BoxError> {
        self.take(name)?.stop().await
    }

    /// Kills a service, as `kill -9` does.
    pub(crate) async fn kill(&mut self, name: &'static str) -> Result<(), BoxError> {
        self.take(name)?.kill().await
    }

    pub(crate) fn freeze(&self, name: &str) -> Result<(), BoxError> {
        self.processes.get(name).ok_or("it does not run")?.freeze()
    }

    pub(crate) fn thaw(&self, name: &str) -> Result<(), BoxError> {
        self.processes.get(name).ok_or("it does not run")?.thaw()
    }

    /// Waits until a process ends by itself; returns whose it was.
    pub(crate) async fn ended(&mut self) -> Result<&'static str, BoxError> {
        loop {
            for (name, process) in &mut self.processes {
                if process.has_ended()? {
                    return Ok(name);
                }
            }
            sleep(LOOK).await;
        }
    }

    /// Stops all, those first that are asked by nobody.
    pub(crate) async fn stop(mut self) -> Result<(), BoxError> {
        for name in [REPLICA].iter().chain(NAMES.iter().rev()) {
            if let Some(process) = self.processes.remove(name) {
                process.stop().await?;
            }
        }
        Ok(())
    }

    fn take(&mut self, name: &str) -> Result<Process, BoxError> {
        Ok(self.processes.remove(name).ok_or("it does not run")?)
    }

    fn launch(&mut self, name: &'static str, more: &[&str]) -> Result<(), BoxError> {
        let folder = self.folder.path();
        let listen = self.addresses[name].to_string();
        let factor = self.hurry.factor.to_string();
        let Ground {
            database, broker, ..
        } = &self.ground;
        let service = name.split('-').next().unwrap_or(name);
        let mut arguments = vec!["service", service, "--listen", &listen];
        arguments.extend(["--database", database, "--broker", broker]);
        let traces = folder.display().to_string();
        arguments.extend(["--traces", &traces, "--time-factor", &factor]);
        let every = self.hurry.reconcile_every;
        let every = every.map(|every| humantime::format_duration(every).to_string());
        if let Some(every) = &every {
            arguments.extend(["--reconcile-every", every]);
        }
        arguments.extend(more);
        let arguments: Vec<String> = arguments.into_iter().map(str::to_owned).collect();
        // Where the others are: each policy has a URL, and the environment goes before it.
        let urls = NAMES.map(|name| {
            let variable = format!("MAMPARO__{}__URL", name.to_uppercase());
            (variable, self.url(name))
        });
        let log = folder.join(format!("{name}.log"));
        self.processes
            .insert(name, Process::start(&arguments, &urls, &log)?);
        Ok(())
    }

    async fn ready(&mut self, name: &'static str) -> Result<(), BoxError> {
        let url = format!("{}/health/ready", self.url(name));
        let client = reqwest::Client::new();
        let begun = clock::now();
        while begun.elapsed() < READY {
            if let Ok(answer) = client.get(&url).send().await
                && answer.status().is_success()
            {
                return Ok(());
            }
            let process = self.processes.get_mut(name).ok_or("it does not run")?;
            if process.has_ended()? {
                break;
            }
            sleep(LOOK).await;
        }
        let log = self.folder.path().join(format!("{name}.log"));
        let log = std::fs::read_to_string(log).unwrap_or_default();
        Err(format!("{name} is not ready: {log}").into())
    }
}
