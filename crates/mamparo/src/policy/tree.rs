//! A document as a tree, in which each value knows where it was written.

use std::fmt::{self, Display};
use std::sync::Arc;

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// A file's line, counted from 1; with the profile in which it stands, if it was inherited.
    File {
        /// The file, as it was named.
        file: Arc<str>,
        /// The line, counted from 1.
        line: u32,
        /// The profile that it was inherited from.
        profile: Option<Arc<str>>,
    },
    /// A variable of the environment.
    Environment(Arc<str>),
    /// Nobody wrote it.
    Default,
}

impl Origin {
    /// Tells whether somebody wrote the value.
    #[must_use]
    pub const fn is_written(&self) -> bool {
        !matches!(self, Self::Default)
    }
}

impl Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File {
                file,
                line,
                profile,
            } => {
                write!(f, "{file}:{line}")?;
                match profile {
                    Some(profile) => write!(f, " (profile {profile})"),
                    None => Ok(()),
                }
            }
            Self::Environment(name) => write!(f, "environment variable {name}"),
            Self::Default => f.write_str("default"),
        }
    }
}

/// A value, and where it was written.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) value: Value,
    pub(super) origin: Origin,
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    Text(String),
    Integer(i64),
    Float(f64),
    Bool(bool),
    List(Vec<Node>),
    Table(Table),
}

impl Value {
    /// Tells whether both say the same, wherever it was written.
    fn says_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(one), Self::Text(other)) => one == other,
            (Self::Integer(one), Self::Integer(other)) => one == other,
            (Self::Float(one), Self::Float(other)) => one == other,
            (Self::Bool(one), Self::Bool(other)) => one == other,
            (Self::List(one), Self::List(other)) => {
                let mut pairs = one.iter().zip(other);
                one.len() == other.len()
                    && pairs.all(|(one, other)| one.value.says_same(&other.value))
            }
            (Self::Table(one), Self::Table(other)) => one.says_same(other),
            _ => false,
        }
    }

    /// What it is, as a message names it.
    pub(super) const fn what(&self) -> &'static str {
        match self {
            Self::Text(_) => "a text",
            Self::Integer(_) => "a whole number",
            Self::Float(_) => "a number",
            Self::Bool(_) => "a boolean",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

/// The values of a table, in the order in which they were written.
#[derive(Clone, Debug, Default)]
pub(super) struct Table(Vec<(String, Node)>);

impl Table {
    /// Tells whether both say the same, wherever and in whatever order it was written.
    pub(super) fn says_same(&self, other: &Self) -> bool {
        let is_there = |(key, node): (&str, &Node)| {
            let there = other.get(key);
            there.is_some_and(|there| node.value.says_same(&there.value))
        };
        self.0.len() == other.0.len() && self.iter().all(is_there)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.0.iter().map(|(key, node)| (key.as_str(), node))
    }

    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        self.iter().find(|(name, _)| *name == key).map(|it| it.1)
    }

    /// Looks a value up by a path of keys.
    pub(super) fn at(&self, path: &str) -> Option<&Node> {
        let (key, rest) = match path.split_once('.') {
            Some((key, rest)) => (key, Some(rest)),
            None => (path, None),
        };
        match (self.get(key)?, rest) {
            (node, None) => Some(node),
            (node, Some(rest)) => node.table()?.at(rest),
        }
    }

    /// Adds a value; the one that stands there gives way.
    pub(super) fn set(&mut self, key: &str, node: Node) {
        match self.0.iter_mut().find(|(name, _)| name == key) {
            Some((_, there)) => *there = node,
            None => self.0.push((key.to_owned(), node)),
        }
    }

    /// Takes a value out.
    pub(super) fn remove(&mut self, key: &str) -> Option<Node> {
        let at = self.0.iter().position(|(name, _)| name == key)?;
        Some(self.0.remove(at).1)
    }

    pub(super) fn entry(&mut self, key: &str) -> Option<&mut Node> {
        let there = self.0.iter_mut().find(|(name, _)| name == key);
        there.map(|(_, node)| node)
    }

    /// Lays this table over another: where both have a value this one's holds, and tables are merged field by field.
    pub(super) fn over(self, below: Self) -> Self {
        let mut merged = below;
        for (key, node) in self.0 {
            let below = merged.remove(&key);
            merged.set(&key, node.over(below));
        }
        merged
    }

    /// Says of all values that they were inherited from a profile, unless they were inherited already.
    pub(super) fn inherited_from(&mut self, name: &Arc<str>) {
        for (_, node) in &mut self.0 {
            if let Origin::File { profile, .. } = &mut node.origin {
                profile.get_or_insert_with(|| Arc::clone(name));
            }
            if let Value::Table(table) = &mut node.value {
                table.inherited_from(name);
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

impl Node {
    pub(super) const fn table(&self) -> Option<&Table> {
        match &self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    /// A whole number that is no less than zero.
    pub(super) fn count(&self) -> Option<u32> {
        match self.value {
            Value::Integer(number) => number.try_into().ok(),
            _ => None,
        }
    }

    fn over(self, below: Option<Self>) -> Self {
        match (self, below) {
            (
                Self {
                    value: Value::Table(table),
                    origin,
                },
                Some(Self {
                    value: Value::Table(below),
                    ..
                }),
            ) => Self {
                value: Value::Table(table.over(below)),
                origin,
            },
            (node, _) => node,
        }
    }
}

/// The value as it would be written.
impl Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Float(number) => write!(f, "{number}"),
            Self::Bool(flag) => write!(f, "{flag}"),
            Self::List(items) => {
                f.write_str("[")?;
                for (at, item) in items.iter().enumerate() {
                    let comma = if at > 0 { ", " } else { "" };
                    write!(f, "{comma}{}", item.value)?;
                }
                f.write_str("]")
            }
            Self::Table(_) => f.write_str("{ … }"),
        }
    }
}
