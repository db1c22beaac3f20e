//! Knows products: names and prices.

use std::collections::BTreeMap;

use axum::extract::Query;
use axum::routing::get;
use axum::{Json, Router};
use mamparo::serve::Readiness;
use mamparo_core::BoxError;
use serde::{Deserialize, Serialize};

use crate::common::serve::{Server, faulty};
use crate::common::settings::Place;

/// The gold costs more than the bank lets anyone pay.
const PRODUCTS: [(&str, &str, i64); 3] = [
    ("book", "A book", 1_500),
    ("pen", "A pen", 300),
    ("gold", "A bar of gold", 4_500_000),
];

/// A product, as others read it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Product {
    pub(super) name: String,
    pub(super) cents: i64,
}

#[derive(Deserialize)]
struct Wanted {
    ids: String,
}

pub(super) async fn run(place: Place) -> Result<(), BoxError> {
    let server = Server::open(&place)?;
    let readiness = Readiness::builder().build()?;
    let routes = Router::new().route("/products", get(products));
    let routes = faulty(routes, &readiness)?;
    server.run(routes, readiness, async { Ok(()) }).await
}

/// Those of them that there are.
async fn products(Query(wanted): Query<Wanted>) -> Json<BTreeMap<&'static str, Product>> {
    let wanted: Vec<&str> = wanted.ids.split(',').collect();
    let found = PRODUCTS.iter().filter(|(id, ..)| wanted.contains(id));
    let found = found.map(|&(id, name, cents)| {
        (
            id,
            Product {
                name: name.to_owned(),
                cents,
            },
        )
    });
    Json(found.collect())
}
