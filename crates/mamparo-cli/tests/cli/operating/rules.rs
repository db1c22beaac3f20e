//! The alert rules, and how they run sixty times as fast.

use std::fs;
use std::path::{Path, PathBuf};

/// Where operators find what is tested here.
pub(super) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operating")
}

pub(super) fn read(name: &str) -> String {
    let path = folder().join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The rules, with a second for each of their minutes.
pub(super) fn hurried(rules: &str) -> String {
    let mut hurried = String::new();
    let mut rest = rules;
    while let Some(digits) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, number) = rest.split_at(digits);
        let end = number
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(number.len());
        let (number, after) = number.split_at(end);
        hurried.push_str(before);
        let is_duration = ["[", "offset ", "for: "]
            .iter()
            .any(|it| before.ends_with(it));
        let unit = after.chars().next().filter(|_| is_duration);
        let seconds = match unit {
            Some('m') => Some(1),
            Some('h') => Some(60),
            _ => None,
        };
        match seconds {
            Some(seconds) => {
                let number: u32 = number.parse().unwrap();
                hurried.push_str(&format!("{}s", number * seconds));
                rest = &after[1..];
            }
            None => {
                hurried.push_str(number);
                rest = after;
            }
        }
    }
    hurried + rest
}

/// An alert, and where its annotation sends whoever is woken by it.
#[derive(Debug)]
pub(super) struct Alert<'a> {
    pub(super) name: &'a str,
    pub(super) runbook: &'a str,
}

/// The alerts of the rules, in their order.
pub(super) fn alerts(rules: &str) -> Vec<Alert<'_>> {
    let after =
        |key| move |line: &'_ str| -> Option<usize> { line.find(key).map(|at| at + str::len(key)) };
    let (name, runbook) = (after("- alert: "), after("runbook_url: "));
    let mut alerts: Vec<Alert<'_>> = Vec::new();
    for line in rules.lines() {
        if let Some(at) = name(line) {
            alerts.push(Alert {
                name: &line[at..],
                runbook: "",
            });
        } else if let (Some(at), Some(alert)) = (runbook(line), alerts.last_mut()) {
            alert.runbook = &line[at..];
        }
    }
    alerts
}

#[test]
fn a_minute_of_the_rules_passes_in_a_second_and_nothing_else_changes() {
    let rules = "record: x:rate5m\nexpr: rate(a[5m]) > 2 * avg_over_time(b_5m[1h] offset 10m) # 30m\nfor: 5m";
    let hurried = hurried(rules);
    assert_eq!(
        hurried,
        "record: x:rate5m\nexpr: rate(a[5s]) > 2 * avg_over_time(b_5m[60s] offset 10s) # 30m\nfor: 5s"
    );
}
