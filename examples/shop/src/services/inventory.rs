//! Reserves stock for an order, and releases it: when the order is cancelled, when nothing is heard for 15 minutes, and, once an
//! hour, when orders says that there is no such order.

mod reconcile;

use axum::Router;
use mamparo::serve::Readiness;
use mamparo_core::BoxError;
use mamparo_durable::events::{Event, Watchdog};
use mamparo_postgres::sqlx::{self, PgConnection};
use serde_json::{Value, json};

use crate::common::bus::{Bus, Heard, Hears};
use crate::common::client::Dependency;
use crate::common::serve::Server;
use crate::common::settings::{Place, policies};
use crate::common::shop::Shop;
use reconcile::Reconcile;

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS inventory.stock (product text PRIMARY KEY, free bigint NOT NULL CHECK (free >= 0));
INSERT INTO inventory.stock VALUES ('book', 1000), ('pen', 1000), ('gold', 10) ON CONFLICT DO NOTHING;
CREATE TABLE IF NOT EXISTS inventory.reservations (
    order_id text PRIMARY KEY,
    product text NOT NULL,
    quantity bigint NOT NULL,
    state text NOT NULL,
    at timestamptz NOT NULL DEFAULT now()
)";

#[derive(Clone)]
struct Inventory(Shop);

pub(super) async fn run(place: Place) -> Result<(), BoxError> {
    let server = Server::open(&place)?;
    let shop = Shop::open(&place, TABLES).await?;
    let orders = Dependency::open(&policies(&place)?, "orders")?;
    let bus = Bus::open(&shop)?
        .worker(lapsed(&shop)?)
        .worker(Reconcile::new(&shop, orders)?);
    let status = bus.status();
    let readiness = Readiness::builder()
        .check("consumer", move || status.clone().check())
        .build()?;
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

async fn reserve(
    shop: &Shop,
    tx: &mut PgConnection,
    heard: &Heard,
) -> Result<Vec<Event>, BoxError> {
    let (product, quantity) = (
        heard.body["product"].as_str(),
        heard.body["quantity"].as_i64(),
    );
    let missing = || mamparo_rabbitmq::Permanent::new("product or quantity is missing");
    let (product, quantity) = product.zip(quantity).ok_or_else(missing)?;
    // A cancellation that was faster has left its row: nothing is reserved any more.
    let insert = "INSERT INTO inventory.reservations (order_id, product, quantity, state) VALUES ($1, $2, $3, 'ACTIVE')
        ON CONFLICT DO NOTHING";
    let insert = sqlx::query(insert)
        .bind(&heard.order)
        .bind(product)
        .bind(quantity);
    if insert.execute(&mut *tx).await?.rows_affected() == 0 {
        return Ok(Vec::new());
    }
    let take = "UPDATE inventory.stock SET free = free - $2 WHERE product = $1 AND free >= $2";
    let take = sqlx::query(take).bind(product).bind(quantity);
    let what = match take.execute(&mut *tx).await?.rows_affected() {
        0 => {
            end(tx, &heard.order, "REJECTED").await?;
            "stock.rejected"
        }
        _ => "stock.reserved",
    };
    Ok(vec![shop.event(&heard.order, what, heard.body.clone())?])
}

/// Gives back what is still reserved.
async fn release(
    shop: &Shop,
    tx: &mut PgConnection,
    order: &str,
    state: &str,
) -> Result<Vec<Event>, BoxError> {
    let Some((product, quantity)) = end(tx, order, state).await? else {
        let never =
            "INSERT INTO inventory.reservations VALUES ($1, '', 0, $2) ON CONFLICT DO NOTHING";
        sqlx::query(never)
            .bind(order)
            .bind(state)
            .execute(tx)
            .await?;
        return Ok(Vec::new());
    };
    let give = "UPDATE inventory.stock SET free = free + $2 WHERE product = $1";
    sqlx::query(give)
        .bind(&product)
        .bind(quantity)
        .execute(tx)
        .await?;
    let body: Value = json!({ "product": product, "quantity": quantity, "as": state });
    Ok(vec![shop.event(order, "stock.released", body)?])
}

/// Ends a reservation, if it is active; returns what it was of.
async fn end(
    tx: &mut PgConnection,
    order: &str,
    state: &str,
) -> Result<Option<(String, i64)>, BoxError> {
    let end = "UPDATE inventory.reservations SET state = $2 WHERE order_id = $1 AND state = 'ACTIVE' RETURNING product, quantity";
    let ended = sqlx::query_as(end)
        .bind(order)
        .bind(state)
        .fetch_optional(tx);
    Ok(ended.await?)
}

/// Ends reservations after 15 minutes. The saga's own watchdog should have come first.
fn lapsed(shop: &Shop) -> Result<Watchdog, BoxError> {
    let saga = &shop.settings.saga;
    let select = format!(
        "SELECT order_id FROM inventory.reservations WHERE state = 'ACTIVE' AND at < now() - interval '{} ms'
         ORDER BY order_id LIMIT $1 FOR UPDATE SKIP LOCKED",
        saga.reservation.as_millis()
    );
    let stock = shop.clone();
    let lapsed = shop.events.stuck(&*select, move |tx, order| {
        let stock = stock.clone();
        Box::pin(async move { release(&stock, tx, &order, "LAPSED").await })
    });
    let watchdog = Watchdog::builder("reservation-lapsed", lapsed)
        .every(saga.watchdog_every)
        .limit(saga.batch);
    Ok(watchdog.build()?)
}
