//! What is read: snapshots, policies, events.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use http::header::ACCEPT;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use super::answer::{Refusal, with, written};
use super::hidden;
use super::router::Shared;
use crate::policy::{Origin, Policy};

type Name = Result<Path<String>, PathRejection>;

pub(super) async fn all(State(shared): State<Arc<Shared>>) -> Response {
    written(StatusCode::OK, &shared.policies.snapshot())
}

pub(super) async fn one(
    State(shared): State<Arc<Shared>>,
    name: Name,
) -> Result<Response, Refusal> {
    let policy = shared.policy(name)?;
    Ok(written(StatusCode::OK, &policy.snapshot()))
}

pub(super) async fn policy(
    State(shared): State<Arc<Shared>>,
    name: Name,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let policy = shared.policy(name)?;
    let accepted = headers
        .get(ACCEPT)
        .map_or(&b""[..], |value| value.as_bytes());
    let json = accepted
        .windows(JSON.len())
        .any(|it| it.eq_ignore_ascii_case(JSON));
    Ok(if json {
        written(StatusCode::OK, &settings(&policy))
    } else {
        with(
            StatusCode::OK,
            "text/plain; charset=utf-8",
            hidden::words(&policy),
        )
    })
}

const JSON: &[u8] = b"application/json";

pub(super) async fn events(State(shared): State<Arc<Shared>>) -> Result<Response, Refusal> {
    let Some(stream) = shared.feed.stream() else {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        let detail =
            "there are as many streams of events as there may be: read the snapshot, or come back";
        return Err(Refusal::new(status, detail).after(super::guard::FORGET));
    };
    Ok(with(
        StatusCode::OK,
        "text/event-stream",
        stream.into_body(),
    ))
}

impl Shared {
    pub(super) fn policy(&self, name: Name) -> Result<Policy, Refusal> {
        let found = name
            .ok()
            .and_then(|Path(name)| self.policies.dependency(&name).ok());
        found.ok_or_else(|| {
            Refusal::new(
                StatusCode::NOT_FOUND,
                "the policies name no such dependency: /dependencies has those that there are",
            )
        })
    }
}

/// A policy for programs, in the words of `mamparo explain --format json`.
fn settings(policy: &Policy) -> Value {
    let settings = hidden::settings(policy).into_iter().map(|it| {
        json!({ "path": it.path, "value": it.value.trim_matches('"'), "origin": origin(&it.origin) })
    });
    json!({
        "name": policy.name(),
        "url": policy.url().map(hidden::url),
        "settings": settings.collect::<Vec<_>>(),
    })
}

fn origin(origin: &Origin) -> Value {
    match origin {
        Origin::File {
            file,
            line,
            profile,
        } => {
            json!({ "from": "file", "file": file.as_ref(), "line": line, "profile": profile.as_deref() })
        }
        Origin::Environment(name) => json!({ "from": "environment", "variable": name.as_ref() }),
        Origin::Default => json!({ "from": "default" }),
    }
}
