//! Single transactions, read consistently.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes};
use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use mamparo_durable::backend::{BackendError, Trouble};
use mamparo_durable::machine::{AuditEvent, Record, TransactionId};

use super::commit::BODY;
use super::item::{Item, corrupt, event, key, record, text};
use super::schema::{HISTORY, ID, PART, RECORD, REQUEST};
use super::{DynamoStore, built, dynamo, pauses};

/// As many items the service reads for one request.
const MAX_KEYS: usize = 100;

impl DynamoStore {
    /// Reads one transaction.
    pub(crate) async fn stored(&self, id: &TransactionId) -> Result<Option<Record>, BackendError> {
        self.get(key(id, RECORD))
            .await?
            .as_ref()
            .map(record)
            .transpose()
    }

    async fn get(&self, key: Item) -> Result<Option<Item>, BackendError> {
        let asked = self
            .client()
            .get_item()
            .table_name(self.table())
            .set_key(Some(key))
            .consistent_read(true);
        let got = asked
            .send()
            .await
            .map_err(|error| dynamo(self.table(), error))?;
        Ok(got.item)
    }

    pub(super) async fn load_all(
        &self,
        ids: &[TransactionId],
    ) -> Vec<Result<Option<Record>, BackendError>> {
        if let [id] = ids {
            return vec![self.stored(id).await];
        }
        let chunks: Vec<_> = ids
            .chunks(MAX_KEYS)
            .map(|chunk| self.load_some(chunk))
            .collect();
        let loaded = stream::iter(chunks).buffered(self.in_flight());
        let loaded: Vec<Vec<_>> = loaded.collect().await;
        loaded.into_iter().flatten().collect()
    }

    async fn load_some(&self, ids: &[TransactionId]) -> Vec<Result<Option<Record>, BackendError>> {
        let keys = ids
            .iter()
            .map(|id| ((id.as_str(), RECORD), key(id, RECORD)));
        // No key may be named twice.
        let keys: HashMap<_, _> = keys.collect();
        let got = match self.get_all(keys.into_values().collect()).await {
            Ok(got) => got,
            Err(error) => {
                let same = |_| Err(BackendError::new(error.trouble(), error.to_string()));
                return ids.iter().map(same).collect();
            }
        };
        let item = |id: &TransactionId| got.get(&(id.as_str().to_owned(), RECORD.to_owned()));
        ids.iter()
            .map(|id| item(id).map(record).transpose())
            .collect()
    }

    /// What is needed to send an attempt, in one request: the transaction, and its request.
    pub(crate) async fn sendable(
        &self,
        id: &TransactionId,
    ) -> Result<Option<(Record, Bytes)>, BackendError> {
        let mut got = self
            .get_all(vec![key(id, RECORD), key(id, REQUEST)])
            .await?;
        let mut part = |part: &str| got.remove(&(id.as_str().to_owned(), part.to_owned()));
        let (Some(stored), Some(request)) = (part(RECORD), part(REQUEST)) else {
            return Ok(None);
        };
        let stored = record(&stored)?;
        Ok(body(request).map(|body| (stored, body)))
    }

    /// Reads items, by id and part.
    async fn get_all(
        &self,
        keys: Vec<Item>,
    ) -> Result<HashMap<(String, String), Item>, BackendError> {
        let (mut keys, mut read) = (keys, HashMap::new());
        for pause in pauses() {
            let wanted = KeysAndAttributes::builder()
                .set_keys(Some(keys))
                .consistent_read(true);
            let asked = self
                .client()
                .batch_get_item()
                .request_items(self.table(), built(wanted.build())?);
            let got = asked
                .send()
                .await
                .map_err(|error| dynamo(self.table(), error))?;
            let items = got.responses.unwrap_or_default().remove(self.table());
            for item in items.unwrap_or_default() {
                let name = |name: &str| item.get(name).and_then(|value| value.as_s().ok()).cloned();
                if let (Some(id), Some(part)) = (name(ID), name(PART)) {
                    read.insert((id, part), item);
                }
            }
            let left = got
                .unprocessed_keys
                .unwrap_or_default()
                .remove(self.table());
            match left {
                Some(left) if !left.keys.is_empty() => keys = left.keys,
                _ => return Ok(read),
            }
            tokio::time::sleep(pause).await;
        }
        let words = "DynamoDB keeps leaving part of a batch unread: its table is asked too much";
        Err(BackendError::new(Trouble::Unavailable, words))
    }

    pub(super) async fn read_request(
        &self,
        id: &TransactionId,
    ) -> Result<Option<Bytes>, BackendError> {
        Ok(self.get(key(id, REQUEST)).await?.and_then(body))
    }

    pub(super) async fn read_history(
        &self,
        id: &TransactionId,
        skip: usize,
        limit: usize,
    ) -> Result<Vec<AuditEvent>, BackendError> {
        let wanted = skip.saturating_add(limit);
        let (mut rows, mut seen, mut from) = (Vec::new(), 0, None);
        while seen < wanted {
            let asked = self
                .client()
                .query()
                .table_name(self.table())
                .key_condition_expression(format!("{ID} = :id AND begins_with({PART}, :history)"))
                .expression_attribute_values(":id", text(id.as_str()))
                .expression_attribute_values(":history", text(HISTORY))
                .consistent_read(true)
                .limit(i32::try_from(wanted - seen).unwrap_or(i32::MAX))
                .set_exclusive_start_key(from);
            let page = asked
                .send()
                .await
                .map_err(|error| dynamo(self.table(), error))?;
            for item in page.items.unwrap_or_default() {
                seen += 1;
                if seen > skip {
                    rows.push(row(id, &item)?);
                }
            }
            from = page.last_evaluated_key.filter(|key| !key.is_empty());
            if from.is_none() {
                break;
            }
        }
        Ok(rows)
    }
}

fn row(id: &TransactionId, item: &Item) -> Result<AuditEvent, BackendError> {
    event(item).map_err(|what| {
        corrupt(format!(
            "the history of transaction {id} can't be read: {what}"
        ))
    })
}

fn body(mut item: Item) -> Option<Bytes> {
    match item.remove(BODY) {
        Some(AttributeValue::B(body)) => Some(Bytes::from(body.into_inner())),
        _ => None,
    }
}
