//! Forgetting what ended long ago.

use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{ConditionCheck, Delete, TransactWriteItem};
use futures_util::future::try_join_all;
use futures_util::stream::{self, StreamExt as _};
use mamparo_durable::backend::BackendError;
use mamparo_durable::machine::{State, TransactionId, Utc};

use super::item::{Item, key, number, text};
use super::schema::{ID, PART, RECORD};
use super::{DynamoStore, Row, Walk, built, dynamo};

/// As many parts go in one transaction of the service, beside the record.
const PARTS_AT_ONCE: usize = 99;

/// The record is still the one that ended then: what has that id now may be another.
const STILL: &str = "attribute_exists(ended) AND updated_at = :ended_at";

impl DynamoStore {
    pub(super) async fn forget_old(
        &self,
        ended_by: Utc,
        limit: usize,
    ) -> Result<u64, BackendError> {
        let page = limit.max(1);
        let walks = [State::Succeeded, State::Failed].map(|state| {
            let walk = Walk {
                state,
                until: ended_by,
                page,
            };
            self.walk(walk, move |rows: &mut Vec<Row>, row| {
                rows.push(row);
                super::ask::full(rows.len(), limit)
            })
        });
        let found = try_join_all(walks).await?;
        let mut rows: Vec<Row> = found.into_iter().flatten().flatten().collect();
        rows.sort_by_key(|row| row.since);
        rows.truncate(limit);
        let going = rows
            .iter()
            .map(|row| self.forget_one(&row.id, row.updated_at));
        let going: Vec<_> = going.collect();
        let gone = stream::iter(going).buffer_unordered(self.in_flight());
        let gone: Vec<_> = gone.collect().await;
        gone.into_iter()
            .try_fold(0, |sum, gone| Ok(sum + u64::from(gone?)))
    }

    /// Its request and history, and at last what says that it was there; nothing of it if it was forgotten meanwhile.
    async fn forget_one(&self, id: &TransactionId, ended_at: Utc) -> Result<bool, BackendError> {
        let parts = self.parts(id).await?;
        let mut chunks = parts.chunks(PARTS_AT_ONCE).peekable();
        if chunks.peek().is_none() {
            return self.forget_parts(id, ended_at, &[], true).await;
        }
        while let Some(chunk) = chunks.next() {
            let last = chunks.peek().is_none();
            if !self.forget_parts(id, ended_at, chunk, last).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn forget_parts(
        &self,
        id: &TransactionId,
        ended_at: Utc,
        parts: &[Item],
        last: bool,
    ) -> Result<bool, BackendError> {
        let mut items = Vec::with_capacity(parts.len() + 1);
        items.push(self.record_gone(id, ended_at, last)?);
        for part in parts {
            let delete = Delete::builder()
                .table_name(self.table())
                .set_key(Some(part.clone()));
            items.push(
                TransactWriteItem::builder()
                    .delete(built(delete.build())?)
                    .build(),
            );
        }
        let asked = self
            .client()
            .transact_write_items()
            .set_transact_items(Some(items));
        match asked.send().await {
            Ok(_) => Ok(true),
            // Another engine is at it, or was.
            Err(error)
                if matches!(
                    error.as_service_error(),
                    Some(TransactWriteItemsError::TransactionCanceledException(_))
                ) =>
            {
                Ok(false)
            }
            Err(error) => Err(dynamo(self.table(), error)),
        }
    }

    fn record_gone(
        &self,
        id: &TransactionId,
        ended_at: Utc,
        last: bool,
    ) -> Result<TransactWriteItem, BackendError> {
        let (key, ended_at) = (Some(key(id, RECORD)), number(ended_at.millis()));
        let item = TransactWriteItem::builder();
        if last {
            let delete = Delete::builder()
                .table_name(self.table())
                .set_key(key)
                .condition_expression(STILL)
                .expression_attribute_values(":ended_at", ended_at);
            return Ok(item.delete(built(delete.build())?).build());
        }
        let check = ConditionCheck::builder()
            .table_name(self.table())
            .set_key(key)
            .condition_expression(STILL)
            .expression_attribute_values(":ended_at", ended_at);
        Ok(item.condition_check(built(check.build())?).build())
    }

    /// The keys of all of it but the record.
    async fn parts(&self, id: &TransactionId) -> Result<Vec<Item>, BackendError> {
        let (mut parts, mut from) = (Vec::new(), None);
        loop {
            let asked = self
                .client()
                .query()
                .table_name(self.table())
                .key_condition_expression(format!("{ID} = :id"))
                .expression_attribute_values(":id", text(id.as_str()))
                .projection_expression(format!("{ID}, {PART}"))
                .consistent_read(true)
                .set_exclusive_start_key(from);
            let page = asked
                .send()
                .await
                .map_err(|error| dynamo(self.table(), error))?;
            let is_record = |item: &Item| item.get(PART).is_some_and(|part| *part == text(RECORD));
            let items = page.items.unwrap_or_default();
            parts.extend(items.into_iter().filter(|item| !is_record(item)));
            from = page.last_evaluated_key.filter(|key| !key.is_empty());
            if from.is_none() {
                return Ok(parts);
            }
        }
    }
}
