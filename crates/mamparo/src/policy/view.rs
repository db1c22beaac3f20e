//! The settings of one dependency, read from its table once that was checked.

use std::time::Duration;

use http::StatusCode;

use super::Origin;
use super::schema::{DEPENDENCY, Field, Kind, duration};
use super::tree::{Node, Table, Value};

/// One dependency's settings, after profile and environment were laid together.
#[derive(Clone, Debug)]
pub(super) struct View {
    pub(super) name: String,
    pub(super) table: Table,
    /// Where the dependency's own table begins.
    pub(super) origin: Origin,
    /// Whether each setting is known and of its kind.
    pub(super) is_read: bool,
}

impl View {
    /// Where a setting was written; the default if it was not.
    pub(super) fn origin(&self, path: &str) -> Origin {
        let node = self.table.at(path);
        node.map_or(Origin::Default, Node::origin)
    }

    /// The setting's full name.
    pub(super) fn path(&self, path: &str) -> String {
        format!("dependency.{}.{path}", self.name)
    }

    /// Tells whether somebody wrote the setting.
    pub(super) fn is_written(&self, path: &str) -> bool {
        self.table.at(path).is_some()
    }

    pub(super) fn text(&self, path: &str) -> Option<&str> {
        match &self.table.at(path)?.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A duration; none where it was not written, or is a word that says that there is no limit.
    pub(super) fn duration(&self, path: &str) -> Option<Duration> {
        self.text(path).and_then(duration)
    }

    /// A duration, or else its default.
    pub(super) fn duration_or(&self, path: &str, default: Duration) -> Duration {
        self.duration(path).unwrap_or(default)
    }

    /// A limit: its default where it was not written, and none where a word says that there is none.
    pub(super) fn limit_or(&self, path: &str, default: Duration) -> Option<Duration> {
        match self.text(path) {
            None => Some(default),
            Some(text) => duration(text),
        }
    }

    pub(super) fn number(&self, path: &str) -> Option<f64> {
        match self.table.at(path)?.value {
            Value::Float(number) => Some(number),
            Value::Integer(number) => Some(number as f64),
            _ => None,
        }
    }

    pub(super) fn count(&self, path: &str) -> Option<i64> {
        match self.table.at(path)?.value {
            Value::Integer(number) => Some(number),
            _ => None,
        }
    }

    pub(super) fn count_u32(&self, path: &str) -> Option<u32> {
        self.table.at(path)?.count()
    }

    pub(super) fn flag(&self, path: &str) -> Option<bool> {
        match self.table.at(path)?.value {
            Value::Bool(flag) => Some(flag),
            _ => None,
        }
    }

    pub(super) fn list(&self, path: &str) -> &[Node] {
        match self.table.at(path).map(|node| &node.value) {
            Some(Value::List(items)) => items,
            _ => &[],
        }
    }

    /// The texts of a list.
    pub(super) fn texts(&self, path: &str) -> impl Iterator<Item = &str> {
        self.list(path).iter().filter_map(|node| match &node.value {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// The statuses of a list.
    pub(super) fn statuses(&self, path: &str) -> impl Iterator<Item = StatusCode> {
        self.list(path).iter().filter_map(|node| match node.value {
            Value::Integer(status) => StatusCode::from_u16(status.try_into().ok()?).ok(),
            _ => None,
        })
    }

    /// Tells whether a part is on; `default` is what holds where nobody wrote it.
    pub(super) fn is_on(&self, part: &str, default: bool) -> bool {
        match self.table.at(part).map(|node| &node.value) {
            None => default,
            Some(Value::Text(word)) => word != "off",
            Some(_) => true,
        }
    }

    /// All settings with the value that holds and where it comes from, in the order of the stack.
    pub(super) fn effective(&self) -> Vec<Effective> {
        self.effective_of(DEPENDENCY)
    }

    pub(super) fn effective_of(&self, fields: &[Field]) -> Vec<Effective> {
        let mut all = Vec::new();
        collect(self, fields, "", &mut all);
        all
    }
}

/// A setting, the value that holds, and where that comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Effective {
    /// The setting: `retry.max_attempts`.
    pub path: String,
    /// Its value, as it would be written.
    pub value: String,
    /// Where that was written.
    pub origin: Origin,
}

fn collect(view: &View, fields: &[Field], prefix: &str, all: &mut Vec<Effective>) {
    for field in fields {
        let path = super::schema::join(prefix, field.name);
        // The hedge owns the resends, unless somebody wrote otherwise, which is refused.
        if path == "retry" && view.is_on("hedge", false) {
            let value = view.text("retry").unwrap_or("off").to_owned();
            let origin = view.origin("retry");
            all.push(Effective {
                path,
                value,
                origin,
            });
            continue;
        }
        let node = view.table.at(&path);
        let inside = match &field.kind {
            Kind::Table(fields) | Kind::Switch(_, fields) => Some(*fields),
            _ => None,
        };
        let word = matches!(
            node,
            Some(Node {
                value: Value::Text(_),
                ..
            })
        );
        match inside {
            Some(inside) if !word && (node.is_some() || field.default == "on") => {
                collect(view, inside, &path, all);
            }
            _ => all.push(Effective {
                path,
                value: node.map_or_else(|| field.default.to_owned(), |node| node.value.to_string()),
                origin: node.map_or(Origin::Default, Node::origin),
            }),
        }
    }
}
