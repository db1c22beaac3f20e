//! A table held against the list of settings: unknown keys, wrong kinds, values out of bounds.

use super::field::{Field, Kind, duration};
use crate::policy::Problem;
use crate::policy::tree::{Node, Table, Value};

/// As near to a key must a known one be to be suggested, from 0 to 1.
const SUGGESTED: f64 = 0.7;

/// Adds what is wrong with a table; `path` is where it stands.
pub(in crate::policy) fn checked(
    table: &Table,
    fields: &'static [Field],
    path: &str,
    problems: &mut Vec<Problem>,
) {
    for (key, node) in table.iter() {
        let path = join(path, key);
        match fields.iter().find(|field| field.name == key) {
            Some(field) => value(node, field, &path, problems),
            None => problems.push(unknown(node, key, &path, fields)),
        }
    }
}

pub(in crate::policy) fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        return key.to_owned();
    }
    format!("{path}.{key}")
}

#[cold]
fn unknown(node: &Node, key: &str, path: &str, fields: &[Field]) -> Problem {
    let names = fields.iter().map(|field| field.name);
    let near = |name: &&str| strsim::jaro_winkler(name, key) >= SUGGESTED;
    let likely = names.clone().filter(near);
    let likeness = |name: &&str| strsim::jaro_winkler(name, key);
    let best = likely.max_by(|one, other| likeness(one).total_cmp(&likeness(other)));
    let remedy = match best {
        Some(name) => format!("did you mean {name:?}?"),
        None => format!("it may be one of {}", names.collect::<Vec<_>>().join(", ")),
    };
    Problem::error(
        "unknown-key",
        &node.origin,
        path,
        "there is no such setting",
        remedy,
    )
}

fn value(node: &Node, field: &'static Field, path: &str, problems: &mut Vec<Problem>) {
    let inside = match &field.kind {
        Kind::Table(fields) | Kind::Switch(_, fields) => *fields,
        _ => &[],
    };
    match &node.value {
        Value::Table(table) if !inside.is_empty() => checked(table, inside, path, problems),
        value if fits(value, &field.kind) => {}
        value => {
            let message = format!(
                "{value} is {}, and should be {}",
                value.what(),
                field.kind.wants()
            );
            let remedy = format!("{} The default is {}.", field.says, field.default);
            problems.push(Problem::error(
                "bad-value",
                &node.origin,
                path,
                message,
                remedy,
            ));
        }
    }
}

fn fits(value: &Value, kind: &Kind) -> bool {
    match (kind, value) {
        (Kind::Duration, Value::Text(text)) => duration(text).is_some(),
        (Kind::Limit(none), Value::Text(text)) => text == none || duration(text).is_some(),
        (Kind::Count(least, most), Value::Integer(number)) => (least..=most).contains(&number),
        (Kind::Number(least, most), Value::Float(number)) => (least..=most).contains(&number),
        (Kind::Number(least, most), Value::Integer(number)) => {
            (*least..=*most).contains(&(*number as f64))
        }
        (Kind::Flag, Value::Bool(_)) | (Kind::Text, Value::Text(_)) => true,
        (Kind::Choice(words) | Kind::Switch(words, _), Value::Text(text)) => {
            words.contains(&text.as_str())
        }
        (Kind::Texts, Value::List(items)) => items
            .iter()
            .all(|item| matches!(item.value, Value::Text(_))),
        (Kind::Statuses, Value::List(items)) => items.iter().all(
            |item| matches!(item.value, Value::Integer(status) if (400..600).contains(&status)),
        ),
        _ => false,
    }
}
