//! Two sorted lists side by side. Pure.

use std::cmp::Ordering;
use std::fmt::{self, Display};
use std::iter::Peekable;

/// What one source says about one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "sources make it")]
pub struct Entry {
    /// What it is about, such as an order's id.
    pub key: String,
    /// What must be the same in both sources, such as a state and an amount.
    pub value: String,
}

impl Entry {
    /// Makes an entry.
    pub fn new(key: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            value: value.into(),
        }
    }
}

/// What two sources say that should say the same.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Discrepancy {
    /// What it is about.
    pub key: String,
    /// What the one says, if it knows it.
    pub left: Option<String>,
    /// What the other says, if it knows it.
    pub right: Option<String>,
}

impl Display for Discrepancy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = |side: &Option<String>| side.clone().unwrap_or_else(|| "nothing".to_owned());
        let (left, right) = (said(&self.left), said(&self.right));
        write!(f, "{}: {left} here, {right} there", self.key)
    }
}

/// Goes through both, each in the order of its keys.
pub(super) struct Comparison<L: Iterator<Item = Entry>, R: Iterator<Item = Entry>> {
    left: Peekable<L>,
    right: Peekable<R>,
}

impl<L: Iterator<Item = Entry>, R: Iterator<Item = Entry>> Comparison<L, R> {
    pub(super) fn new(left: L, right: R) -> Self {
        Self {
            left: left.peekable(),
            right: right.peekable(),
        }
    }
}

impl<L: Iterator<Item = Entry>, R: Iterator<Item = Entry>> Iterator for Comparison<L, R> {
    type Item = Discrepancy;

    fn next(&mut self) -> Option<Discrepancy> {
        loop {
            let order = match (self.left.peek(), self.right.peek()) {
                (None, None) => return None,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(left), Some(right)) => left.key.cmp(&right.key),
            };
            let left = if order.is_le() {
                self.left.next()
            } else {
                None
            };
            let right = if order.is_ge() {
                self.right.next()
            } else {
                None
            };
            let key = left.as_ref().or(right.as_ref())?.key.clone();
            let (left, right) = (left.map(|left| left.value), right.map(|right| right.value));
            if left != right {
                return Some(Discrepancy { key, left, right });
            }
        }
    }
}
