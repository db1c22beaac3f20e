//! A policy, as it is shown.

use std::fmt::Write;
use std::time::Duration;

use super::check::{Plan, Segment};
use super::view::{Effective, View};

/// Which settings a line of the stack is made of: those of these names, and those below them.
const LAYERS: &[(&str, &[&str])] = &[
    ("deadline", &["deadline", "reserve"]),
    ("load shedding", &["load_shed"]),
    ("idempotency key", &["idempotency_key"]),
    ("bulkhead", &["bulkhead"]),
    ("breaker, observing operations", &["breaker"]),
    ("retry", &["retry", "hedge", "budget"]),
    ("hedge", &["hedge", "retry", "budget"]),
    ("breaker, observing attempts", &["breaker"]),
    ("rate limit", &["rate_limit"]),
    (
        "attempt timeout",
        &[
            "retry.attempt_timeout",
            "hedge.attempt_timeout",
            "body_idle",
        ],
    ),
];

/// The layers in order, each value with its origin, and how the deadline is spent.
pub(super) fn describe(view: &View, stack: &str) -> String {
    let mut rest = view.effective();
    let mut text = String::new();
    for line in stack.lines() {
        if line.starts_with("at worst") {
            let deferred = rest.extract_if(.., |setting| setting.path.starts_with("defer"));
            let deferred: Vec<_> = deferred.collect();
            settings(&mut text, "  connection:", std::mem::take(&mut rest));
            if view.is_on("defer", false) {
                settings(&mut text, "  defer plane:", deferred);
            }
        }
        let of = of_layer(line, view, &mut rest);
        settings(&mut text, line, of);
    }
    if let Some(spent) = spent(view) {
        text.push_str(&spent);
    }
    text
}

/// Takes the settings of a line's layer out of those that are left.
fn of_layer(line: &str, view: &View, rest: &mut Vec<Effective>) -> Vec<Effective> {
    let name = line.trim_start().split(':').next().unwrap_or_default();
    let observed = view.text("breaker.observes").unwrap_or("attempts");
    if name.starts_with("breaker") && !name.ends_with(observed) {
        return Vec::new();
    }
    let layer = LAYERS.iter().find(|(layer, _)| *layer == name);
    let Some((_, paths)) = layer else {
        return Vec::new();
    };
    let is_below = |path: &str| {
        let below = |of: &&str| {
            path.strip_prefix(*of)
                .is_some_and(|it| it.is_empty() || it.starts_with('.'))
        };
        // The timeout stands with the owner of resends, and belongs to each attempt.
        let inner = path.ends_with(".attempt_timeout") && name != "attempt timeout";
        !inner && paths.iter().any(below)
    };
    rest.extract_if(.., |setting| is_below(&setting.path))
        .collect()
}

// Writing to a string does not fail.
fn settings(text: &mut String, line: &str, settings: Vec<Effective>) {
    let _infallible = writeln!(text, "{line}");
    for Effective {
        path,
        value,
        origin,
    } in settings
    {
        let _infallible = writeln!(text, "      {path} = {value}  ({origin})");
    }
}

/// The arithmetic of the deadline: `500 ms + 100 ms wait + 500 ms + 400 ms left = 1500 ms`.
fn spent(view: &View) -> Option<String> {
    let plan = Plan::of(view);
    let deadline = millis(plan.deadline()?);
    Some(format!(
        "at worst the deadline is spent as {} = {deadline}\n",
        plan.split()?
    ))
}

/// Milliseconds, as people add them up.
pub(super) fn millis(time: Duration) -> String {
    let millis = time.as_secs_f64() * 1000.0;
    format!("{millis} ms")
}

impl Plan {
    /// Returns how the deadline is spent, in words: `500 ms + 100 ms wait + 500 ms + 400 ms left`.
    ///
    /// None where [`segments`](Self::segments) are none.
    #[must_use]
    pub fn split(&self) -> Option<String> {
        let parts = self.segments()?.into_iter();
        let parts = parts.map(|segment| match segment {
            Segment::Attempt(time) => millis(time),
            Segment::Wait(time) => format!("{} wait", millis(time)),
            Segment::Left(time) => format!("{} left", millis(time)),
        });
        Some(parts.collect::<Vec<_>>().join(" + "))
    }

    /// Returns the sum that the deadline is held against: `4 × 1000 ms + 700 ms = 4700 ms`.
    ///
    /// None where [`potential`](Self::potential) is none.
    #[must_use]
    pub fn sum(&self) -> Option<String> {
        let (timeout, potential) = (self.attempt_timeout()?, self.potential()?);
        let waits = match self.waits() {
            Duration::ZERO => String::new(),
            waits => format!(" + {}", millis(waits)),
        };
        let attempts = self.attempts();
        Some(format!(
            "{attempts} × {}{waits} = {}",
            millis(timeout),
            millis(potential)
        ))
    }

    /// Returns how many attempts fit, in words: `1 attempt fits, no retry`.
    ///
    /// None where [`fitting`](Self::fitting) is none.
    #[must_use]
    pub fn fit(&self) -> Option<String> {
        Some(match self.fitting()? {
            0 | 1 if self.attempts() > 1 => "1 attempt fits, no retry".to_owned(),
            0 | 1 => "1 attempt fits".to_owned(),
            fit => format!("{fit} attempts fit"),
        })
    }
}
