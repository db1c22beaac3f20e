//! Who calls whom, for whatever draws it.

use std::collections::{BTreeMap, BTreeSet};

use mamparo::policy::Outline;

use super::service::Service;

/// Services and dependencies, and an arrow for each call.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    pub(super) arrows: Vec<Arrow>,
    /// As many calls are not in it.
    pub(super) left_out: usize,
    by_name: BTreeMap<String, usize>,
}

/// A service, or a dependency that is none of those that were read.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) is_service: bool,
}

/// A service calls a dependency.
#[derive(Debug)]
pub(super) struct Arrow {
    pub(super) from: usize,
    pub(super) to: usize,
    /// `4 attempts × 2 by linkerd`
    pub(super) attempts: String,
    /// `8s`, or `no deadline`
    pub(super) deadline: String,
    /// Whether anybody sends again on it.
    pub(super) sends_again: bool,
}

impl Graph {
    /// Takes up to so many calls, and their ends in the order in which they are met.
    pub(super) fn of(services: &[Service], most: usize) -> Self {
        let mut graph = Self::default();
        for service in services {
            for outline in service.calls() {
                if graph.arrows.len() >= most {
                    graph.left_out += 1;
                    continue;
                }
                let (from, to) = (graph.node(&service.name), graph.node(outline.name()));
                graph.arrows.push(arrow(from, to, service, outline));
            }
        }
        let names: BTreeSet<_> = services.iter().map(|service| &service.name).collect();
        for node in &mut graph.nodes {
            node.is_service = names.contains(&node.name);
        }
        graph
    }

    fn node(&mut self, name: &str) -> usize {
        if let Some(there) = self.by_name.get(name) {
            return *there;
        }
        let next = self.nodes.len();
        self.by_name.insert(name.to_owned(), next);
        self.nodes.push(Node {
            name: name.to_owned(),
            is_service: false,
        });
        next
    }
}

fn arrow(from: usize, to: usize, service: &Service, outline: &Outline) -> Arrow {
    let plan = outline.plan();
    let external = service
        .external(outline.name())
        .filter(|(_, attempts)| *attempts > 1);
    let by: String = external
        .map(|(name, attempts)| format!(" × {attempts} by {name}"))
        .collect();
    let plural = if plan.attempts() == 1 { "" } else { "s" };
    Arrow {
        from,
        to,
        sends_again: plan.attempts() > 1 || !by.is_empty(),
        attempts: format!("{} attempt{plural}{by}", plan.attempts()),
        deadline: plan
            .deadline()
            .map_or_else(|| "no deadline".to_owned(), |it| format!("{it:?}")),
    }
}
