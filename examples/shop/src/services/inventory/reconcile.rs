//! Once an hour: what is reserved for longer than any saga takes should belong to an order that still waits.

use mamparo_core::BoxError;
use mamparo_durable::backend::{BackendError, BoxFuture, Trouble};
use mamparo_durable::events::{Entry, Reconciliation};
use mamparo_durable::machine::AlertKind;
use mamparo_durable::supervise::{Watch, Worker};
use mamparo_postgres::sqlx;
use serde::Deserialize;

use super::stock::release;
use crate::common::client::Dependency;
use crate::common::shop::Shop;

/// Compares, tells every discrepancy, and releases what belongs to no order: there should be none, or the saga has a bug.
pub(super) struct Reconcile {
    shop: Shop,
    compared: Reconciliation,
}

/// What orders says of an order.
#[derive(Deserialize)]
struct Known {
    state: String,
}

impl Reconcile {
    pub(super) fn new(shop: &Shop, orders: Dependency) -> Result<Self, BoxError> {
        let (here, there) = (shop.clone(), shop.clone());
        let reserved = move |after, limit| {
            let shop = here.clone();
            async move { entries(&shop, after, limit).await }
        };
        let wanted = move |after, limit| {
            let (shop, orders) = (there.clone(), orders.clone());
            async move {
                let mut entries = entries(&shop, after, limit).await?;
                for entry in &mut entries {
                    entry.value = wanted(&orders, &entry.key).await?;
                }
                Ok::<_, BoxError>(entries)
            }
        };
        Ok(Self {
            shop: shop.clone(),
            compared: Reconciliation::builder("reservations", reserved, wanted).build()?,
        })
    }

    async fn compare(&self, watch: &Watch) -> Result<(), BoxError> {
        for found in self.compared.compare().await? {
            watch.alert(AlertKind::Discrepancy, 1, &found.to_string());
            let over = ["NO ORDER", "CANCELLED"].map(Some);
            if found.left.is_none() || !over.contains(&found.right.as_deref()) {
                continue; // sold, or on its way: for a person to find out why nobody heard
            }
            let mut tx = self.shop.workers().begin().await?;
            // Its event would find no saga.
            release(&self.shop, &mut tx, &found.key, "RECONCILED").await?;
            tx.commit().await?;
        }
        Ok(())
    }
}

impl Worker for Reconcile {
    fn name(&self) -> &'static str {
        "reconcile-reservations"
    }

    fn run(&self, watch: Watch) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async move {
            while !watch.is_stopped() {
                let compared = tokio::select! {
                    compared = self.compare(&watch) => compared,
                    () = watch.stopped() => return Ok(()),
                };
                match compared {
                    Ok(()) => watch.works(),
                    Err(error) => {
                        let message = format!("the comparison failed: {error}");
                        watch.fails(&BackendError::new(Trouble::Unavailable, message));
                    }
                }
                watch.pause(self.shop.settings.reconciliation.every).await;
            }
            Ok(())
        })
    }
}

/// What is reserved, and for long.
async fn entries(shop: &Shop, after: Option<String>, limit: usize) -> Result<Vec<Entry>, BoxError> {
    let old = shop.settings.reconciliation.older_than.as_millis();
    let asked = "SELECT order_id FROM inventory.reservations
        WHERE state = 'ACTIVE' AND order_id COLLATE \"C\" > $1 AND at < now() - $2 * interval '1 ms'
        ORDER BY order_id COLLATE \"C\" LIMIT $3";
    let found: Vec<String> = sqlx::query_scalar(asked)
        .bind(after.unwrap_or_default())
        .bind(i64::try_from(old)?)
        .bind(i64::try_from(limit)?)
        .fetch_all(shop.workers())
        .await?;
    Ok(found
        .into_iter()
        .map(|order| Entry::new(order, "ACTIVE"))
        .collect())
}

/// What should be reserved for an order.
async fn wanted(orders: &Dependency, order: &str) -> Result<String, BoxError> {
    let known: Option<Known> = orders.get(&format!("/orders/{order}")).await?;
    Ok(match known {
        None => "NO ORDER".to_owned(),
        Some(known) if ["PENDING", "STOCK_RESERVED"].contains(&&*known.state) => {
            "ACTIVE".to_owned()
        }
        Some(known) => known.state,
    })
}
