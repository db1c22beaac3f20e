//! Which service a process is.

use mamparo_core::BoxError;

use super::{bank, catalog, customers, gateway, inventory, notifications, orders, payments};
use crate::common::settings::Place;

/// All services, those first that others ask.
pub(crate) const NAMES: [&str; 8] = [
    "bank",
    "catalog",
    "customers",
    "orders",
    "inventory",
    "payments",
    "notifications",
    "gateway",
];

/// Runs one until it is told to stop.
pub(crate) async fn run(place: Place) -> Result<(), BoxError> {
    match &*place.service {
        "bank" => bank::run(place).await,
        "catalog" => catalog::run(place).await,
        "customers" => customers::run(place).await,
        "orders" => orders::run(place).await,
        "inventory" => inventory::run(place).await,
        "payments" => payments::run(place).await,
        "notifications" => notifications::run(place).await,
        "gateway" => gateway::run(place).await,
        other => Err(format!("{other} is no service: {}", NAMES.join(", ")).into()),
    }
}
