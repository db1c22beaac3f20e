//! Policies for programs.

use mamparo::policy::{Effective, Origin, Policy, ServerPolicy};
use serde_json::{Value, json};

use crate::check::Figures;

/// A policy with its figures, and each value with its origin.
pub(super) fn record(policy: &Policy) -> Value {
    json!({
        "name": policy.name(),
        "url": policy.url(),
        "figures": Figures::of(policy),
        "settings": settings(policy.effective()),
    })
}

/// The server's own policy.
pub(super) fn server(policy: &ServerPolicy) -> Value {
    json!({ "settings": settings(policy.effective()) })
}

fn settings(all: Vec<Effective>) -> Value {
    let settings = all.into_iter().map(|it| {
        json!({ "path": it.path, "value": it.value.trim_matches('"'), "origin": origin(&it.origin) })
    });
    settings.collect()
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
        _ => json!({ "from": "default" }),
    }
}
