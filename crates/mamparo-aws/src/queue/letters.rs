//! Dead letters: in a table, since SQS lists nothing and drops what is older than two weeks.
//!
//! `{prefix}-dead-letters` has a letter as an item under its queue and number, and what was discarded under
//! `{queue}/discarded`, with who did it and why. The numbers are counted in the item `numbers`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{
    AttributeValue, Delete, Put, ReturnValue, Select, TransactWriteItem,
};
use aws_sdk_sqs::types::Message;
use mamparo_durable::backend::{BackendError, DeadLetter, QueueName, Trouble};
use mamparo_durable::machine::{Label, Utc};

use super::entries::{self, BATCH};
use super::take::{ask, taken};
use super::{Place, body};
use crate::Aws;
use crate::connection::{Service, trouble};
use crate::gather::Gather;

/// The key of the table: a string and a number.
pub(crate) const QUEUE: &str = "queue";
pub(crate) const NUMBER: &str = "number";

const BODY: &str = "body";
const WHY: &str = "why";
const BURIED_AT: &str = "buried_at";
const DELIVERIES: &str = "deliveries";
const DISCARDED_AT: &str = "discarded_at";
const REASON: &str = "reason";
const LAST: &str = "last";

/// The item that counts, under number 0.
const NUMBERS: &str = "numbers";

/// As many batches of what the nets have caught are moved by one look.
const SWEEPS: usize = 100;

/// As long as one of them is hidden from other sweepers.
const SWEEPING: Duration = Duration::from_secs(30);

/// What the scheduler says of a fire that it could not deliver.
const NOT_DELIVERED: &str = "ERROR_MESSAGE";

type Item = HashMap<String, AttributeValue>;

/// The dead letters of one queue.
#[derive(Debug)]
pub(super) struct Letters {
    aws: Aws,
    queue: QueueName,
    /// The queues of SQS that catch what nobody has buried.
    nets: Vec<Net>,
}

#[derive(Debug)]
struct Net {
    place: Arc<Place>,
    deletes: Gather<entries::Delete>,
}

impl Letters {
    pub(super) fn new(aws: &Aws, queue: QueueName) -> Self {
        let mut nets = vec![aws.names().dead_letters(queue)];
        if queue == QueueName::Fires {
            nets.push(aws.names().undelivered());
        }
        let net = |name| {
            let place = Arc::new(Place::new(aws.clone(), name));
            Net {
                deletes: entries::gather(&place),
                place,
            }
        };
        Self {
            aws: aws.clone(),
            queue,
            nets: nets.into_iter().map(net).collect(),
        }
    }

    /// Stores a letter.
    pub(super) async fn file(
        &self,
        body: &str,
        why: &Label,
        deliveries: u32,
    ) -> Result<(), BackendError> {
        let mut item = key(self.queue.as_str(), self.next_number().await?);
        item.insert(BODY.into(), text(body));
        item.insert(WHY.into(), text(why.as_str()));
        item.insert(BURIED_AT.into(), number(self.aws.now().millis()));
        item.insert(DELIVERIES.into(), number(deliveries));
        let put = self.aws.dynamo().put_item().table_name(self.table());
        let put = put.set_item(Some(item)).send().await;
        put.map(drop)
            .map_err(|error| trouble(Service::DynamoDb, &self.about(), error))
    }

    /// A number that no letter has, greater than those given before.
    async fn next_number(&self) -> Result<u64, BackendError> {
        let counted = self
            .aws
            .dynamo()
            .update_item()
            .table_name(self.table())
            .set_key(Some(key(NUMBERS, 0)))
            .update_expression("ADD #last :one")
            .expression_attribute_names("#last", LAST)
            .expression_attribute_values(":one", number(1))
            .return_values(ReturnValue::UpdatedNew)
            .send()
            .await
            .map_err(|error| trouble(Service::DynamoDb, &self.about(), error))?;
        let last = counted.attributes.and_then(|item| read(&item, LAST));
        last.ok_or_else(|| {
            BackendError::new(Trouble::Corrupt, format!("{} does not count", self.about()))
        })
    }

