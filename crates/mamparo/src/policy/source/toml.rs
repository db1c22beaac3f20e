//! TOML, with the line of each value.

use std::sync::Arc;

use ::toml::Spanned;
use ::toml::de::{DeTable, DeValue};

use crate::policy::tree::{At, Node, Table, Value};
use crate::policy::{Problem, schema};

/// Reads a document.
pub(super) fn parse(name: &Arc<str>, document: &str) -> Result<Table, Box<Problem>> {
    let lines = Lines::of(name, document);
    match DeTable::parse(document) {
        Ok(table) => Ok(lines.table(table.get_ref())),
        Err(error) => {
            let at = error.span().map_or(0, |span| span.start);
            let message = error.message().trim().replace('\n', ", ");
            Err(Box::new(Problem::error(
                "not-toml",
                &lines.at(at).origin(),
                "",
                format!("this is no TOML: {message}"),
                "mend the line; every key stands once, and every text in quotes",
            )))
        }
    }
}

/// Where each line of a document begins.
struct Lines {
    first: At,
    begins: Vec<usize>,
}

impl Lines {
    fn of(name: &Arc<str>, document: &str) -> Self {
        let ends = document.match_indices('\n').map(|(at, _)| at + 1);
        Self {
            first: At::file(name),
            begins: std::iter::once(0).chain(ends).collect(),
        }
    }

    fn at(&self, offset: usize) -> At {
        let line = self.begins.partition_point(|begin| *begin <= offset);
        self.first.line(line)
    }

    fn table(&self, table: &DeTable<'_>) -> Table {
        let mut entries: Vec<_> = table.iter().collect();
        // In the order of the file, in which people look for what they are told.
        entries.sort_by_key(|(key, _)| key.span().start);
        let mut read = Table::with_room(entries.len());
        for (key, value) in entries {
            // TOML itself refuses a key that stands twice.
            read.add(
                schema::name(key.get_ref()),
                self.node(key.span().start, value),
            );
        }
        read
    }

    fn node(&self, begin: usize, value: &Spanned<DeValue<'_>>) -> Node {
        let value = match value.get_ref() {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Integer(number) => {
                let whole = i64::from_str_radix(number.as_str(), number.radix());
                whole.map_or_else(|_| Value::Float(f64::MAX), Value::Integer)
            }
            DeValue::Float(number) => Value::Float(number.as_str().parse().unwrap_or(f64::NAN)),
            DeValue::Boolean(flag) => Value::Bool(*flag),
            DeValue::Datetime(time) => Value::Text(time.to_string()),
            DeValue::Array(items) => {
                let items = items.iter();
                Value::List(
                    items
                        .map(|item| self.node(item.span().start, item))
                        .collect(),
                )
            }
            DeValue::Table(table) => Value::Table(self.table(table)),
        };
        Node {
            value,
            at: self.at(begin),
        }
    }
}
