//! A table held against the list of settings: unknown keys, wrong kinds, values out of bounds.

use super::field::{Field, Kind, duration};
use crate::policy::Problem;
use crate::policy::tree::{Node, Table, Value};

/// As near to a key must a known one be to be suggested, from 0 to 1.
const SUGGESTED: f64 = 0.8;

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
fn unknown(node: &Node, key: &str, path: &str, fields: &'static [Field]) -> Problem {
    let names = fields.iter().map(|field| field.name);
    let remedy = match nearest(key, names.clone()) {
        Some(name) => format!("did you mean {name:?}?"),
        None => format!("it may be one of {}", names.collect::<Vec<_>>().join(", ")),
    };
    Problem::error(
        "unknown-key",
        &node.origin(),
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
        value => problems.push(refused(value, field, node, path)),
    }
}

#[cold]
fn refused(value: &Value, field: &'static Field, node: &Node, path: &str) -> Problem {
    if let (Kind::Statuses, Value::List(items), "also_retry") = (&field.kind, value, field.name)
        && let Some(name) = items.iter().find_map(breaker)
    {
        return breaker_retried(name, node, path);
    }
    let wants = field.kind.wants();
    let message = match (&field.kind, value) {
        (Kind::Count(..), Value::Integer(_))
        | (Kind::Number(..), Value::Integer(_) | Value::Float(_)) => {
            format!("{value} is out of bounds, and should be {wants}")
        }
        (Kind::Statuses | Kind::Texts | Kind::Words(_), Value::List(_)) => {
            format!("{value} is no such list, and should be {wants}")
        }
        (Kind::Duration | Kind::Limit(_) | Kind::Choice(_) | Kind::Switch(..), Value::Text(_)) => {
            format!("{value} should be {wants}")
        }
        _ => format!("{value} is {}, and should be {wants}", value.what()),
    };
    let write = match instead(value, &field.kind) {
        _ if is_on(value, &field.kind) && field.default == "on" => {
            "leave it out, because it is on. ".to_owned()
        }
        Some(it) => format!("write {it}. "),
        None => String::new(),
    };
    let remedy = format!("{write}{} The default is {}.", field.says, field.default);
    Problem::error("bad-value", &node.origin(), path, message, remedy)
}

/// The name under which a list of what is sent again has the breaker's own rejection.
fn breaker(item: &Node) -> Option<&str> {
    let Value::Text(text) = &item.value else {
        return None;
    };
    let name = text.to_ascii_lowercase();
    let means = |word| name.contains(word);
    (means("breaker") || means("circuit") || means("callnotpermitted")).then_some(text)
}

#[cold]
fn breaker_retried(name: &str, node: &Node, path: &str) -> Problem {
    let message = format!(
        "{name:?} would send again what the breaker has just refused, and refuses until it is no longer open"
    );
    let remedy = "leave it out: a breaker's rejection ends the operation at once, and says when to come back. The list is of HTTP \
                  statuses such as [404, 409]";
    Problem::error(
        "breaker-rejection-retried",
        &node.origin(),
        path,
        message,
        remedy,
    )
}

/// Whether it says that a part is to be on, for which there is no word.
fn is_on(value: &Value, kind: &Kind) -> bool {
    let says = match value {
        Value::Bool(on) => *on,
        Value::Text(text) => ["on", "true", "yes"].contains(&text.as_str()),
        _ => false,
    };
    says && matches!(kind, Kind::Switch(..) | Kind::Table(_))
}

/// A table with its first setting.
fn example(fields: &[Field]) -> Option<String> {
    let field = fields.first()?;
    let value = match field.kind {
        Kind::Count(..) if field.default == "none" => "100".to_owned(),
        Kind::Duration | Kind::Choice(_) | Kind::Text => format!("{:?}", field.default),
        _ => field.default.to_owned(),
    };
    Some(format!("{{ {} = {value} }}, for example", field.name))
}

/// What was probably meant.
fn instead(value: &Value, kind: &Kind) -> Option<String> {
    match (kind, value) {
        (Kind::Duration | Kind::Limit(_), Value::Integer(number)) => Some(with_units(number)),
        (Kind::Duration | Kind::Limit(_), Value::Text(text)) => {
            text.parse::<u64>().ok().map(|number| with_units(&number))
        }
        (Kind::Number(0.0, 1.0), Value::Integer(percent @ 2..=100)) => {
            Some(format!("{}, which is {percent} %", *percent as f64 / 100.0))
        }
        (Kind::Number(..), Value::Text(text)) => text
            .parse::<f64>()
            .ok()
            .map(|number| format!("{number}, without quotes")),
        (Kind::Count(..), Value::Text(text)) => text
            .parse::<i64>()
            .ok()
            .map(|number| format!("{number}, without quotes")),
        (Kind::Flag, Value::Text(text)) => text
            .parse::<bool>()
            .ok()
            .map(|flag| format!("{flag}, without quotes")),
        (Kind::Words(words), Value::List(items)) => items.iter().find_map(|item| {
            let Value::Text(text) = &item.value else {
                return None;
            };
            let known = words.iter().copied();
            let other = known.clone().all(|word| word != text);
            let word = nearest(&text.to_ascii_uppercase(), known).filter(|_| other)?;
            Some(format!("{word:?} for {text:?}"))
        }),
        (Kind::Switch(_, fields), value) if is_on(value, kind) => example(fields),
        (Kind::Table(fields), _) => example(fields),
        (Kind::Texts, Value::Text(text)) => Some(format!("[{text:?}]")),
        (Kind::Switch(words, _), Value::Bool(false)) => {
            words.first().map(|word| format!("{word:?}"))
        }
        (Kind::Choice(words) | Kind::Switch(words, _), Value::Text(text)) => {
            nearest(text, words.iter().copied()).map(|word| format!("{word:?}"))
        }
        _ => None,
    }
}

fn with_units(number: &dyn std::fmt::Display) -> String {
    format!("\"{number}s\" or \"{number}ms\"")
}

/// The known word that one resembles most, if any does.
pub(in crate::policy) fn nearest(
    word: &str,
    known: impl Iterator<Item = &'static str>,
) -> Option<&'static str> {
    let alike = known.map(|name| (strsim::jaro_winkler(name, word), name));
    let likely = alike.filter(|(likeness, _)| *likeness >= SUGGESTED);
    likely
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, name)| name)
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
        (Kind::Words(words), Value::List(items)) => items
            .iter()
            .all(|item| matches!(&item.value, Value::Text(text) if words.contains(&text.as_str()))),
        (Kind::Statuses, Value::List(items)) => items.iter().all(
            |item| matches!(item.value, Value::Integer(status) if (400..600).contains(&status)),
        ),
        _ => false,
    }
}