    /// Reads letters in the order of their numbers.
    pub(super) async fn list(
        &self,
        after: Option<u64>,
        max: usize,
    ) -> Result<Vec<DeadLetter>, BackendError> {
        self.sweep().await?;
        let mut letters = Vec::new();
        let mut start = None;
        while letters.len() < max {
            let page = self
                .aws
                .dynamo()
                .query()
                .table_name(self.table())
                .consistent_read(true)
                .key_condition_expression("#queue = :queue AND #number > :after")
                .expression_attribute_names("#queue", QUEUE)
                .expression_attribute_names("#number", NUMBER)
                .expression_attribute_values(":queue", text(self.queue.as_str()))
                .expression_attribute_values(":after", number(after.unwrap_or(0)))
                .limit(i32::try_from(max - letters.len()).unwrap_or(i32::MAX))
                .set_exclusive_start_key(start.take())
                .send()
                .await
                .map_err(|error| trouble(Service::DynamoDb, &self.about(), error))?;
            letters.extend(
                page.items
                    .unwrap_or_default()
                    .iter()
                    .map(|item| self.letter(item)),
            );
            start = page.last_evaluated_key;
            if start.is_none() {
                break;
            }
        }
        Ok(letters)
    }

    fn letter(&self, item: &Item) -> DeadLetter {
        let word = |name| item.get(name).and_then(|value| value.as_s().ok());
        let message = word(BODY).and_then(|body| body::read(self.queue, body).ok());
        let at: i64 = read(item, BURIED_AT).unwrap_or(0);
        DeadLetter::new(
            read(item, NUMBER).unwrap_or(0),
            message.map(|(message, _)| message),
            word(WHY).map_or("", String::as_str).into(),
            Utc::from_millis(at).unwrap_or(Utc::MIN),
            read(item, DELIVERIES).unwrap_or(0),
        )
    }

    /// Counts the letters.
    pub(super) async fn count(&self) -> Result<u64, BackendError> {
        self.sweep().await?;
        let mut count = 0;
        let mut start = None;
        loop {
            let page = self
                .aws
                .dynamo()
                .query()
                .table_name(self.table())
                .consistent_read(true)
                .select(Select::Count)
                .key_condition_expression("#queue = :queue")
                .expression_attribute_names("#queue", QUEUE)
                .expression_attribute_values(":queue", text(self.queue.as_str()))
                .set_exclusive_start_key(start.take())
                .send()
                .await
                .map_err(|error| trouble(Service::DynamoDb, &self.about(), error))?;
            count += u64::try_from(page.count).unwrap_or(0);
            start = page.last_evaluated_key;
            if start.is_none() {
                return Ok(count);
            }
        }
    }

    /// Returns what a letter says, as it stood in the queue.
    pub(super) async fn body(&self, number: u64) -> Result<Option<String>, BackendError> {
        Ok(self
            .item(number)
            .await?
            .and_then(|mut item| match item.remove(BODY) {
                Some(AttributeValue::S(body)) => Some(body),
                _ => None,
            }))
    }

    async fn item(&self, number: u64) -> Result<Option<Item>, BackendError> {
        let get = self.aws.dynamo().get_item().table_name(self.table());
        let get = get.set_key(Some(key(self.queue.as_str(), number)));
        let got = get.consistent_read(true).send().await;
        got.map(|got| got.item)
            .map_err(|error| trouble(Service::DynamoDb, &self.about(), error))
    }

    /// Removes a letter; says whether it was there.
    pub(super) async fn remove(&self, number: u64) -> Result<bool, BackendError> {
        let delete = self.aws.dynamo().delete_item().table_name(self.table());
        let delete = delete.set_key(Some(key(self.queue.as_str(), number)));
        let deleted = delete.return_values(ReturnValue::AllOld).send().await;
        deleted
            .map(|deleted| deleted.attributes.is_some())
            .map_err(|error| trouble(Service::DynamoDb, &self.about(), error))
    }

