//! Numbers: `shop.toml`, and the policies of each service.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use mamparo::policy::Policies;
use mamparo_core::BoxError;
use serde::{Deserialize, Deserializer, de::Error as _};

const FOLDER: &str = env!("CARGO_MANIFEST_DIR");

/// What a process is told when it is started.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Place {
    /// Which service it is.
    pub(crate) service: String,
    /// Where it listens.
    #[arg(long)]
    pub(crate) listen: SocketAddr,
    /// The URL of PostgreSQL.
    #[arg(long)]
    pub(crate) database: String,
    /// The URL of RabbitMQ.
    #[arg(long)]
    pub(crate) broker: String,
    /// The folder that spans are written to.
    #[arg(long)]
    pub(crate) traces: PathBuf,
    /// So many times faster go sagas, retry queues and open breakers.
    #[arg(long, default_value_t = 1)]
    pub(crate) time_factor: u32,
    /// How often inventory compares with orders, before the factor.
    #[arg(long, value_parser = humantime::parse_duration)]
    pub(crate) reconcile_every: Option<Duration>,
    /// Orders: is the release with the bug.
    #[arg(long)]
    pub(crate) bug: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    pub(crate) consumer: Consumer,
    pub(crate) database: Database,
    pub(crate) saga: Saga,
    pub(crate) reconciliation: Reconciliation,
    pub(crate) gameday: GameDay,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Consumer {
    pub(crate) prefetch: u16,
    pub(crate) max_attempts: u32,
    #[serde(deserialize_with = "duration")]
    pub(crate) retry_delay: Duration,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Database {
    pub(crate) request_connections: u32,
    #[serde(deserialize_with = "duration")]
    pub(crate) request_wait: Duration,
    pub(crate) worker_connections: u32,
    #[serde(deserialize_with = "duration")]
    pub(crate) statement_timeout: Duration,
    pub(crate) deadlock_attempts: u32,
    #[serde(deserialize_with = "duration")]
    pub(crate) deadlock_wait: Duration,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Saga {
    #[serde(deserialize_with = "duration")]
    pub(crate) watchdog_every: Duration,
    #[serde(deserialize_with = "duration")]
    pub(crate) stock_limit: Duration,
    #[serde(deserialize_with = "duration")]
    pub(crate) payment_limit: Duration,
    pub(crate) batch: usize,
    #[serde(deserialize_with = "duration")]
    pub(crate) reservation: Duration,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reconciliation {
    #[serde(deserialize_with = "duration")]
    pub(crate) every: Duration,
    #[serde(deserialize_with = "duration")]
    pub(crate) older_than: Duration,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GameDay {
    pub(crate) time_factor: u32,
    #[serde(deserialize_with = "duration")]
    pub(crate) reconcile_every: Duration,
}

fn duration<'de, D: Deserializer<'de>>(written: D) -> Result<Duration, D::Error> {
    humantime::parse_duration(&String::deserialize(written)?).map_err(D::Error::custom)
}

impl Settings {
    /// Reads what is written.
    pub(crate) fn read() -> Result<Self, BoxError> {
        let text = std::fs::read_to_string(format!("{FOLDER}/shop.toml"))?;
        Ok(toml::from_str(&text)?)
    }

    /// Reads what holds for a process.
    pub(crate) fn of(place: &Place) -> Result<Self, BoxError> {
        let mut settings = Self::read()?;
        if let Some(every) = place.reconcile_every {
            settings.reconciliation.every = every;
        }
        Ok(settings.hurried(place.time_factor))
    }

    /// Time limits of calls stay as they are: only what is meant to take minutes is made shorter.
    pub(crate) fn hurried(mut self, factor: u32) -> Self {
        let minutes = [
            &mut self.consumer.retry_delay,
            &mut self.saga.watchdog_every,
            &mut self.saga.stock_limit,
            &mut self.saga.payment_limit,
            &mut self.saga.reservation,
            &mut self.reconciliation.every,
            &mut self.reconciliation.older_than,
        ];
        for wait in minutes {
            *wait /= factor;
        }
        self
    }
}

/// Loads a service's policies; of breakers, how long they are open is made shorter too.
pub(crate) fn policies(place: &Place) -> Result<Policies, BoxError> {
    let file = format!("{FOLDER}/policies/{}.toml", place.service);
    let mut environment: Vec<_> = std::env::vars().collect();
    let written = Policies::loader().file(&file).load()?;
    for (name, policy) in written.iter() {
        for setting in policy.effective() {
            if !setting.path.starts_with("breaker.open_wait") {
                continue;
            }
            let path = setting.path.replace('.', "__").to_uppercase();
            let wait = humantime::parse_duration(setting.value.trim_matches('"'))?;
            let wait = humantime::format_duration(wait / place.time_factor);
            let name = name.to_uppercase();
            environment.push((format!("MAMPARO__{name}__{path}"), wait.to_string()));
        }
    }
    let policies = Policies::loader().file(&file).environment(environment);
    Ok(policies.load()?)
}
