//! What there can be in a plan.

use serde::Serialize;
use serde_json::Value;

/// A table of DynamoDB, billed by request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Table {
    /// Its name, without the prefix: what templates call it.
    pub id: &'static str,
    /// Its name.
    pub name: String,
    /// What it holds.
    pub holds: &'static str,
    /// What its items are found by.
    pub key: Key,
    /// What else they are found by.
    pub indexes: Vec<Index>,
    /// The attribute by which the service forgets an item, in seconds since 1970.
    pub expires: Option<&'static str>,
}

/// What items are found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Key {
    /// What spreads them.
    pub partition: Attribute,
    /// What orders them.
    pub sort: Option<Attribute>,
}

/// An attribute of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub struct Attribute {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
}

/// What an attribute of a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Kind {
    /// Text.
    Text,
    /// A number.
    Number,
}

/// A global secondary index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Index {
    /// Its name.
    pub name: &'static str,
    /// What its items are found by.
    pub key: Key,
    /// What it holds of them besides.
    pub includes: &'static [&'static str],
}

/// A standard queue of SQS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Queue {
    /// Its name, without the prefix: what templates call it.
    pub id: &'static str,
    /// Its name.
    pub name: String,
    /// What it holds.
    pub holds: &'static str,
    /// How long a message is kept, in seconds.
    pub retention: u32,
    /// How long a message that was taken is nobody else's, in seconds, unless its taker says otherwise.
    pub visibility: u32,
    /// How long a take waits for a message, in seconds, unless it says otherwise.
    pub wait: u32,
    /// Where a message goes that was taken too often.
    pub dead_letters: Option<DeadLetters>,
    /// Only the engine and the scheduler may send to it.
    pub guarded: bool,
}

/// Where a message goes that was taken too often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DeadLetters {
    /// The queue, without the prefix.
    pub id: &'static str,
    /// The queue.
    pub name: String,
    /// It goes there instead of being delivered more often than this.
    pub max_receive_count: u32,
}

/// A group of schedules of EventBridge Scheduler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Group {
    /// Its name.
    pub name: String,
}

/// A role of IAM, with one policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Role {
    /// Its name, without the prefix: what templates call it.
    pub id: &'static str,
    /// Its name.
    pub name: String,
    /// Whose it is.
    pub of: &'static str,
    /// Who may become it.
    pub trust: Value,
    /// What it may do.
    pub policy: Value,
}

/// An alarm of CloudWatch.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Alarm {
    /// Its name, without the prefix: what templates call it.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What it means, and what to do.
    pub says: String,
    /// The metric's namespace.
    pub namespace: &'static str,
    /// The metric.
    pub metric: &'static str,
    /// What the metric is of.
    pub dimensions: Vec<(&'static str, String)>,
    /// What is made of a period's figures: Sum or Maximum.
    pub statistic: &'static str,
    /// Seconds that make one figure.
    pub period: u32,
    /// It fires when so many figures in a row are above the threshold.
    pub periods: u32,
    /// The threshold.
    pub above: u32,
}

impl Key {
    /// Makes a key of a partition only.
    #[must_use]
    pub const fn partition(partition: Attribute) -> Self {
        let sort = None;
        Self { partition, sort }
    }

    /// Orders by this attribute.
    #[must_use]
    pub const fn sort(mut self, sort: Attribute) -> Self {
        self.sort = Some(sort);
        self
    }

    /// Returns its attributes, the partition's first.
    pub fn attributes(self) -> impl Iterator<Item = Attribute> {
        std::iter::once(self.partition).chain(self.sort)
    }
}

impl Attribute {
    /// Makes one that is text.
    #[must_use]
    pub const fn text(name: &'static str) -> Self {
        let kind = Kind::Text;
        Self { name, kind }
    }

    /// Makes one that is a number.
    #[must_use]
    pub const fn number(name: &'static str) -> Self {
        let kind = Kind::Number;
        Self { name, kind }
    }
}

impl Kind {
    /// Returns what DynamoDB calls it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "S",
            Self::Number => "N",
        }
    }
}

impl Table {
    /// Returns the attributes of all its keys, each once, in order.
    #[must_use]
    pub fn attributes(&self) -> Vec<Attribute> {
        let keys = std::iter::once(self.key).chain(self.indexes.iter().map(|index| index.key));
        let mut attributes: Vec<_> = keys.flat_map(Key::attributes).collect();
        attributes.sort_unstable();
        attributes.dedup();
        attributes
    }
}
