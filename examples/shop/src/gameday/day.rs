//! The shop on its game day.

use std::path::PathBuf;
use std::time::Duration;

use mamparo_core::BoxError;
use mamparo_rabbitmq::{DeadLetters, Publisher, Settings as Rabbit};

use super::customers::{Answer, Customers, Statuses};
use super::ledger::Ledger;
use super::operators::Operators;
use super::table::Table;
use super::traces::Traces;
use crate::common::bus::topology;
use crate::common::settings::Settings;
use crate::services::NAMES;
use crate::town::{Ground, Hurry, Town, Urls};

/// How long anything may take to be seen that is to be seen, on a busy machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// The shop, those who look at it, and what they have seen.
pub(crate) struct Day {
    pub(super) town: Town,
    pub(super) customers: Customers,
    pub(super) operators: Operators,
    pub(super) traces: Traces,
    pub(super) ledger: Ledger,
    /// As they hold today: hurried.
    pub(super) settings: Settings,
    pub(crate) table: Table,
}

impl Day {
    /// Opens the shop, on private servers.
    pub(crate) async fn begin() -> Result<Self, BoxError> {
        let settings = Settings::read()?;
        let hurry = Hurry {
            factor: settings.gameday.time_factor,
            reconcile_every: Some(settings.gameday.reconcile_every),
        };
        let factor = hurry.factor;
        let town = Town::build(Ground::open(Urls::default()).await, hurry).await?;
        let urls = NAMES.map(|name| (name, town.url(name)));
        Ok(Self {
            customers: Customers::new(town.url("gateway")),
            operators: Operators::new(urls.into()),
            traces: Traces(town.folder().to_owned()),
            ledger: Ledger::open(&town.ground.database)?,
            settings: settings.hurried(factor),
            table: Table::default(),
            town,
        })
    }

    /// Closes it; logs and spans stay where something was seen otherwise.
    pub(crate) async fn end(mut self) -> Result<(Table, PathBuf), BoxError> {
        let folder = match self.table.differences() {
            0 => self.town.folder().to_owned(),
            _ => self.town.keep(),
        };
        self.ledger.pool().close().await;
        self.town.stop().await?;
        Ok((self.table, folder))
    }

    /// Sees whether all of these orders were taken, and are confirmed in the end.
    pub(super) async fn confirmed(
        &mut self,
        expected: &str,
        answers: &[Answer],
    ) -> Result<(), BoxError> {
        let outcome = self.customers.outcome(answers).await?;
        let holds = outcome == format!("{} CONFIRMED", answers.len());
        let seen = format!("{}, {outcome}", Statuses(answers));
        self.table.customers(expected, seen, holds);
        Ok(())
    }

    /// Sees whether the last of these orders can be followed through all services.
    pub(super) async fn followed(&mut self, answers: &[Answer]) -> Result<(), BoxError> {
        let order = answers.last().and_then(Answer::order).unwrap_or_default();
        let told = "SELECT count(*) FROM notifications.sent WHERE order_id = $1";
        self.ledger.until(told, &order, 1).await?;
        let services = self.traces.services(&order)?;
        let holds = services.len() == NAMES.len();
        let expected = format!("an order is one story in {} services", NAMES.len());
        self.table.traces(expected, services.join(", "), holds);
        Ok(())
    }

    /// An operator's hands: what is done with dead letters.
    pub(super) fn dead_letters(&self, service: &str) -> Result<DeadLetters, BoxError> {
        let topology = topology(service, &self.settings)?;
        Ok(DeadLetters::in_topology(self.rabbit()?, topology))
    }

    /// Anybody who publishes.
    pub(super) fn publisher(&self) -> Result<Publisher, BoxError> {
        Ok(Publisher::new(self.rabbit()?))
    }

    fn rabbit(&self) -> Result<Rabbit, BoxError> {
        Ok(Rabbit::builder(&self.town.ground.broker)
            .name("operator")
            .build()?)
    }

    /// Tells a process that plays somebody else's how badly to play it.
    pub(super) async fn misbehave(&self, service: &str, how: &str) -> Result<(), BoxError> {
        let url = format!("{}/fault?{how}", self.town.url(service));
        reqwest::Client::new()
            .put(url)
            .send()
            .await?
            .error_for_status()?;
        Ok(())
    }
}
