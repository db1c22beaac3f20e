//! Whether the tables are there, and ours.

use aws_sdk_dynamodb::types::{
    KeySchemaElement, KeyType, Projection, ProjectionType, TableDescription, TableStatus,
};
use mamparo_durable::backend::{BackendError, Trouble};

use super::schema::{BY_STATE, ID, PART, PLACE, PROJECTED, SERIAL, SINCE, SLOT};
use super::{DynamoStore, dynamo};

impl DynamoStore {
    /// Looks at the tables' keys and the index, so that whoever starts an engine hears of what is missing.
    ///
    /// # Errors
    ///
    /// [`Trouble::Incompatible`] when a table or the index is missing or has another key, [`Trouble::Unavailable`] while it is made.
    pub(crate) async fn check(&self, outbox: bool) -> Result<(), BackendError> {
        let table = self.describe(self.table()).await?;
        is_key(self.table(), table.key_schema(), [ID, PART])?;
        let mut indexes = table.global_secondary_indexes().iter();
        let Some(index) = indexes.find(|index| index.index_name() == Some(BY_STATE)) else {
            return Err(other(self.table(), "has no index by_state"));
        };
        is_key("index by_state", index.key_schema(), [PLACE, SINCE])?;
        if !is_projected(index.projection()) {
            return Err(other("index by_state", "lacks an attribute"));
        }
        if outbox {
            let name = self.names().outbox();
            let table = self.describe(&name).await?;
            is_key(&name, table.key_schema(), [SLOT, SERIAL])?;
        }
        Ok(())
    }

    async fn describe(&self, name: &str) -> Result<TableDescription, BackendError> {
        let asked = self.client().describe_table().table_name(name);
        let described = asked.send().await.map_err(|error| dynamo(name, error))?;
        let table = described
            .table
            .ok_or_else(|| other(name, "is not described"))?;
        match table.table_status() {
            Some(TableStatus::Creating | TableStatus::Deleting) => {
                let words = format!("table {name} is not ready: wait until it is active");
                Err(BackendError::new(Trouble::Unavailable, words))
            }
            _ => Ok(table),
        }
    }
}

/// What is not projected can't be read from the index.
fn is_projected(projection: Option<&Projection>) -> bool {
    projection.is_some_and(|projection| {
        let there = projection.non_key_attributes();
        let all = projection.projection_type() == Some(&ProjectionType::All);
        all || PROJECTED
            .iter()
            .all(|name| there.iter().any(|it| it == name))
    })
}

fn is_key(name: &str, schema: &[KeySchemaElement], key: [&str; 2]) -> Result<(), BackendError> {
    let [partition, sort] = key;
    let is = |name: &str, kind: &KeyType| {
        let mut elements = schema.iter();
        elements.any(|it| it.attribute_name() == name && it.key_type() == kind)
    };
    if schema.len() == 2 && is(partition, &KeyType::Hash) && is(sort, &KeyType::Range) {
        return Ok(());
    }
    Err(other(
        name,
        &format!("has another key than {partition}, {sort}"),
    ))
}

fn other(name: &str, what: &str) -> BackendError {
    let words = format!(
        "{name} {what}: choose another prefix, or let `mamparo aws check` say what differs"
    );
    BackendError::new(Trouble::Incompatible, words)
}
