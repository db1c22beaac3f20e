//! Variables of the environment, laid over a dependency's or a profile's values.

use crate::policy::tree::{At, Node, Table, Value};

/// What a variable's name begins with, and what stands between its parts.
const PREFIX: &str = "MAMPARO__";
const BETWEEN: &str = "__";

/// Tells whether a variable is one of ours.
pub(in crate::policy) fn is_ours(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// Tells whether a variable is the server's own: no dependency can be set by the environment that is called `server`.
pub(in crate::policy) fn is_servers(name: &str) -> bool {
    name.starts_with("MAMPARO__SERVER__")
}

/// Tells whether one of our variables names a setting: a part for the dependency and at least one more, none of them empty.
pub(in crate::policy) fn names_a_setting(name: &str) -> bool {
    let path = name.strip_prefix(PREFIX).unwrap_or_default();
    path.split(BETWEEN).count() > 1 && path.split(BETWEEN).all(|part| !part.is_empty())
}

/// Lays the variables `MAMPARO__CATALOG__RETRY__MAX_ATTEMPTS` over the dependencies; returns those whose dependency is not there.
///
/// A dependency's name is matched without case, with `-` and `.` as `_`: no shell sets another one.
pub(in crate::policy) fn overlay(
    dependencies: &mut Table,
    variables: impl IntoIterator<Item = (String, String)>,
) -> Vec<String> {
    let mut unknown = Vec::new();
    let mut variables: Vec<_> = variables.into_iter().collect();
    variables.sort();
    for (name, text) in variables {
        let Some(path) = name.strip_prefix(PREFIX) else {
            continue;
        };
        let mut parts = path.split(BETWEEN);
        let dependency = parts.next().unwrap_or_default();
        let keys: Vec<String> = parts.map(str::to_ascii_lowercase).collect();
        let found = dependencies
            .iter()
            .find(|(known, _)| spelled(known) == dependency);
        let Some(known) = found.map(|(known, _)| known.to_owned()) else {
            unknown.push(name);
            continue;
        };
        let node = Node {
            value: parse(&text),
            at: At::environment(&name),
        };
        if let Some(Node {
            value: Value::Table(table),
            ..
        }) = dependencies.entry(&known)
        {
            let nested = nest(&keys, node);
            *table = nested.over(table);
        }
    }
    unknown
}

/// A dependency's name as a variable spells it.
fn spelled(name: &str) -> String {
    name.to_ascii_uppercase().replace(['-', '.'], "_")
}

fn nest(keys: &[String], node: Node) -> Table {
    let mut table = Table::default();
    match keys {
        [] => {}
        [key] => table.set(key, node),
        [key, rest @ ..] => {
            let at = node.at.clone();
            let value = Value::Table(nest(rest, node));
            table.set(key, Node { value, at });
        }
    }
    table
}

/// What a variable holds: a number or a flag where it reads as one, a list where it has commas in brackets, else a text.
fn parse(text: &str) -> Value {
    let text = text.trim();
    if let Some(inside) = text.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
        let items = inside.split(',').filter(|item| !item.trim().is_empty());
        let node = |item: &str| Node {
            value: parse(item),
            at: At::environment(""),
        };
        return Value::List(items.map(node).collect());
    }
    let unquoted = text.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
    if let Some(text) = unquoted {
        return Value::Text(text.to_owned());
    }
    if let Ok(number) = text.parse() {
        return Value::Integer(number);
    }
    match text {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        _ => match text.parse::<f64>() {
            Ok(number) if text.starts_with(|it: char| it.is_ascii_digit() || it == '.') => {
                Value::Float(number)
            }
            _ => Value::Text(text.to_owned()),
        },
    }
}
