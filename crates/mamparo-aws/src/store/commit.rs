//! A step as one transaction: every condition is on the transaction's own item, which comes first.

use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{
    CancellationReason, Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update,
};
use mamparo_durable::backend::{BackendError, NewTransaction, Step, Trouble, Written};
use mamparo_durable::machine::{Expect, Progress, TransactionId};

use super::item::{Item, begun, expiry, key, number, progress, record, text, told};
use super::schema::{EXPIRES_AT, ID, RECORD, REQUEST};
use super::{DynamoStore, built, dynamo, pauses};

/// As many items has one transaction of the service at most.
const MAX_ITEMS: usize = 100;

/// What is stored of a request, beside its key.
pub(super) const BODY: &str = "body";

impl DynamoStore {
    /// Begins and writes as the step says, with its rows of history, and this besides; all of it or nothing.
    ///
    /// Tried again where others are at work on the same items. One whose answer is lost is repeated with the same token, which the
    /// service answers as the first time.
    pub(crate) async fn commit(
        &self,
        step: &Step,
        besides: Option<TransactWriteItem>,
    ) -> Result<Written, BackendError> {
        let Some(mut items) = self.items(step)? else {
            return Ok(Written::Missed(self.stored(&step.id).await?));
        };
        items.extend(besides);
        if items.len() > MAX_ITEMS {
            let words = format!("a step has {} items: at most 100 fit", items.len());
            return Err(BackendError::new(Trouble::Refused, words));
        }
        let token = format!("{:032x}", fastrand::u128(..));
        for pause in pauses() {
            let sent = self
                .client()
                .transact_write_items()
                .client_request_token(&token)
                .set_transact_items(Some(items.clone()))
                .send()
                .await;
            let Err(error) = sent else {
                return Ok(Written::Applied);
            };
            match error.as_service_error() {
                Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) => {
                    if let Some(missed) = missed(cancelled.cancellation_reasons())? {
                        return Ok(missed);
                    }
                }
                // The first of two tries is still at work.
                Some(TransactWriteItemsError::TransactionInProgressException(_)) => {}
                _ => return Err(dynamo(self.table(), error)),
            }
            tokio::time::sleep(pause).await;
        }
        let words = format!(
            "others are at work on transaction {}; it is tried again",
            step.id
        );
        Err(BackendError::new(Trouble::Unavailable, words))
    }

    /// What the step writes; `None` if its writes don't follow from each other.
    fn items(&self, step: &Step) -> Result<Option<Vec<TransactWriteItem>>, BackendError> {
        let begins = step.begin.as_ref().map(|new| &new.record.progress);
        let mut stands = begins;
        for write in &step.writes {
            if stands.is_some_and(|stands| stands.expect() != write.expect) {
                return Ok(None);
            }
            stands = Some(&write.to);
        }
        let Some(stands) = stands else {
            return Ok(Some(Vec::new()));
        };
        let mut items = Vec::with_capacity(step.writes.len() + 4);
        match (&step.begin, step.writes.first()) {
            (Some(new), _) => items.extend(self.begin_items(new, stands)?),
            (None, Some(first)) => items.push(self.transit(&step.id, first.expect, stands)?),
            (None, None) => {}
        }
        if stands.state.is_terminal() {
            items.push(self.expire_request(&step.id, stands)?);
        }
        for write in &step.writes {
            let row = told(&step.id, &write.event, &write.to, self.retention());
            items.push(self.put(row)?);
        }
        Ok(Some(items))
    }

    fn begin_items(
        &self,
        new: &NewTransaction,
        stands: &Progress,
    ) -> Result<Vec<TransactWriteItem>, BackendError> {
        let id = &new.record.terms.id;
        let first = Put::builder()
            .table_name(self.table())
            .set_item(Some(begun(new, stands, self.retention())))
            .condition_expression(format!("attribute_not_exists({ID})"))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let first = TransactWriteItem::builder()
            .put(built(first.build())?)
            .build();
        let row = told(id, &new.event(), &new.record.progress, self.retention());
        let mut request = key(id, REQUEST);
        let body = aws_sdk_dynamodb::primitives::Blob::new(new.request.as_ref());
        request.insert(
            BODY.to_owned(),
            aws_sdk_dynamodb::types::AttributeValue::B(body),
        );
        Ok(vec![first, self.put(request)?, self.put(row)?])
    }

    fn put(&self, item: Item) -> Result<TransactWriteItem, BackendError> {
        let put = Put::builder().table_name(self.table()).set_item(Some(item));
        Ok(TransactWriteItem::builder()
            .put(built(put.build())?)
            .build())
    }

    fn transit(
        &self,
        id: &TransactionId,
        from: Expect,
        to: &Progress,
    ) -> Result<TransactWriteItem, BackendError> {
        let (mut set, mut remove) = (Vec::new(), Vec::new());
        let mut update = Update::builder()
            .table_name(self.table())
            .set_key(Some(key(id, RECORD)))
            .expression_attribute_names("#state", "state")
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        for (name, value) in progress(id, to, self.retention()) {
            let Some(value) = value else {
                remove.push(name);
                continue;
            };
            set.push(match name {
                "state" => "#state = :state".to_owned(),
                name => format!("{name} = :{name}"),
            });
            update = update.expression_attribute_values(format!(":{name}"), value);
        }
        let mut expression = format!("SET {}", set.join(", "));
        if !remove.is_empty() {
            expression = format!("{expression} REMOVE {}", remove.join(", "));
        }
        let next = match from.attempt_next {
            None => "attribute_not_exists(attempt_next)",
            Some(next) => {
                update = update.expression_attribute_values(":was_next", number(next));
                "attempt_next = :was_next"
            }
        };
        let condition = format!(
            "#state = :was_state AND attempt_current = :was_current AND schedule_seq = :was_seq AND {next}"
        );
        let update = update
            .expression_attribute_values(":was_state", text(from.state.as_str()))
            .expression_attribute_values(":was_current", number(from.attempt_current))
            .expression_attribute_values(":was_seq", number(from.schedule_seq))
            .update_expression(expression)
            .condition_expression(condition);
        Ok(TransactWriteItem::builder()
            .update(built(update.build())?)
            .build())
    }

    /// Its request is removed with it. Without a condition: one whose request is gone must be able to end.
    fn expire_request(
        &self,
        id: &TransactionId,
        ended: &Progress,
    ) -> Result<TransactWriteItem, BackendError> {
        let expires = expiry(ended.updated_at, self.retention());
        let update = Update::builder()
            .table_name(self.table())
            .set_key(Some(key(id, REQUEST)))
            .update_expression(format!("SET {EXPIRES_AT} = :expires"))
            .expression_attribute_values(":expires", number(expires));
        Ok(TransactWriteItem::builder()
            .update(built(update.build())?)
            .build())
    }
}

/// What a cancelled transaction says of the step; `None` if it may be tried again.
fn missed(reasons: &[CancellationReason]) -> Result<Option<Written>, BackendError> {
    if let Some(first) = reasons.first()
        && first.code() == Some("ConditionalCheckFailed")
    {
        let stored = first.item().filter(|item| !item.is_empty());
        return Ok(Some(Written::Missed(stored.map(record).transpose()?)));
    }
    let passing = [
        "TransactionConflict",
        "ThrottlingError",
        "ProvisionedThroughputExceeded",
    ];
    let is_passing =
        |reason: &CancellationReason| reason.code().is_some_and(|code| passing.contains(&code));
    if reasons.iter().any(is_passing) {
        return Ok(None);
    }
    let why: Vec<String> = reasons
        .iter()
        .filter(|reason| reason.code() != Some("None"))
        .map(|reason| {
            let (code, message) = (
                reason.code().unwrap_or_default(),
                reason.message().unwrap_or_default(),
            );
            format!("{code} {message}")
        })
        .collect();
    let words = format!("DynamoDB cancels the transaction: {}", why.join("; "));
    Err(BackendError::new(Trouble::Refused, words))
}
