//! The rules about sending again: what it does to the dependency, and who else does it.

use std::time::Duration;

use http::Method;

use super::budget::Plan;
use crate::policy::build::{MAX_HINT, max_attempts};
use crate::policy::describe::millis;
use crate::policy::view::View;
use crate::policy::{Problem, Service};

/// Without a key nobody can tell a resend from a second order (RFC 9110 §9.2.2).
pub(super) fn an_unsafe_request_carries_a_key(view: &View) -> Option<Problem> {
    if max_attempts(view) == 1 || view.is_on("idempotency_key", false) {
        return None;
    }
    let (path, what) = match view.flag("hedge.idempotent_only") {
        Some(false) => ("hedge.idempotent_only", "any request".to_owned()),
        _ => ("retry.methods", unsafe_methods(view)?),
    };
    let message = format!(
        "{what} would be sent again without a key: the first may have taken effect though its answer was lost, and then it \
         takes effect twice"
    );
    let remedy = r#"write idempotency_key = "require", if the dependency tells a resend by its key, or leave the setting out"#;
    Some(Problem::error(
        "unsafe-resend",
        &view.origin(path),
        view.path(path),
        message,
        remedy,
    ))
}

/// Those of the listed methods that take effect as often as they are sent.
fn unsafe_methods(view: &View) -> Option<String> {
    let is_unsafe = |name: &&str| {
        let method = Method::from_bytes(name.as_bytes());
        method.is_ok_and(|method| !method.is_idempotent())
    };
    let names: Vec<_> = view.texts("retry.methods").filter(is_unsafe).collect();
    (!names.is_empty()).then(|| names.join(" and "))
}

/// The last resend must come while the dependency still knows the key of the first attempt.
pub(super) fn a_key_is_known_until_the_last_resend(view: &View) -> Option<Problem> {
    let path = "idempotency_key.retention";
    let retention = view.duration(path)?;
    if max_attempts(view) == 1 {
        return None;
    }
    let horizon = horizon(view);
    if horizon.is_some_and(|horizon| retention > horizon) {
        return None;
    }
    let kept = millis(retention);
    let (message, remedy) = match horizon {
        Some(horizon) => (
            format!(
                "the dependency forgets a key after {kept}, and an operation may send it again for up to {}: a resend after that \
                 takes effect a second time",
                millis(horizon)
            ),
            format!(
                "let the dependency keep keys for longer than {}, or shorten the deadline ({})",
                millis(horizon),
                view.origin("deadline")
            ),
        ),
        None => (
            format!(
                "the dependency forgets a key after {kept}, and an operation that has no deadline may send it again at any time"
            ),
            format!("write a deadline that is shorter than {kept}"),
        ),
    };
    Some(Problem::error(
        "retention-too-short",
        &view.origin(path),
        view.path(path),
        message,
        remedy,
    ))
}

/// For how long an operation may send its request again: until its deadline, or for as long as all attempts take with all
/// waits that a server may ask for. None where nothing bounds that.
fn horizon(view: &View) -> Option<Duration> {
    let plan = Plan::of(view);
    if plan.deadline().is_some() {
        return plan.deadline();
    }
    let hint = view.duration_or("retry.max_hint", MAX_HINT);
    let hints = hint.saturating_mul(plan.attempts().saturating_sub(1));
    Some(plan.potential()?.saturating_add(hints))
}

/// A breaker outside of the retry sees a failure only once no resend has mended it, and nothing of what is slow.
pub(super) fn a_breaker_sees_what_resends_mend(view: &View) -> Option<Problem> {
    let path = "breaker.observes";
    if view.text(path) != Some("operations")
        || max_attempts(view) == 1
        || view.is_written("breaker.slow_call")
    {
        return None;
    }
    let message = "the breaker counts only what fails for good: it stays closed while resends make up for failures, and while \
                   answers are merely slow";
    Some(Problem::warning(
        "breaker-sees-too-little",
        &view.origin(path),
        view.path(path),
        message,
        r#"write observes = "attempts", which is the default, or add slow_call: from which time on an answer counts as slow"#,
    ))
}

/// What judges HTTP's answers says nothing about gRPC's.
pub(super) fn statuses_and_methods_are_of_http(view: &View) -> Option<Problem> {
    let paths = ["retry.also_retry", "retry.never_retry", "retry.methods"];
    let path = paths.into_iter().find(|path| view.is_written(path))?;
    if view.text("protocol") != Some("grpc") {
        return None;
    }
    Some(Problem::warning(
        "no-effect",
        &view.origin(path),
        view.path(path),
        "it is about HTTP, and this dependency speaks gRPC: it changes nothing",
        "leave it out; a gRPC service config says per method which codes are sent again",
    ))
}

/// Adds a warning for each dependency that is sent again by its own policy and by something outside, or by two of those.
pub(in crate::policy) fn one_layer_retries(
    views: &[View],
    service: &Service,
    problems: &mut Vec<Problem>,
) {
    let retriers = &service.external_retriers;
    if retriers.iter().all(|retrier| retrier.attempts == 1) {
        return;
    }
    problems.extend(views.iter().filter_map(|view| two_layers(view, service)));
}

fn two_layers(view: &View, service: &Service) -> Option<Problem> {
    let own = max_attempts(view);
    let retriers = service.external_retriers.iter();
    let before: Vec<_> = retriers
        .filter(|retrier| retrier.attempts > 1 && retrier.is_before(&view.name))
        .collect();
    if before.len() + usize::from(own > 1) < 2 {
        return None;
    }
    let policy = (own > 1).then_some(("this policy", own));
    let others = before.iter().map(|it| (it.name.as_str(), it.attempts));
    let (who, attempts): (Vec<_>, Vec<_>) = policy.into_iter().chain(others).unzip();
    let calls = attempts.iter().fold(1, |calls: u64, attempts| {
        calls.saturating_mul((*attempts).into())
    });
    let attempts: Vec<_> = attempts.iter().map(u32::to_string).collect();
    let message = format!(
        "{} each send it again: at worst {} = {calls} calls for one operation",
        who.join(" and "),
        attempts.join(" × ")
    );
    let places: Vec<_> = before.iter().map(|it| it.origin.to_string()).collect();
    let off = if own > 1 {
        r#"write retry = "off" here, or "#
    } else {
        ""
    };
    let remedy = format!(
        "let one of them own the retry: {off}turn it off there and write attempts = 1 ({})",
        places.join(", ")
    );
    let path = if view.is_on("hedge", false) {
        "hedge.max_attempts"
    } else {
        "retry.max_attempts"
    };
    let origin = match view.is_written(path) {
        true => view.origin(path),
        false => view.origin.clone(),
    };
    Some(Problem::warning(
        "retries-in-two-layers",
        &origin,
        view.path(path),
        message,
        remedy,
    ))
}
