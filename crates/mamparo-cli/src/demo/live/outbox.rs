//! Two outboxes in SQLite files, each with a relay, and a broker that can be made to take less.

use std::sync::Arc;
use std::time::Duration;

use mamparo_core::BoxError;
use mamparo_durable::backend::BoxFuture;
use mamparo_durable::events::{Event, Published, Publisher, Relay};
use mamparo_durable::supervise::{Supervised, Supervisor};
use mamparo_sqlite::{SqliteEvents, TransactionError};
use mamparo_telemetry::Metrics;
use tempfile::TempDir;
use tokio::time::interval;

use super::cast::Trouble;

/// In trouble, its broker is down.
const DOWN: &str = "invoices";

/// In trouble, nobody takes one of its events.
const REFUSED: &str = "orders";

/// As many events are put in each second.
const DEMAND: u32 = 4;

/// The outboxes, whose relays run for as long as they are kept.
#[derive(Debug)]
pub(super) struct Outboxes {
    refused: SqliteEvents,
    trouble: Trouble,
    _running: Supervised,
    _folder: TempDir,
}

impl Outboxes {
    /// Opens them, with the demand that goes on until the runtime ends.
    pub(super) fn open(metrics: &Metrics) -> Result<Self, BoxError> {
        let (folder, trouble) = (tempfile::tempdir()?, Trouble::default());
        let mut supervisor = Supervisor::new().listener(Arc::new(metrics.clone()));
        let mut open = |name: &str, broker: Broker| {
            let events = SqliteEvents::open(folder.path().join(format!("{name}.db")))?;
            let relay = Relay::builder(name, Arc::new(events.clone()), Arc::new(broker));
            supervisor = std::mem::take(&mut supervisor).worker(relay.build()?);
            tokio::spawn(demand(events.clone()));
            Ok::<_, BoxError>(events)
        };
        open(DOWN, Broker(Some(trouble.clone())))?;
        let refused = open(REFUSED, Broker(None))?;
        Ok(Self {
            refused,
            trouble,
            _running: supervisor.run(),
            _folder: folder,
        })
    }

    /// Takes the one's broker away, and puts into the other what no queue takes.
    pub(super) async fn make_trouble(&self) -> Result<(), BoxError> {
        self.trouble.begin();
        Ok(put(&self.refused, "unroutable".to_owned()).await?)
    }
}

/// Takes all events but those that nobody takes, and none at all in its trouble.
#[derive(Debug)]
struct Broker(Option<Trouble>);

impl Publisher for Broker {
    fn publish<'a>(&'a self, event: &'a Event) -> BoxFuture<'a, Published> {
        let is_down = self.0.as_ref().is_some_and(Trouble::is_here);
        let published = match event.id() {
            _ if is_down => Published::NotNow("it is down".to_owned()),
            "unroutable" => Published::Refused("no queue takes it".to_owned()),
            _ => Published::Confirmed,
        };
        Box::pin(std::future::ready(published))
    }
}

async fn demand(events: SqliteEvents) -> Result<(), TransactionError> {
    let mut ticks = interval(Duration::from_secs(1) / DEMAND);
    for number in 0_u64.. {
        ticks.tick().await;
        put(&events, format!("event-{number}")).await?;
    }
    Ok(())
}

async fn put(events: &SqliteEvents, id: String) -> Result<(), TransactionError> {
    let event = Event::builder(id).to("shop", "demo").build();
    let event = event.map_err(TransactionError::work)?;
    let outbox = events.clone();
    let put = events.transaction(move |tx| outbox.put(tx, &event));
    put.await
}
