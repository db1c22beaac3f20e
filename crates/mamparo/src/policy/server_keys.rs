//! The server's idempotency keys: `[server.idempotency]`.

use http::{Method, StatusCode};
use mamparo_core::InvalidSetting;

use super::server::header;
use super::view::View;
use crate::caller::Principal;
use crate::idempotency::{
    IdempotencyBuilder, IdempotencyPolicy, KeySyntax, OnExpiry, OnStoreFailure, Stored,
};

/// Reads the table; none where it is off.
pub(super) fn idempotency(view: &View) -> Result<Option<IdempotencyPolicy>, InvalidSetting> {
    if !view.is_on("idempotency", false) {
        return Ok(None);
    }
    let builder = form(view, whose(view)?)?;
    waits(view, kept(view, builder)?).build().map(Some)
}

/// Nobody gets an answer that was given to another, unless somebody wrote that they may.
fn whose(view: &View) -> Result<IdempotencyBuilder, InvalidSetting> {
    match view.text("idempotency.key") {
        Some("all") => Ok(IdempotencyPolicy::for_all_callers()),
        Some("principal") => Ok(IdempotencyPolicy::per_principal(|head| {
            let principal = head.extensions.get::<Principal>()?;
            Some(principal.name().as_bytes().to_vec())
        })),
        Some("header") => {
            let name = view.text("idempotency.header").unwrap_or_default();
            let name = header("header", name)?;
            Ok(IdempotencyPolicy::per_principal(move |head| {
                Some(head.headers.get(&name)?.as_bytes().to_vec())
            }))
        }
        _ => {
            let reason = r#"must be written: whose a key is, "principal", "header" or "all""#;
            Err(InvalidSetting::new("key", "none", reason))
        }
    }
}

fn form(view: &View, builder: IdempotencyBuilder) -> Result<IdempotencyBuilder, InvalidSetting> {
    let mut builder = builder;
    if let Some(name) = view.text("idempotency.key_header") {
        builder = builder.header(header("key_header", name)?);
    }
    if view.text("idempotency.syntax") == Some("strict") {
        builder = builder.syntax(KeySyntax::Strict);
    }
    if let Some(characters) = size(view, "idempotency.longest_key") {
        builder = builder.longest_key(characters);
    }
    if view.flag("idempotency.required") == Some(true) {
        builder = builder.required();
    }
    if view.is_written("idempotency.methods") {
        builder = builder.methods(methods(view)?);
    }
    if let Some(namespace) = view.text("idempotency.namespace") {
        builder = builder.namespace(namespace.to_owned());
    }
    if let Some(url) = view.text("idempotency.documentation") {
        builder = builder.documentation(url);
    }
    Ok(builder)
}

fn methods(view: &View) -> Result<Vec<Method>, InvalidSetting> {
    let parsed = view.texts("idempotency.methods").map(|name| {
        let method = name.parse::<Method>();
        method.map_err(|_| InvalidSetting::new("methods", name, "must be names of methods"))
    });
    parsed.collect()
}

fn kept(view: &View, builder: IdempotencyBuilder) -> Result<IdempotencyBuilder, InvalidSetting> {
    let mut builder = match view.text("idempotency.stored") {
        Some("not_server_errors") => builder.stored(Stored::NotServerErrors),
        Some("successes") => builder.stored(Stored::Successes),
        _ => builder,
    };
    if let Some(bytes) = size(view, "idempotency.request_limit") {
        builder = builder.request_limit(bytes);
    }
    if let Some(bytes) = size(view, "idempotency.answer_limit") {
        builder = builder.answer_limit(bytes);
    }
    if let Some(status) = view.count("idempotency.indeterminate_status") {
        let code = u16::try_from(status).ok();
        let code = code.and_then(|code| StatusCode::from_u16(code).ok());
        let refused = || InvalidSetting::new("indeterminate_status", status, "must be 500 or 409");
        builder = builder.indeterminate_status(code.ok_or_else(refused)?);
    }
    Ok(builder)
}

fn waits(view: &View, builder: IdempotencyBuilder) -> IdempotencyBuilder {
    let mut builder = builder;
    if view.text("idempotency.on_expiry") == Some("run_again") {
        builder = builder.on_expiry(OnExpiry::RunAgain);
    }
    if view.text("idempotency.on_store_failure") == Some("run_unprotected") {
        builder = builder.on_store_failure(OnStoreFailure::RunUnprotected);
    }
    type Set = fn(IdempotencyBuilder, std::time::Duration) -> IdempotencyBuilder;
    let settings: [(&str, Set); 5] = [
        ("idempotency.retention", IdempotencyBuilder::retention),
        (
            "idempotency.retry_horizon",
            IdempotencyBuilder::retry_horizon,
        ),
        ("idempotency.lease", IdempotencyBuilder::lease),
        (
            "idempotency.store_timeout",
            IdempotencyBuilder::store_timeout,
        ),
        ("idempotency.retry_after", IdempotencyBuilder::retry_after),
    ];
    for (path, set) in settings {
        if let Some(duration) = view.duration(path) {
            builder = set(builder, duration);
        }
    }
    builder
}

fn size(view: &View, path: &str) -> Option<usize> {
    view.count_u32(path).map(|count| count as usize)
}
