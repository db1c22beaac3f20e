//! Who calls whom, as a flow chart in Mermaid's language.

use std::collections::BTreeMap;

use mamparo::policy::Policy;

use super::service::Service;

/// The flow chart: an arrow for each dependency, with its attempts and its deadline.
pub(super) fn mermaid(services: &[Service]) -> String {
    let mut nodes = Nodes::default();
    let mut arrows = String::new();
    for service in services {
        let from = nodes.of(&service.name);
        for (name, policy) in service.calls() {
            let to = nodes.of(name);
            let label = label(service, name, policy);
            arrows.push_str(&format!("  n{from} -->|\"{label}\"| n{to}\n"));
        }
    }
    let mut named: Vec<_> = nodes.0.into_iter().collect();
    named.sort_by_key(|(_, number)| *number);
    let nodes = named
        .iter()
        .map(|(name, number)| format!("  n{number}[\"{}\"]\n", escaped(name)));
    format!("flowchart LR\n{}{arrows}", nodes.collect::<String>())
}

/// Names may hold what Mermaid's identifiers may not: each has a number.
#[derive(Debug, Default)]
struct Nodes(BTreeMap<String, usize>);

impl Nodes {
    fn of(&mut self, name: &str) -> usize {
        let next = self.0.len();
        *self.0.entry(name.to_owned()).or_insert(next)
    }
}

fn label(service: &Service, dependency: &str, policy: &Policy) -> String {
    let plan = policy.plan();
    let external = service
        .external(dependency)
        .filter(|(_, attempts)| *attempts > 1);
    let external: String = external
        .map(|(name, attempts)| format!(" × {attempts} by {}", escaped(name)))
        .collect();
    let deadline = plan
        .deadline()
        .map_or_else(|| "no deadline".to_owned(), |it| format!("{it:?}"));
    let plural = if plan.attempts() == 1 { "" } else { "s" };
    format!("{} attempt{plural}{external}, {deadline}", plan.attempts())
}

fn escaped(name: &str) -> String {
    name.replace('&', "&amp;")
        .replace('"', "&quot;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
