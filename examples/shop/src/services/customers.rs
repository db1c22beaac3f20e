//! Knows customers.

use axum::extract::Path;
use axum::routing::get;
use axum::{Json, Router};
use http::StatusCode;
use mamparo::problem::Problem;
use mamparo::serve::{self, Readiness};
use mamparo_core::BoxError;
use serde_json::{Value, json};

use crate::common::serve::{Server, layers};
use crate::common::settings::Place;

pub(super) async fn run(place: Place) -> Result<(), BoxError> {
    let server = Server::open(&place)?;
    let readiness = Readiness::builder().build()?;
    let routes = Router::new()
        .route("/customers/{id}", get(customer))
        .layer(layers(serve::http(), &readiness));
    server.run(routes, readiness, async { Ok(()) }).await
}

/// Everybody is one, except for strangers.
async fn customer(Path(id): Path<String>) -> Result<Json<Value>, Problem> {
    if id.starts_with("stranger") {
        let problem = Problem::blank(StatusCode::NOT_FOUND);
        return Err(problem.with_detail("there is no such customer"));
    }
    Ok(Json(
        json!({ "id": id, "email": format!("{id}@example.com") }),
    ))
}
