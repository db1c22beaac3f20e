//! What is there, against what should be: pure.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{
    AttributeDefinition, GlobalSecondaryIndexDescription, KeySchemaElement, KeyType,
    TableDescription, TableStatus,
};
use aws_sdk_sqs::types::QueueAttributeName;
use serde::Serialize;
use serde_json::Value;

use super::contents::{LARGEST, Plan};
use super::place::Place;
use super::resource::{Index, Key, Queue, Table};

/// What was found of one resource: that it is as planned, or one way in which it is not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// What it is about, such as `table mamparo-transactions`.
    pub resource: String,
    /// How it stands with it.
    pub state: State,
    /// How it is, in words.
    pub says: String,
    /// What to do; nothing where it is as planned.
    pub remedy: String,
}

/// How it stands with a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum State {
    /// It is as planned.
    Good,
    /// It is not there.
    Missing,
    /// It is otherwise.
    Differs,
    /// It is something else's, and is not touched.
    Stranger,
    /// Nobody looked.
    Unseen,
}

/// What `apply` can mend.
pub(super) const APPLY: &str = "run `mamparo aws apply`";

impl Finding {
    pub(super) fn good(resource: String) -> Self {
        Self::new(resource, State::Good, "is as planned", "")
    }

    pub(super) fn missing(resource: String) -> Self {
        Self::new(resource, State::Missing, "is not there", APPLY)
    }

    pub(super) fn new(
        resource: String,
        state: State,
        says: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            resource,
            state,
            says: says.into(),
            remedy: remedy.into(),
        }
    }

    /// Tells whether something is to be done.
    #[must_use]
    pub const fn is_trouble(&self) -> bool {
        !matches!(self.state, State::Good | State::Unseen)
    }
}

/// Compares a table with what is there; `expires` is the attribute by which it forgets.
pub(super) fn of_table(
    table: &Table,
    seen: &TableDescription,
    expires: Option<&str>,
) -> Vec<Finding> {
    let resource = format!("table {}", table.name);
    let differs =
        |says: String, remedy: &str| Finding::new(resource.clone(), State::Differs, says, remedy);
    let kinds = seen.attribute_definitions();
    let (is, should) = (written(seen.key_schema(), kinds), spelled(table.key));
    if is != should {
        let says = format!("has the key {is}, not {should}: it is another program's");
        let remedy = "use another --prefix, or move that table away";
        return vec![Finding::new(resource, State::Stranger, says, remedy)];
    }
    let mut found = Vec::new();
    if seen.table_status() != Some(&TableStatus::Active) {
        let status = seen
            .table_status()
            .map_or("in no state", TableStatus::as_str);
        found.push(differs(
            format!("is {status}, not ACTIVE"),
            "wait, and check again",
        ));
    }
    for index in &table.indexes {
        if let Some(says) = index_differs(index, seen.global_secondary_indexes(), kinds) {
            let remedy = "make that index as the template of `mamparo aws plan --format cloudformation` has it";
            found.push(differs(says, remedy));
        }
    }
    if table.expires != expires {
        let says = match (table.expires, expires) {
            (Some(should), None) => format!("forgets nothing, though `{should}` says when"),
            (_, is) => format!(
                "forgets by `{}`, not by `{}`",
                is.unwrap_or(""),
                table.expires.unwrap_or("")
            ),
        };
        found.push(differs(says, APPLY));
    }
    or_good(found, resource)
}

fn index_differs(
    index: &Index,
    seen: &[GlobalSecondaryIndexDescription],
    kinds: &[AttributeDefinition],
) -> Option<String> {
    let name = index.name;
    let Some(seen) = seen.iter().find(|it| it.index_name() == Some(name)) else {
        return Some(format!("has no index {name}"));
    };
    let (is, should) = (written(seen.key_schema(), kinds), spelled(index.key));
    if is != should {
        return Some(format!("has an index {name} by {is}, not by {should}"));
    }
    let projection = seen.projection()?;
    let whole = projection
        .projection_type()
        .is_some_and(|it| it.as_str() == "ALL");
    let has = |name: &&&str| {
        projection
            .non_key_attributes()
            .iter()
            .any(|it| it == **name)
    };
    let lacks: Vec<_> = index
        .includes
        .iter()
        .filter(|it| !whole && !has(it))
        .copied()
        .collect();
    (!lacks.is_empty()).then(|| format!("has an index {name} without {}", lacks.join(", ")))
}

