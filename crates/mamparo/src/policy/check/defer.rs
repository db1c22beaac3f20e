//! The rules about the defer plane: its engine refuses what they refuse, and would not start.

use std::fmt::Display;
use std::time::Duration;

use crate::policy::Problem;
use crate::policy::tree::Node;
use crate::policy::view::View;

const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_secs(365 * 86_400);

/// As many statuses, or values, may be listed.
const MAX_LISTED: usize = 100;

const WAITS: &[&str] = &["defer.wait", "defer.technical_wait", "defer.postponed_wait"];
const STATUSES: (&str, &str) = ("defer.refused", "defer.declined");
const VALUES: (&str, &str) = ("defer.refused_values", "defer.declined_values");

/// Adds what contradicts itself in `defer`, and what has no effect.
pub(super) fn deferred_requests_come_back(view: &View, problems: &mut Vec<Problem>) {
    if !view.is_on("defer", false) {
        return;
    }
    problems.extend(
        WAITS
            .iter()
            .filter_map(|wait| cap_is_not_below_base(view, wait)),
    );
    problems.extend(durations(view).filter_map(|path| is_in_bounds(view, &path)));
    let lists = [STATUSES.0, STATUSES.1, VALUES.0, VALUES.1];
    problems.extend(lists.iter().filter_map(|path| list_is_short(view, path)));
    problems.extend(
        [STATUSES, VALUES]
            .iter()
            .filter_map(|pair| one_meaning(view, *pair)),
    );
    problems.extend(values_have_a_field(view));
    problems.extend(engine_sends_http(view));
}

/// A cap or a base that nobody wrote gives way to the other.
fn cap_is_not_below_base(view: &View, wait: &str) -> Option<Problem> {
    let (base_path, cap_path) = (format!("{wait}.base"), format!("{wait}.cap"));
    let (base, cap) = (view.duration(&base_path)?, view.duration(&cap_path)?);
    if cap >= base {
        return None;
    }
    let written = |path| view.text(path).unwrap_or_default();
    let (base, cap) = (written(&base_path), written(&cap_path));
    let message = format!("the longest wait is {cap:?}, and the first one is {base:?} already");
    let remedy = format!(
        "write at least {base:?}, or shorten {base_path} ({})",
        view.origin(&base_path)
    );
    Some(error(view, "cap-below-base", &cap_path, message, remedy))
}

fn durations(view: &View) -> impl Iterator<Item = String> {
    let of = |wait: &&str| [format!("{wait}.base"), format!("{wait}.cap")];
    let waits: Vec<_> = WAITS.iter().flat_map(of).collect();
    let all = waits.into_iter().chain(["defer.give_up_after".to_owned()]);
    all.filter(|path| view.is_written(path))
}

fn is_in_bounds(view: &View, path: &str) -> Option<Problem> {
    let time = view.duration(path)?;
    if (SHORTEST..=LONGEST).contains(&time) {
        return None;
    }
    let message = format!("{:?} is out of bounds", view.text(path).unwrap_or_default());
    let remedy = r#"write at least "1ms", and at most "365d""#;
    Some(error(view, "bad-value", path, message, remedy))
}

fn list_is_short(view: &View, path: &str) -> Option<Problem> {
    let many = view.list(path).len();
    let message = format!("{many} are listed");
    let remedy = format!("list at most {MAX_LISTED}");
    (many > MAX_LISTED).then(|| error(view, "bad-value", path, message, remedy))
}

fn one_meaning(view: &View, (refused, declined): (&str, &str)) -> Option<Problem> {
    let listed = view.list(refused);
    let is_both = |node: &&Node| {
        listed
            .iter()
            .any(|other| other.value.to_string() == node.value.to_string())
    };
    let both = view.list(declined).iter().find(is_both)?;
    let message = format!(
        "{} would mean \"never\", and \"not now\" by {refused} ({})",
        both.value,
        view.origin(refused)
    );
    let remedy = "leave it out of one of them";
    Some(error(view, "two-meanings", declined, message, remedy))
}

fn values_have_a_field(view: &View) -> Option<Problem> {
    let is_listed = |path: &&str| !view.list(path).is_empty();
    let path = [VALUES.0, VALUES.1].into_iter().find(is_listed);
    match (path, view.is_written("defer.field")) {
        (Some(path), false) => Some(error(
            view,
            "missing-value",
            path,
            "it does not say which field of an answer has these values",
            r#"write field = "status", or whatever the field's name is in the answer's JSON"#,
        )),
        (None, true) => Some(no_effect(
            view,
            "defer.field",
            "no value of it means anything: only the status is judged",
            "list refused_values or declined_values, or leave it out",
        )),
        _ => None,
    }
}

fn engine_sends_http(view: &View) -> Option<Problem> {
    (view.text("protocol") == Some("grpc")).then(|| {
        no_effect(
            view,
            "defer",
            "the engine sends HTTP, and this dependency speaks gRPC: nothing of it is sent again",
            "leave it out",
        )
    })
}

fn error(
    view: &View,
    code: &'static str,
    path: &str,
    message: impl Display,
    remedy: impl Display,
) -> Problem {
    let (message, remedy) = (message.to_string(), remedy.to_string());
    Problem::error(code, &view.origin(path), view.path(path), message, remedy)
}

fn no_effect(view: &View, path: &str, message: &str, remedy: &str) -> Problem {
    Problem::warning(
        "no-effect",
        &view.origin(path),
        view.path(path),
        message,
        remedy,
    )
}
