//! Whether the program can do its work.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use mamparo_core::breaker::BreakerState;
use serde::Serialize;

use super::answer::written;
use super::followed::OBSERVES;
use super::router::Shared;
use crate::breaker::BreakerHandle;

#[derive(Serialize)]
struct Ready<'a> {
    status: &'static str,
    dependencies: BTreeMap<&'a str, One>,
}

#[derive(Serialize)]
struct One {
    ready: bool,
    /// The states of its breakers; empty where they are off, or no policy names it any more.
    breakers: BTreeMap<&'static str, &'static str>,
}

impl One {
    fn of(breakers: [Option<BreakerHandle>; 2]) -> Self {
        let states = breakers.map(|handle| handle.map(|handle| handle.state()));
        let named = OBSERVES.into_iter().zip(states);
        Self {
            ready: states.into_iter().flatten().all(lets_calls_pass),
            breakers: named
                .filter_map(|(observes, state)| Some((observes, state?.as_str())))
                .collect(),
        }
    }
}

/// A half-open breaker lets some pass: were it not ready, nobody would send what closes it.
const fn lets_calls_pass(state: BreakerState) -> bool {
    !matches!(state, BreakerState::Open | BreakerState::ForcedOpen)
}

pub(super) async fn ready(State(shared): State<Arc<Shared>>) -> Response {
    let current = shared.policies.current();
    let read = |name| {
        let policy = current.dependency(name).ok();
        let breakers = policy.map_or([None, None], |policy| policy.breakers());
        (name, One::of(breakers))
    };
    let dependencies: BTreeMap<_, _> = shared.ready.iter().map(String::as_str).map(read).collect();
    let (code, status) = match dependencies.values().all(|one| one.ready) {
        true => (StatusCode::OK, "ready"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "not_ready"),
    };
    let ready = Ready {
        status,
        dependencies,
    };
    written(code, &ready)
}
