//! Where the transactions are.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use mamparo_aws::Aws;
use mamparo_aws::plan::{self, Plan};
use mamparo_core::InvalidSetting;
use mamparo_durable::backend::{Backend, BackendError, QueueName};
use mamparo_durable::events::EventStore;
use mamparo_postgres::{Postgres, PostgresEvents, Settings};
use mamparo_rabbitmq::RabbitQueue;
use mamparo_sqlite::{SqliteDurable, SqliteEvents};

use super::trouble::Trouble;
use crate::output;

/// A store, as it is typed, and the RabbitMQ that its answers and requests are in, if they aren't in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    store: Store,
    broker: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Store {
    Sqlite(PathBuf),
    Postgres(String),
    /// What all names begin with; where that is, the environment says.
    Aws(String),
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (store, broker) = match text.find(",amqp") {
            Some(comma) => (&text[..comma], Some(text[comma + 1..].to_owned())),
            None => (text, None),
        };
        if let Some(url) = &broker {
            broker_at(url).map_err(|error| error.to_string())?;
        }
        let store = match store.split_once(':') {
            Some(("sqlite", file)) if !file.is_empty() => {
                let file = file.strip_prefix("//").unwrap_or(file);
                Store::Sqlite(file.into())
            }
            Some(("postgres" | "postgresql", _)) => Store::Postgres(store.to_owned()),
            Some(("aws", prefix)) if !prefix.is_empty() => Store::Aws(prefix.to_owned()),
            None if store == "aws" => Store::Aws("mamparo".to_owned()),
            _ => {
                let says = "write sqlite:FILE, postgres://USER@HOST/DATABASE, aws or aws:PREFIX";
                return Err(says.to_owned());
            }
        };
        Ok(Self { store, broker })
    }
}

impl Place {
    /// Opens it for a process that works on it, and makes it where it is missing.
    pub(super) async fn work(&self, poll: Duration) -> Result<Backend, Trouble> {
        let backend = match &self.store {
            Store::Sqlite(file) => {
                let store = SqliteDurable::builder(file).look_again(poll);
                store.open()?.backend()
            }
            Store::Postgres(url) => connect(url).await?,
            Store::Aws(prefix) => {
                let aws = amazon(prefix).await?;
                as_planned(&aws).await?;
                aws.backend().await?
            }
        };
        self.with_queues(backend, true).await
    }

    /// Opens one that is there.
    pub(super) async fn open(&self) -> Result<Backend, Trouble> {
        let backend = match &self.store {
            Store::Sqlite(file) if !file.exists() => {
                let help = "; `mamparo engine run` and `mamparo tx submit` make it";
                return Err(missing(file, help));
            }
            Store::Sqlite(file) => SqliteDurable::open(file)?.backend(),
            Store::Postgres(url) => connect(url).await?,
            Store::Aws(prefix) => amazon(prefix).await?.backend().await?,
        };
        self.with_queues(backend, false).await
    }

    /// Opens the outbox that another program keeps there, as it is.
    pub(crate) async fn events(
        &self,
        schema: Option<&str>,
    ) -> Result<Arc<dyn EventStore>, Trouble> {
        if self.broker.is_some() {
            return Err(Trouble::usage("an outbox is in a store, not in a broker"));
        }
        match (&self.store, schema) {
            (Store::Sqlite(_), Some(_)) => {
                Err(Trouble::usage("--schema is for a store in PostgreSQL"))
            }
            (Store::Sqlite(file), None) if !file.exists() => Err(missing(file, "")),
            (Store::Sqlite(file), None) => {
                Ok(Arc::new(SqliteEvents::builder(file).existing().open()?))
            }
            (Store::Postgres(url), schema) => {
                let mut settings = Settings::builder(url);
                if let Some(schema) = schema {
                    settings = settings.schema(schema);
                }
                let settings = settings.build();
                let settings = settings.map_err(|error| Trouble::usage(error.to_string()))?;
                let events = PostgresEvents::builder(settings).existing();
                let events = events.connect().await.map_err(|error| told(url, error))?;
                Ok(Arc::new(events))
            }
            (Store::Aws(_), _) => Err(Trouble::usage(
                "an outbox of events is in SQLite or PostgreSQL",
            )),
        }
    }

    async fn with_queues(&self, mut backend: Backend, make: bool) -> Result<Backend, Trouble> {
        let Some(url) = &self.broker else {
            return Ok(backend);
        };
        let refused = |error: InvalidSetting| Trouble::usage(error.to_string());
        let broker = broker_at(url).map_err(refused)?;
        for name in [QueueName::Answers, QueueName::Requests] {
            let queue = format!("mamparo.{}", name.as_str());
            let queue = RabbitQueue::builder(broker.clone(), name, queue);
            let queue = queue.build().map_err(refused)?;
            if make {
                queue.declare().await?;
            }
            backend = backend.with_queue(name, Arc::new(queue));
        }
        Ok(backend)
    }
}

fn broker_at(url: &str) -> Result<mamparo_rabbitmq::Settings, InvalidSetting> {
    mamparo_rabbitmq::Settings::builder(url).build()
}

fn missing(file: &Path, help: &str) -> Trouble {
    Trouble::usage(format!("{}: there is no such file{help}", file.display()))
}

async fn amazon(prefix: &str) -> Result<Aws, Trouble> {
    let settings = mamparo_aws::Settings::builder().prefix(prefix).build();
    Ok(Aws::connect(settings.map_err(Trouble::setting)?).await?)
}

/// Whoever starts an engine hears at once of what is missing, not by what fails later.
async fn as_planned(aws: &Aws) -> Result<(), Trouble> {
    let found = plan::check(aws, &Plan::of(aws)).await?;
    for finding in found.iter().filter(|finding| finding.is_trouble()) {
        let plan::Finding {
            resource,
            says,
            remedy,
            ..
        } = finding;
        let line = format!("{resource} {says}: {remedy}");
        match finding.state {
            plan::State::Differs => output::warning(&line),
            _ => return Err(Trouble::away(line)),
        }
    }
    Ok(())
}

async fn connect(url: &str) -> Result<Backend, Trouble> {
    let settings = Settings::builder(url).build();
    let settings = settings.map_err(Trouble::setting)?;
    let connected = Postgres::connect(settings).await;
    Ok(connected.map_err(|error| told(url, error))?.backend())
}

fn told(url: &str, error: BackendError) -> Trouble {
    let Trouble { exit, line } = error.into();
    let line = format!("{}: {line}", without_password(url));
    Trouble { exit, line }
}

/// Who and how to get in stays out of terminals and logs.
fn without_password(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
    format!("postgres://{place}")
}
