//! The process of orders. Its watchdogs cancel what has waited for its stock or its payment for ten minutes.

use std::time::Duration;

use axum::Router;
use axum::routing::{get, post};
use mamparo::idempotency::IdempotencyLayer;
use mamparo_core::BoxError;
use mamparo_durable::events::Watchdog;
use mamparo_postgres::PostgresIdempotency;

use super::{api, saga};
use crate::common::bus::{Bus, Heard, Hears};
use crate::common::client::Dependency;
use crate::common::serve::{Server, layers};
use crate::common::settings::{Place, policies};
use crate::common::shop::{Shop, mamparos};

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS orders.orders (
    id text PRIMARY KEY,
    customer text NOT NULL,
    product text NOT NULL,
    quantity bigint NOT NULL,
    cents bigint NOT NULL,
    state text NOT NULL DEFAULT 'PENDING',
    reason text,
    since timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX IF NOT EXISTS orders_pending ON orders.orders (since) WHERE state = 'PENDING';
CREATE INDEX IF NOT EXISTS orders_waiting ON orders.orders (since) WHERE state = 'STOCK_RESERVED';
CREATE TABLE IF NOT EXISTS orders.history (
    number bigint GENERATED ALWAYS AS IDENTITY,
    order_id text NOT NULL,
    heard text NOT NULL,
    state text NOT NULL,
    at timestamptz NOT NULL DEFAULT now()
)";

#[derive(Clone)]
pub(super) struct Orders {
    pub(super) shop: Shop,
    pub(super) catalog: Dependency,
    pub(super) customers: Dependency,
    pub(super) keys: PostgresIdempotency,
    /// This is the release that can't read payments.
    has_bug: bool,
}

pub(in crate::services) async fn run(place: Place) -> Result<(), BoxError> {
    let server = Server::open(&place)?;
    let policies = policies(&place)?;
    let shop = Shop::open(&place, TABLES).await?;
    let orders = Orders {
        catalog: Dependency::open(&policies, "catalog")?,
        customers: Dependency::open(&policies, "customers")?,
        keys: PostgresIdempotency::connect(mamparos(&place).build()?).await?,
        has_bug: place.bug,
        shop,
    };
    let limits = &orders.shop.settings.saga;
    let stock = ("PENDING", limits.stock_limit, saga::TIMEOUT_STOCK);
    let payment = (
        "STOCK_RESERVED",
        limits.payment_limit,
        saga::TIMEOUT_PAYMENT,
    );
    let bus = Bus::open(&orders.shop)?
        .worker(watchdog("stock-timeout", &orders.shop, stock)?)
        .worker(watchdog("payment-timeout", &orders.shop, payment)?);
    let readiness = bus.readiness()?;
    let keys = policies.server().idempotency();
    let keys = keys.ok_or("orders has no policy for idempotency keys")?;
    let layers = layers(policies.server().http(), &readiness)
        .idempotency(IdempotencyLayer::new(orders.keys.clone(), keys.clone()));
    let routes = Router::new()
        .route("/orders", post(api::place).get(api::list))
        .route("/orders/{id}", get(api::show).delete(api::cancel))
        .with_state(orders.clone())
        .layer(layers);
    let work = bus.run(orders, server.stop());
    server.run(routes, readiness, work).await
}

impl Hears for Orders {
    async fn hear(self, heard: Heard) -> Result<(), BoxError> {
        if self.has_bug && heard.what == "payment.confirmed" {
            return Err(mamparo_rabbitmq::Permanent::new("bug: the payment has no amount").into());
        }
        let Self { shop, .. } = &self;
        shop.once(&heard, |tx| {
            let (shop, heard) = (shop.clone(), heard.clone());
            Box::pin(async move { saga::follow(&shop, tx, &heard.order, &heard.what).await })
        })
        .await
    }
}

/// Cancels orders that have been in a state for too long, by what is said then, and tells of it in the same transaction.
fn watchdog(
    name: &str,
    shop: &Shop,
    (state, limit, says): (&str, Duration, &'static str),
) -> Result<Watchdog, BoxError> {
    let settings = &shop.settings.saga;
    let select = format!(
        "SELECT id FROM orders.orders WHERE state = '{state}' AND since < now() - interval '{} ms'
         ORDER BY since LIMIT $1 FOR UPDATE SKIP LOCKED",
        limit.as_millis()
    );
    let orders = shop.clone();
    let stuck = shop.events.stuck(&*select, move |tx, order| {
        let orders = orders.clone();
        Box::pin(async move { saga::follow(&orders, tx, &order, says).await })
    });
    let watchdog = Watchdog::builder(name, stuck)
        .every(settings.watchdog_every)
        .limit(settings.batch);
    Ok(watchdog.build()?)
}
