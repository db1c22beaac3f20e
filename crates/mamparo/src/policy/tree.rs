//! A document as a tree, in which each value knows where it was written.

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::sync::Arc;

use super::schema;

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
    pub(super) at: At,
}

/// Where a value was written, in few bytes: an [`Origin`] that is never the default.
#[derive(Clone, Debug)]
pub(super) struct At {
    place: Arc<Place>,
    line: u32,
}

#[derive(Debug)]
enum Place {
    File(Arc<str>, Option<Arc<str>>),
    Environment(Arc<str>),
}

impl At {
    /// The first line of a file.
    pub(super) fn file(name: &Arc<str>) -> Self {
        let place = Place::File(Arc::clone(name), None).into();
        Self { place, line: 1 }
    }

    pub(super) fn environment(name: &str) -> Self {
        let place = Place::Environment(name.into()).into();
        Self { place, line: 1 }
    }

    /// Another line of the same file.
    pub(super) fn line(&self, line: usize) -> Self {
        let place = Arc::clone(&self.place);
        let line = u32::try_from(line.max(1)).unwrap_or(u32::MAX);
        Self { place, line }
    }

    pub(super) fn origin(&self) -> Origin {
        match &*self.place {
            Place::Environment(name) => Origin::Environment(Arc::clone(name)),
            Place::File(file, profile) => Origin::File {
                file: Arc::clone(file),
                line: self.line,
                profile: profile.clone(),
            },
        }
    }

    /// It was inherited from a profile, unless it was inherited already.
    fn inherited_from(&mut self, name: &Arc<str>) {
        if let Place::File(file, None) = &*self.place {
            let place = Place::File(Arc::clone(file), Some(Arc::clone(name)));
            self.place = place.into();
        }
    }
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
///
/// A clone shares them until it is changed: what many dependencies have of one profile is kept once.
#[derive(Clone, Debug, Default)]
pub(super) struct Table(Arc<Vec<(Key, Node)>>);

/// The name of a setting is there already.
type Key = Cow<'static, str>;

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
        self.0.iter().map(|(key, node)| (key.as_ref(), node))
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
        match self.entry(key) {
            Some(there) => *there = node,
            None => self.add(schema::name(key), node),
        }
    }

    /// Adds a value of which it is known that none of that name stands there.
    pub(super) fn add(&mut self, key: Key, node: Node) {
        Arc::make_mut(&mut self.0).push((key, node));
    }

    /// Begins with room for so many values.
    pub(super) fn with_room(values: usize) -> Self {
        Self(Arc::new(Vec::with_capacity(values)))
    }

    /// The same without a value.
    pub(super) fn without(&self, key: &str) -> Self {
        let others = self.0.iter().filter(|(name, _)| name != key);
        Self(Arc::new(others.cloned().collect()))
    }

    pub(super) fn entry(&mut self, key: &str) -> Option<&mut Node> {
        let at = self.0.iter().position(|(name, _)| name == key)?;
        let all = Arc::make_mut(&mut self.0);
        all.get_mut(at).map(|(_, node)| node)
    }

    /// Lays this table over another: where both have a value this one's holds, and tables are merged field by field.
    pub(super) fn over(&self, below: &Self) -> Self {
        let beside = below.0.iter().filter(|(key, _)| self.get(key).is_none());
        let mut merged: Vec<_> = beside.cloned().collect();
        merged.reserve_exact(self.len());
        let own = self.0.iter();
        merged.extend(own.map(|(key, node)| (key.clone(), node.over(below.get(key)))));
        Self(Arc::new(merged))
    }

    /// Says of all values that they were inherited from a profile, unless they were inherited already.
    pub(super) fn inherited_from(&mut self, name: &Arc<str>) {
        for (_, node) in Arc::make_mut(&mut self.0) {
            node.at.inherited_from(name);
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
    pub(super) fn origin(&self) -> Origin {
        self.at.origin()
    }

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

    fn over(&self, below: Option<&Self>) -> Self {
        match (self.table(), below.and_then(Self::table)) {
            (Some(table), Some(below)) => Self {
                value: Value::Table(table.over(below)),
                at: self.at.clone(),
            },
            _ => self.clone(),
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