/// The key of a table that is there: `id (S), part (S)`.
fn written(schema: &[KeySchemaElement], kinds: &[AttributeDefinition]) -> String {
    let mut schema: Vec<_> = schema.iter().collect();
    schema.sort_by_key(|it| *it.key_type() != KeyType::Hash);
    let parts = schema.iter().map(|it| {
        let name = it.attribute_name();
        let kind = kinds.iter().find(|kind| kind.attribute_name() == name);
        let kind = kind.map_or("?", |kind| kind.attribute_type().as_str());
        format!("{name} ({kind})")
    });
    parts.collect::<Vec<_>>().join(", ")
}

/// The key of a table as planned.
fn spelled(key: Key) -> String {
    let parts = key.attributes();
    let parts = parts.map(|it| format!("{} ({})", it.name, it.kind.as_str()));
    parts.collect::<Vec<_>>().join(", ")
}

/// What a queue's attributes should be, for the service.
pub(super) fn attributes(
    plan: &Plan,
    place: &Place,
    queue: &Queue,
) -> HashMap<QueueAttributeName, String> {
    let mut all = HashMap::from([
        (QueueAttributeName::MaximumMessageSize, LARGEST.to_string()),
        (
            QueueAttributeName::MessageRetentionPeriod,
            queue.retention.to_string(),
        ),
        (
            QueueAttributeName::VisibilityTimeout,
            queue.visibility.to_string(),
        ),
        (
            QueueAttributeName::ReceiveMessageWaitTimeSeconds,
            queue.wait.to_string(),
        ),
    ]);
    if let Some(key) = plan.kms_key() {
        all.insert(QueueAttributeName::KmsMasterKeyId, key.to_owned());
        all.insert(QueueAttributeName::SqsManagedSseEnabled, false.to_string());
    }
    if let Some(dead) = &queue.dead_letters {
        let redrive = serde_json::json!({
            "deadLetterTargetArn": place.queue(&dead.name),
            "maxReceiveCount": dead.max_receive_count,
        });
        all.insert(QueueAttributeName::RedrivePolicy, redrive.to_string());
    }
    if queue.guarded {
        let policy = plan.guard(place, &queue.name);
        all.insert(QueueAttributeName::Policy, policy.to_string());
    }
    all
}

/// Returns what of these attributes is otherwise.
pub(super) fn otherwise(
    should: HashMap<QueueAttributeName, String>,
    is: &HashMap<QueueAttributeName, String>,
) -> HashMap<QueueAttributeName, String> {
    let differs = |(name, should): &(QueueAttributeName, String)| match is.get(name) {
        Some(is) => is != should && !same_json(is, should),
        None => true,
    };
    should.into_iter().filter(differs).collect()
}

/// Compares a queue with what is there.
pub(super) fn of_queue(
    queue: &Queue,
    should: HashMap<QueueAttributeName, String>,
    is: &HashMap<QueueAttributeName, String>,
) -> Vec<Finding> {
    let resource = format!("queue {}", queue.name);
    let mut differing: Vec<_> = otherwise(should, is).into_iter().collect();
    differing.sort();
    let found = differing.into_iter().map(|(name, should)| {
        let is = is.get(&name).filter(|is| !is.is_empty());
        let says = match (&name, is) {
            (QueueAttributeName::RedrivePolicy, None) => "has no dead letters".to_owned(),
            (QueueAttributeName::Policy, None) => {
                "takes messages from anyone in the account".to_owned()
            }
            (QueueAttributeName::Policy, Some(_)) => {
                "has another policy of who may send to it".to_owned()
            }
            (_, is) => format!(
                "has {name} {}, not {should}",
                is.map_or("unset", String::as_str)
            ),
        };
        Finding::new(resource.clone(), State::Differs, says, APPLY)
    });
    or_good(found.collect(), resource.clone())
}

fn or_good(mut found: Vec<Finding>, resource: String) -> Vec<Finding> {
    if found.is_empty() {
        found.push(Finding::good(resource));
    }
    found
}

/// The service gives a policy back in other words: `maxReceiveCount` as text, and one action alone for a list of one.
fn same_json(a: &str, b: &str) -> bool {
    let read = |text| serde_json::from_str::<Value>(text).ok().map(plainly);
    read(a).is_some_and(|a| Some(a) == read(b))
}

fn plainly(value: Value) -> Value {
    match value {
        Value::Number(number) => Value::String(number.to_string()),
        Value::Array(mut values) if values.len() == 1 => plainly(values.remove(0)),
        Value::Array(values) => values.into_iter().map(plainly).collect(),
        Value::Object(values) => {
            let values = values.into_iter().map(|(key, value)| (key, plainly(value)));
            Value::Object(values.collect())
        }
        other => other,
    }
}
