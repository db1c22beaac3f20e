//! What is done: a breaker forced open, closed, reset.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use http::StatusCode;
use mamparo_core::breaker::BreakerState;
use mamparo_core::{CallContext, Dependency, Event, What};
use serde_json::json;

use super::answer::{Refusal, written};
use super::followed::OBSERVES;
use super::guard::Denied;
use super::peer::Peer;
use super::router::Shared;
use crate::breaker::BreakerHandle;

/// What may be done with a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    ForceOpen,
    Close,
    Reset,
}

/// Why nothing was done: a word for the observer, and the answer.
type Refused = (&'static str, Refusal);

impl Action {
    fn named(name: &str) -> Option<Self> {
        let all = [Self::ForceOpen, Self::Close, Self::Reset];
        all.into_iter().find(|action| action.as_str() == name)
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::ForceOpen => "force-open",
            Self::Close => "close",
            Self::Reset => "reset",
        }
    }

    fn apply(self, breaker: &BreakerHandle) {
        match self {
            Self::ForceOpen => breaker.force_open(),
            Self::Close | Self::Reset => breaker.reset(),
        }
    }
}

pub(super) async fn act(
    State(shared): State<Arc<Shared>>,
    path: Result<Path<(String, String)>, PathRejection>,
    request: Request,
) -> Result<Response, Refusal> {
    let (name, action) = path.map(|Path(path)| path).unwrap_or_default();
    let (action, name) = (Action::named(&action), name.as_str());
    let done = shared.attempt(name, action, &request);
    shared.report(name, action, done.as_ref().err().map(|refused| refused.0));
    done.map_err(|refused| refused.1)
}

impl Shared {
    fn attempt(
        &self,
        name: &str,
        action: Option<Action>,
        request: &Request,
    ) -> Result<Response, Refused> {
        if let Some(guard) = &self.guard {
            let peer = Peer::of(request.extensions());
            guard.admit(request.headers(), peer).map_err(denied)?;
        }
        let not_found = |detail| ("not_found", Refusal::new(StatusCode::NOT_FOUND, detail));
        let action = action
            .ok_or_else(|| not_found("there is no such action: force-open, close or reset"))?;
        let policy = self
            .policies
            .dependency(name)
            .map_err(|_| not_found("the policies name no such dependency"))?;
        if self.only.as_ref().is_some_and(|only| !only.contains(name)) {
            let detail = "actions are not allowed on this dependency";
            return Err(("forbidden", Refusal::new(StatusCode::FORBIDDEN, detail)));
        }
        let breakers = OBSERVES.into_iter().zip(policy.breakers());
        let breakers: Vec<_> = breakers
            .filter_map(|(observes, handle)| Some((observes, handle?)))
            .collect();
        let conflict = |detail| ("conflict", Refusal::new(StatusCode::CONFLICT, detail));
        if breakers.is_empty() {
            return Err(conflict("the policy of this dependency has no breaker"));
        }
        let is_closed = |(_, it): &(_, BreakerHandle)| it.state() == BreakerState::Closed;
        if action == Action::Close && breakers.iter().all(is_closed) {
            return Err(conflict(
                "the breaker is closed already: reset forgets what it has counted",
            ));
        }
        let changed = breakers.iter().map(|(observes, breaker)| {
            let from = breaker.state();
            action.apply(breaker);
            let to = breaker.state();
            (
                *observes,
                json!({ "from": from.as_str(), "to": to.as_str() }),
            )
        });
        let done = json!({
            "dependency": name,
            "action": action.as_str(),
            "breakers": changed.collect::<BTreeMap<_, _>>(),
        });
        Ok(written(StatusCode::OK, &done))
    }

    /// Tells the observer, also of what was refused.
    fn report(&self, name: &str, action: Option<Action>, refused: Option<&'static str>) {
        // Only names that there are: a caller's own would be kept for ever.
        let known = self.policies.dependency(name).is_ok();
        let dependency = known.then(|| Dependency::named(name));
        let context = CallContext::current_for(dependency.unwrap_or_default());
        let what = What::BreakerOperated {
            action: action.map_or("unknown", Action::as_str),
            refused,
        };
        Event::report(self.observer.as_ref(), &context, what);
    }
}

fn denied(denied: Denied) -> Refused {
    match denied {
        Denied::Missing => (
            "unauthorized",
            Refusal::unauthorized(
                "actions need a token: Authorization: Bearer TOKEN",
                "Bearer",
            ),
        ),
        Denied::Wrong => (
            "unauthorized",
            Refusal::unauthorized("this is not the token", r#"Bearer error="invalid_token""#),
        ),
        Denied::TooMany(wait) => (
            "too_many_failures",
            Refusal::new(
                StatusCode::TOO_MANY_REQUESTS,
                "too many wrong tokens came from this address",
            )
            .after(wait),
        ),
    }
}
