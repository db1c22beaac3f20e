//! Which request is answered by what.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use http::StatusCode;
use mamparo_core::Observer;

use super::answer::Refusal;
use super::feed::Feed;
use super::guard::Guard;
use super::{act, read, ready};
use crate::policy::Policies;

/// What the handlers share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) policies: Policies,
    pub(super) feed: Arc<Feed>,
    pub(super) ready: BTreeSet<String>,
    /// None where there are no actions.
    pub(super) guard: Option<Guard>,
    pub(super) only: Option<BTreeSet<String>>,
    pub(super) observer: Option<Arc<dyn Observer>>,
}

pub(super) fn router(shared: Shared) -> Router {
    let mut router = Router::new()
        .route("/", get(read::all))
        .route("/dependencies", get(read::all))
        .route("/dependencies/{name}", get(read::one))
        .route("/dependencies/{name}/policy", get(read::policy))
        .route("/events", get(read::events))
        .route("/health/ready", get(ready::ready));
    if shared.guard.is_some() {
        router = router.route("/dependencies/{name}/breaker/{action}", post(act::act));
    }
    router
        .method_not_allowed_fallback(async || {
            Refusal::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "this is read with GET, and acted on with POST",
            )
        })
        .fallback(async || Refusal::new(StatusCode::NOT_FOUND, "there is nothing here"))
        .with_state(Arc::new(shared))
}
