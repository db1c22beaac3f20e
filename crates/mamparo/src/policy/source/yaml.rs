//! YAML, and JSON, which is YAML too: with the line of each value.

use std::collections::HashSet;
use std::sync::Arc;

use saphyr::{LoadableYamlNode, MarkedYaml, Scalar, YamlData};

use crate::policy::tree::{At, Node, Table, Value};
use crate::policy::{Problem, schema};

/// Reads a document.
pub(super) fn parse(name: &Arc<str>, document: &str) -> Result<Table, Box<Problem>> {
    let first = At::file(name);
    let refuse = |line: usize, message: String| {
        let remedy =
            "mend the line; every key stands once, and the indentation says what belongs together";
        Box::new(Problem::error(
            "not-yaml",
            &first.line(line).origin(),
            "",
            message,
            remedy,
        ))
    };
    let documents = MarkedYaml::load_from_str(document).map_err(|error| {
        let line = error.marker().line();
        refuse(
            line,
            format!("this is neither YAML nor JSON: {}", error.info()),
        )
    })?;
    let root = match documents.as_slice() {
        [] => return Ok(Table::default()),
        [root] => node(&first, root).map_err(|(line, message)| refuse(line, message))?,
        [_, second, ..] => {
            let message = "a second document begins: one file is one document".to_owned();
            return Err(refuse(second.span.start.line(), message));
        }
    };
    match root.value {
        Value::Table(table) => Ok(table),
        other => Err(refuse(
            1,
            format!("the file is {}, and should be a table", other.what()),
        )),
    }
}

fn node(first: &At, yaml: &MarkedYaml<'_>) -> Result<Node, (usize, String)> {
    let line = yaml.span.start.line();
    let value = match &yaml.data {
        YamlData::Value(scalar) => value(scalar),
        YamlData::Sequence(items) => {
            let items = items.iter().map(|item| node(first, item));
            Value::List(items.collect::<Result<_, _>>()?)
        }
        YamlData::Mapping(entries) => {
            let (mut table, mut seen) = (Table::with_room(entries.len()), HashSet::new());
            for (key, value) in entries {
                let line = key.span.start.line();
                let YamlData::Value(Scalar::String(key)) = &key.data else {
                    return Err((line, "a key is no text".to_owned()));
                };
                if !seen.insert(key.as_ref()) {
                    return Err((line, format!("the key {key:?} stands twice")));
                }
                let mut value = node(first, value)?;
                value.at = first.line(line);
                table.add(schema::name(key), value);
            }
            Value::Table(table)
        }
        _ => {
            return Err((
                line,
                "an alias, a tag or a broken value: write the value itself".to_owned(),
            ));
        }
    };
    Ok(Node {
        value,
        at: first.line(line),
    })
}

fn value(scalar: &Scalar<'_>) -> Value {
    match scalar {
        Scalar::Null => Value::Table(Table::default()),
        Scalar::Boolean(flag) => Value::Bool(*flag),
        Scalar::Integer(number) => Value::Integer(*number),
        Scalar::FloatingPoint(number) => Value::Float((*number).into()),
        Scalar::String(text) => Value::Text(text.to_string()),
    }
}
