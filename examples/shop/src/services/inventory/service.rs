//! The process of inventory. Its watchdog ends reservations after 15 minutes: the saga's own should have come first.

use axum::Router;
use mamparo_core::BoxError;
use mamparo_durable::events::Watchdog;

use super::reconcile::Reconcile;
use super::stock::{end, release, reserve};
use crate::common::bus::{Bus, Heard, Hears};
use crate::common::client::Dependency;
use crate::common::serve::Server;
use crate::common::settings::{Place, policies};
use crate::common::shop::Shop;

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS inventory.stock (product text PRIMARY KEY, free bigint NOT NULL CHECK (free >= 0));
INSERT INTO inventory.stock VALUES ('book', 1000), ('pen', 1000), ('gold', 10) ON CONFLICT DO NOTHING;
CREATE TABLE IF NOT EXISTS inventory.reservations (
    order_id text PRIMARY KEY,
    product text NOT NULL,
    quantity bigint NOT NULL,
    state text NOT NULL,
    at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz
)";

#[derive(Clone)]
struct Inventory(Shop);

pub(in crate::services) async fn run(place: Place) -> Result<(), BoxError> {
    let server = Server::open(&place)?;
    let shop = Shop::open(&place, TABLES).await?;
    let orders = Dependency::open(&policies(&place)?, "orders")?;
    let bus = Bus::open(&shop)?
        .worker(lapsed(&shop)?)
        .worker(Reconcile::new(&shop, orders)?);
    let readiness = bus.readiness()?;
    let work = bus.run(Inventory(shop), server.stop());
    server.run(Router::new(), readiness, work).await
}

impl Hears for Inventory {
    async fn hear(self, heard: Heard) -> Result<(), BoxError> {
        let Self(shop) = &self;
        shop.once(&heard, |tx| {
            let (shop, heard) = (shop.clone(), heard.clone());
            Box::pin(async move {
                match &*heard.what {
                    "order.placed" => reserve(&shop, tx, &heard).await,
                    "order.cancelled" => release(&shop, tx, &heard.order, "RELEASED").await,
                    _ => end(tx, &heard.order, "SOLD").await.map(|_| Vec::new()),
                }
            })
        })
        .await
    }
}

/// Ends reservations after 15 minutes. The saga's own watchdog should have come first.
fn lapsed(shop: &Shop) -> Result<Watchdog, BoxError> {
    let saga = &shop.settings.saga;
    let select =
        "SELECT order_id FROM inventory.reservations WHERE state = 'ACTIVE' AND expires_at < now()
         ORDER BY order_id LIMIT $1 FOR UPDATE SKIP LOCKED";
    let stock = shop.clone();
    let lapsed = shop.events.stuck(select, move |tx, order| {
        let stock = stock.clone();
        Box::pin(async move { release(&stock, tx, &order, "LAPSED").await })
    });
    let watchdog = Watchdog::builder("reservation-lapsed", lapsed)
        .every(saga.watchdog_every)
        .limit(saga.batch);
    Ok(watchdog.build()?)
}