    /// Moves letters among those that were discarded; says how many there were.
    pub(super) async fn discard(
        &self,
        numbers: Vec<u64>,
        reason: Label,
    ) -> Result<usize, BackendError> {
        let mut found = 0;
        for number in numbers {
            if let Some(item) = self.item(number).await? {
                found += usize::from(self.move_away(number, item, &reason).await?);
            }
        }
        Ok(found)
    }

    async fn move_away(
        &self,
        of: u64,
        mut item: Item,
        reason: &Label,
    ) -> Result<bool, BackendError> {
        let delete = Delete::builder()
            .table_name(self.table())
            .set_key(Some(key(self.queue.as_str(), of)))
            .condition_expression("attribute_exists(#number)")
            .expression_attribute_names("#number", NUMBER)
            .build()
            .map_err(unbuilt)?;
        let discarded = format!("{}/discarded", self.queue.as_str());
        item.extend(key(&discarded, of));
        item.insert(DISCARDED_AT.into(), number(self.aws.now().millis()));
        item.insert(REASON.into(), text(reason.as_str()));
        let put = Put::builder().table_name(self.table()).set_item(Some(item));
        let put = put.build().map_err(unbuilt)?;
        let moved = self
            .aws
            .dynamo()
            .transact_write_items()
            .transact_items(TransactWriteItem::builder().delete(delete).build())
            .transact_items(TransactWriteItem::builder().put(put).build())
            .send()
            .await;
        match moved {
            Ok(_) => Ok(true),
            Err(error) if error.as_service_error().is_some_and(was_gone) => Ok(false),
            Err(error) => Err(trouble(Service::DynamoDb, &self.about(), error)),
        }
    }

    /// Moves what the nets have caught into the table.
    async fn sweep(&self) -> Result<(), BackendError> {
        for net in &self.nets {
            for _ in 0..SWEEPS {
                let caught = ask(&net.place, BATCH, SWEEPING, Duration::ZERO).await?;
                for message in &caught {
                    self.take_over(net, message).await?;
                }
                if caught.is_empty() {
                    break;
                }
            }
        }
        Ok(())
    }

    async fn take_over(&self, net: &Net, message: &Message) -> Result<(), BackendError> {
        let attributes = message.message_attributes.as_ref();
        let said = attributes.and_then(|all| all.get(NOT_DELIVERED)?.string_value());
        let taken = taken(message, self.aws.now());
        // The sweep's own delivery does not count.
        let (why, deliveries) = match said {
            Some(said) => (format!("not delivered by the scheduler: {said}"), 0),
            None => (
                "moved by the redrive policy, or not delivered by the scheduler".to_owned(),
                taken.number - 1,
            ),
        };
        self.file(&taken.body, &why.as_str().into(), deliveries)
            .await?;
        net.deletes
            .all(vec![(entries::Delete(taken.handle), 0)])
            .await
    }

    fn table(&self) -> String {
        self.aws.names().letters()
    }

    fn about(&self) -> String {
        format!("table {}", self.table())
    }
}

fn was_gone(error: &TransactWriteItemsError) -> bool {
    let TransactWriteItemsError::TransactionCanceledException(cancelled) = error else {
        return false;
    };
    let reasons = cancelled.cancellation_reasons();
    reasons
        .iter()
        .any(|reason| reason.code() == Some("ConditionalCheckFailed"))
}

fn unbuilt(error: impl std::error::Error + Send + Sync + 'static) -> BackendError {
    BackendError::new(Trouble::Refused, "a request to DynamoDB lacks something").from_source(error)
}

fn key(queue: &str, of: u64) -> Item {
    HashMap::from([(QUEUE.into(), text(queue)), (NUMBER.into(), number(of))])
}

fn text(value: &str) -> AttributeValue {
    AttributeValue::S(value.to_owned())
}

fn number(value: impl Into<i128>) -> AttributeValue {
    AttributeValue::N(value.into().to_string())
}

fn read<T: std::str::FromStr>(item: &Item, name: &str) -> Option<T> {
    item.get(name)?.as_n().ok()?.parse().ok()
}
