//! A policy, as it is shown.

use std::fmt::Write;

use super::check::{Plan, Segment};
use super::view::View;

/// The layers in order, each value with its origin, and how the deadline is spent.
pub(super) fn describe(view: &View, stack: &str) -> String {
    let mut text = format!("{stack}\n");
    if let Some(spent) = spent(view) {
        text.push_str(&spent);
    }
    text.push_str("\nsettings:\n");
    for setting in view.effective() {
        // Writing to a string does not fail.
        let _infallible = writeln!(
            text,
            "  {} = {}  ({})",
            setting.path, setting.value, setting.origin
        );
    }
    text
}

/// The arithmetic of the deadline: `500 ms + 100 ms wait + 500 ms + 400 ms left = 1500 ms`.
fn spent(view: &View) -> Option<String> {
    let plan = Plan::of(view);
    let deadline = plan.deadline?;
    let parts: Vec<_> = plan
        .segments()?
        .into_iter()
        .map(|segment| match segment {
            Segment::Attempt(time) => format!("{time:?}"),
            Segment::Wait(time) => format!("{time:?} wait"),
            Segment::Left(time) => format!("{time:?} left"),
        })
        .collect();
    Some(format!(
        "at worst the deadline is spent as {} = {deadline:?}\n",
        parts.join(" + ")
    ))
}
