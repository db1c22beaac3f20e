//! The service that the policies belong to: what it calls while it serves, and who else sends its requests again.

use super::schema::{EXTERNAL_RETRIER, SERVICE, checked, join};
use super::tree::{Node, Table, Value};
use super::{Origin, Problem};

/// The service whose policies these are, as the plan of a chain sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Service {
    /// Its name, if one was written.
    pub name: Option<String>,
    /// The dependencies that are called while a request is served; none was written where it is all of them.
    pub calls: Option<Vec<String>>,
    /// What sends its requests again outside of these policies.
    pub external_retriers: Vec<ExternalRetrier>,
}

/// Something that sends requests again outside of these policies: an SDK, a gateway, a mesh.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExternalRetrier {
    /// What it is.
    pub name: String,
    /// How many attempts it makes of each that it is given, the original included.
    pub attempts: u32,
    /// The dependencies that are called through it; none was written where it is all of them.
    pub calls: Option<Vec<String>>,
    /// Where it was written.
    pub origin: Origin,
}

impl ExternalRetrier {
    /// Tells whether a dependency is called through it.
    #[must_use]
    pub fn is_before(&self, dependency: &str) -> bool {
        names(self.calls.as_deref(), dependency)
    }
}

impl Service {
    /// Tells whether a dependency is called while a request is served.
    #[must_use]
    pub fn does_call(&self, dependency: &str) -> bool {
        names(self.calls.as_deref(), dependency)
    }

    /// Reads what all files say together; `known` are the dependencies that there are.
    pub(super) fn of(documents: &[Table], known: &[&str], problems: &mut Vec<Problem>) -> Self {
        let mut service = Self::default();
        for document in documents {
            if let Some(node) = document.get("service") {
                service.add(node, known, problems);
            }
            for node in retriers(document, problems) {
                let added = retrier(node, known, problems);
                service.external_retriers.extend(added);
            }
        }
        service
    }

    fn add(&mut self, node: &Node, known: &[&str], problems: &mut Vec<Problem>) {
        let Some(table) = node.table() else {
            problems.push(kind(node, "service", "[service]"));
            return;
        };
        checked(table, SERVICE, "service", problems);
        if let Some(name) = text(table, "name") {
            self.name = Some(name);
        }
        if let Some(calls) = calls(table, "service", known, problems) {
            self.calls = Some(calls);
        }
    }
}

fn names(calls: Option<&[String]>, dependency: &str) -> bool {
    calls.is_none_or(|calls| calls.iter().any(|name| name == dependency))
}

fn retriers<'a>(document: &'a Table, problems: &mut Vec<Problem>) -> &'a [Node] {
    match document.get("external_retrier") {
        None => &[],
        Some(Node {
            value: Value::List(items),
            ..
        }) => items,
        Some(node) => {
            let message = format!(
                "it is {}, and should be a list of tables",
                node.value.what()
            );
            let remedy = "write [[external_retrier]]; in YAML and JSON, a list";
            let path = "external_retrier";
            problems.push(Problem::error(
                "bad-value",
                &node.origin(),
                path,
                message,
                remedy,
            ));
            &[]
        }
    }
}

fn retrier(node: &Node, known: &[&str], problems: &mut Vec<Problem>) -> Option<ExternalRetrier> {
    let path = "external_retrier";
    let Some(table) = node.table() else {
        problems.push(kind(node, path, "[[external_retrier]]"));
        return None;
    };
    let before = problems.len();
    checked(table, EXTERNAL_RETRIER, path, problems);
    let calls = calls(table, path, known, problems);
    let attempts = match table.get("attempts") {
        Some(node) => node.count(),
        None if problems.len() == before => {
            let message = "it does not say how many attempts it makes";
            let remedy =
                "write attempts, the original included; 1 says that it sends nothing again";
            problems.push(Problem::error(
                "missing-value",
                &node.origin(),
                path,
                message,
                remedy,
            ));
            None
        }
        None => None,
    };
    Some(ExternalRetrier {
        name: text(table, "name").unwrap_or_else(|| "external".to_owned()),
        attempts: attempts?,
        calls,
        origin: node.origin(),
    })
}

fn text(table: &Table, key: &str) -> Option<String> {
    match &table.get(key)?.value {
        Value::Text(text) => Some(text.clone()),
        _ => None,
    }
}

/// The names of dependencies in a list; those that there are not are problems.
fn calls(
    table: &Table,
    path: &str,
    known: &[&str],
    problems: &mut Vec<Problem>,
) -> Option<Vec<String>> {
    let Value::List(items) = &table.get("calls")?.value else {
        return None;
    };
    let mut calls = Vec::new();
    for item in items {
        let Value::Text(name) = &item.value else {
            continue;
        };
        if !known.contains(&name.as_str()) {
            problems.push(no_dependency(item, &join(path, "calls"), name, known));
        }
        calls.push(name.clone());
    }
    Some(calls)
}

#[cold]
fn no_dependency(node: &Node, path: &str, name: &str, known: &[&str]) -> Problem {
    let remedy = match known.is_empty() {
        true => format!("write [dependency.{name}], or leave calls out"),
        false => format!("write [dependency.{name}], or one of {}", known.join(", ")),
    };
    let message = format!("there is no policy for the dependency {name:?}");
    Problem::error("unknown-dependency", &node.origin(), path, message, remedy)
}

#[cold]
fn kind(node: &Node, path: &str, write: &str) -> Problem {
    let message = format!("it is {}, and should be a table", node.value.what());
    let remedy = format!("write {write}");
    Problem::error("bad-value", &node.origin(), path, message, remedy)
}
