//! Database and broker together: what a service changes leaves with its events, and is changed once for each message.

use std::str::FromStr as _;

use mamparo_core::{BoxError, chain};
use mamparo_durable::backend::BoxFuture;
use mamparo_durable::events::{Event, Seen};
use mamparo_postgres::sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};
use mamparo_postgres::sqlx::{self, AssertSqlSafe};
use mamparo_postgres::{PostgresEvents, Settings as Postgres, SettingsBuilder};
use mamparo_rabbitmq::{Publisher, Settings as Rabbit};
use mamparo_telemetry::durable::traceparent;
use serde_json::Value;

use super::bus::{EXCHANGE, Heard};
use super::settings::{Place, Settings};
use super::telemetry::Counts;

/// SQLSTATE of what another transaction undid: the whole of it is to be tried again.
const UNDONE: [&str; 2] = ["40001", "40P01"];

/// What a service that has tables works with.
#[derive(Clone)]
pub(crate) struct Shop {
    pub(crate) service: String,
    pub(crate) settings: Settings,
    pub(crate) counts: Counts,
    pub(crate) events: PostgresEvents,
    pub(crate) rabbit: Rabbit,
    pub(crate) publisher: Publisher,
    /// For those who ask over HTTP.
    pub(crate) requests: PgPool,
    /// For messages, apart from those: a crowd at the door doesn't stop what has begun.
    workers: PgPool,
}

impl Shop {
    /// Connects, and makes the service's own tables in a schema of its name.
    pub(crate) async fn open(place: &Place, tables: &'static str) -> Result<Self, BoxError> {
        let settings = Settings::of(place)?;
        let service = place.service.clone();
        let database = &settings.database;
        let requests = PgPoolOptions::new()
            .max_connections(database.request_connections)
            .acquire_timeout(database.request_wait);
        let workers = PgPoolOptions::new().max_connections(database.worker_connections);
        let rabbit = Rabbit::builder(&place.broker).name(&service).build()?;
        let shop = Self {
            requests: requests.connect_lazy_with(options(place, &settings)?),
            workers: workers.connect_lazy_with(options(place, &settings)?),
            events: PostgresEvents::connect(mamparos(place).build()?).await?,
            publisher: Publisher::new(rabbit.clone()),
            counts: Counts::new(),
            service,
            settings,
            rabbit,
        };
        let schema = format!("CREATE SCHEMA IF NOT EXISTS {}; {tables}", shop.service);
        sqlx::raw_sql(AssertSqlSafe(schema))
            .execute(&shop.workers)
            .await?;
        Ok(shop)
    }

    /// Makes an event of an order.
    pub(crate) fn event(
        &self,
        order: &str,
        what: &str,
        mut body: Value,
    ) -> Result<Event, BoxError> {
        body["order"] = order.into();
        let event = Event::builder(format!("{order}/{what}"))
            .key(order)
            .to(EXCHANGE, what)
            .content_type("application/json")
            .payload(body.to_string());
        let event = match traceparent() {
            Some(parent) => event.header("traceparent", parent.as_str()),
            None => event,
        };
        Ok(event.build()?)
    }

    /// Makes a change and puts its events, in one transaction, once for each message. What a deadlock undid is tried again here: it
    /// is over in milliseconds, and the retry queue would take half a minute.
    pub(crate) async fn once<F>(&self, heard: &Heard, change: F) -> Result<(), BoxError>
    where
        F: for<'c> Fn(&'c mut PgConnection) -> BoxFuture<'c, Result<Vec<Event>, BoxError>>,
    {
        let mut attempt = 1;
        loop {
            let result = self.try_once(heard, &change).await;
            let undone = result.as_ref().err().is_some_and(is_undone);
            if !undone || attempt == self.settings.database.deadlock_attempts {
                return result;
            }
            self.counts.deadlock();
            tokio::time::sleep(self.settings.database.deadlock_wait).await;
            attempt += 1;
        }
    }

    async fn try_once<F>(&self, heard: &Heard, change: &F) -> Result<(), BoxError>
    where
        F: for<'c> Fn(&'c mut PgConnection) -> BoxFuture<'c, Result<Vec<Event>, BoxError>>,
    {
        let mut tx = self.workers.begin().await?;
        let seen = self
            .events
            .processed_once(&mut tx, &self.service, &heard.id);
        if seen.await? == Seen::First {
            for event in change(&mut tx).await? {
                self.events.put(&mut tx, &event).await?;
            }
        }
        Ok(tx.commit().await?)
    }

    /// Begins a transaction of a message's, for what must be there before anything else is done.
    pub(crate) fn workers(&self) -> &PgPool {
        &self.workers
    }
}

/// The settings of what mamparo keeps for a service, in a schema beside the service's own.
pub(crate) fn mamparos(place: &Place) -> SettingsBuilder {
    Postgres::builder(&place.database).schema(format!("{}_mamparo", place.service))
}

/// As the service itself connects: no statement takes for ever.
fn options(place: &Place, settings: &Settings) -> Result<PgConnectOptions, BoxError> {
    let longest = settings.database.statement_timeout.as_millis();
    let options = PgConnectOptions::from_str(&place.database)?;
    Ok(options.options([("statement_timeout", longest.to_string())]))
}

fn is_undone(error: &BoxError) -> bool {
    let code =
        chain::find::<sqlx::Error>(&**error).and_then(|error| error.as_database_error()?.code());
    code.is_some_and(|code| UNDONE.contains(&&*code))
}
