//! Notes of what is to be done after a step: made with it, leased by who does it, deleted when it is done.

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::error::ProvideErrorMetadata as _;
use aws_sdk_dynamodb::types::{
    AttributeValue, DeleteRequest, Put, TransactWriteItem, WriteRequest,
};
use mamparo_durable::backend::{BackendError, Trouble};
use mamparo_durable::machine::{Effect, Schedule, TransactionId, Utc};

use crate::gather::{Flight, Gather};
use crate::store::schema::{ID, SERIAL, SHARDS, SLOT, shard};
use crate::store::{DynamoStore, Item, built, dynamo, number, pauses, text};

/// Whoever has not done it by then is taken for dead: longer than all tries of all requests that a step may ask for.
pub(super) const LEASE: Duration = Duration::from_secs(60);

/// As many notes are read at once.
const PAGE: i32 = 100;

/// As many notes does the service delete for one request.
const DELETED_AT_ONCE: usize = 25;

const LEASE_ENDS: &str = "lease_ends";
const EFFECTS: &str = "effects";

/// What is to be done for a transaction, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Note {
    slot: String,
    serial: String,
    lease_ends: Utc,
    pub(super) id: TransactionId,
    pub(super) effects: Vec<Effect>,
}

impl Note {
    /// Notes what a step wants done, for whoever commits it to do.
    pub(super) fn new(id: &TransactionId, effects: Vec<Effect>, now: Utc) -> Self {
        // Sorted by age, so that what waits longest is seen first.
        let serial = format!("{:015}-{:016x}", now.millis(), fastrand::u64(..));
        Self {
            slot: shard(id).to_string(),
            serial,
            lease_ends: now.plus(LEASE),
            id: id.clone(),
            effects,
        }
    }

    fn read(item: &Item) -> Option<Self> {
        let word = |name: &str| item.get(name)?.as_s().ok().cloned();
        let millis = item.get(LEASE_ENDS)?.as_n().ok()?.parse().ok()?;
        let effects = item.get(EFFECTS)?.as_l().ok()?.iter();
        Some(Self {
            slot: word(SLOT)?,
            serial: word(SERIAL)?,
            lease_ends: Utc::from_millis(millis).ok()?,
            id: TransactionId::new(word(ID)?).ok()?,
            effects: effects
                .map(|effect| parse(effect.as_s().ok()?))
                .collect::<Option<_>>()?,
        })
    }

    fn key(&self) -> Item {
        Item::from([
            (SLOT.to_owned(), text(&self.slot)),
            (SERIAL.to_owned(), text(&self.serial)),
        ])
    }

    fn item(&self) -> Item {
        let effects = self.effects.iter().filter_map(write).map(text).collect();
        let mut item = self.key();
        item.insert(ID.to_owned(), text(self.id.as_str()));
        item.insert(LEASE_ENDS.to_owned(), number(self.lease_ends.millis()));
        item.insert(EFFECTS.to_owned(), AttributeValue::L(effects));
        item
    }
}

/// Writes an effect in words; alerts are told, not noted.
fn write(effect: &Effect) -> Option<String> {
    Some(match effect {
        Effect::Schedule(Schedule {
            attempt,
            seq,
            fire_at,
        }) => format!("schedule {attempt} {seq} {}", fire_at.millis()),
        Effect::Unschedule { attempt, seq } => format!("unschedule {attempt} {seq}"),
        Effect::Send { attempt, seq } => format!("send {attempt} {seq}"),
        Effect::Refire { attempt, seq } => format!("refire {attempt} {seq}"),
        _ => return None,
    })
}

fn parse(words: &str) -> Option<Effect> {
    let mut words = words.split(' ');
    let verb = words.next()?;
    let (attempt, seq) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some(match verb {
        "schedule" => {
            let fire_at = Utc::from_millis(words.next()?.parse().ok()?).ok()?;
            Effect::Schedule(Schedule {
                attempt,
                seq,
                fire_at,
            })
        }
        "unschedule" => Effect::Unschedule { attempt, seq },
        "send" => Effect::Send { attempt, seq },
        "refire" => Effect::Refire { attempt, seq },
        _ => return None,
    })
}

/// A page of notes, and where the next begins.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) notes: Vec<Note>,
    /// As many are there that can't be read.
    pub(super) unreadable: u64,
    pub(super) next: Option<Item>,
}

/// The table of notes. Clones delete together.
#[derive(Clone, Debug)]
pub(super) struct Notes {
    store: DynamoStore,
    table: Arc<str>,
    deletes: Arc<Gather<Item>>,
}

impl Notes {
    pub(super) fn new(store: DynamoStore) -> Self {
        let table: Arc<str> = store.names().outbox().into();
        let of = (store.clone(), Arc::clone(&table));
        let deletes = Gather::new(
            DELETED_AT_ONCE,
            usize::MAX,
            move |keys: Vec<Item>| -> Flight {
                let (store, table) = of.clone();
                Box::pin(async move { delete(&store, &table, keys).await })
            },
        );
        Self {
            store,
            table,
            deletes: Arc::new(deletes),
        }
    }

    /// The part of a step's transaction that makes the note.
    pub(super) fn put(&self, note: &Note) -> Result<TransactWriteItem, BackendError> {
        let put = Put::builder()
            .table_name(&*self.table)
            .set_item(Some(note.item()));
        Ok(TransactWriteItem::builder()
            .put(built(put.build())?)
            .build())
    }

    /// Reads notes whose lease is over, the oldest first.
    pub(super) async fn left(
        &self,
        slot: u64,
        from: Option<Item>,
        now: Utc,
    ) -> Result<Page, BackendError> {
        let asked = self
            .store
            .client()
            .query()
            .table_name(&*self.table)
            .key_condition_expression(format!("{SLOT} = :slot"))
            .filter_expression(format!("{LEASE_ENDS} <= :now"))
            .expression_attribute_values(":slot", text(slot.to_string()))
            .expression_attribute_values(":now", number(now.millis()))
            .limit(PAGE)
            .set_exclusive_start_key(from);
        let page = asked
            .send()
            .await
            .map_err(|error| dynamo(&self.table, error))?;
        let mut read = Page {
            next: page.last_evaluated_key.filter(|key| !key.is_empty()),
            ..Page::default()
        };
        for item in page.items.unwrap_or_default() {
            match Note::read(&item) {
                Some(note) => read.notes.push(note),
                None => read.unreadable += 1,
            }
        }
        Ok(read)
    }

    /// Takes a note over; of those who try, one has it.
    pub(super) async fn claim(&self, note: &Note, now: Utc) -> Result<bool, BackendError> {
        let asked = self
            .store
            .client()
            .update_item()
            .table_name(&*self.table)
            .set_key(Some(note.key()))
            .update_expression(format!("SET {LEASE_ENDS} = :ends"))
            .condition_expression(format!("{LEASE_ENDS} = :seen"))
            .expression_attribute_values(":ends", number(now.plus(LEASE).millis()))
            .expression_attribute_values(":seen", number(note.lease_ends.millis()));
        match asked.send().await {
            Ok(_) => Ok(true),
            Err(error) if error.code() == Some("ConditionalCheckFailedException") => Ok(false),
            Err(error) => Err(dynamo(&self.table, error)),
        }
    }

    /// Deletes a note of what is done.
    pub(super) async fn delete(&self, note: &Note) -> Result<(), BackendError> {
        self.deletes.all(vec![(note.key(), 0)]).await
    }

    /// All slots.
    pub(super) const fn slots() -> std::ops::Range<u64> {
        0..SHARDS
    }
}

/// Deletes notes together; what can't be said of one is said of all.
async fn delete(
    store: &DynamoStore,
    table: &str,
    keys: Vec<Item>,
) -> Vec<Result<(), BackendError>> {
    let notes = keys.len();
    let failed = match delete_all(store, table, keys).await {
        Ok(()) => return (0..notes).map(|_| Ok(())).collect(),
        Err(error) => error,
    };
    let same = |_| Err(BackendError::new(failed.trouble(), failed.to_string()));
    (0..notes).map(same).collect()
}

async fn delete_all(store: &DynamoStore, table: &str, keys: Vec<Item>) -> Result<(), BackendError> {
    let mut requests = Vec::with_capacity(keys.len());
    for key in keys {
        let delete = built(DeleteRequest::builder().set_key(Some(key)).build())?;
        requests.push(WriteRequest::builder().delete_request(delete).build());
    }
    for pause in pauses() {
        let asked = store
            .client()
            .batch_write_item()
            .request_items(table, requests);
        let written = asked.send().await.map_err(|error| dynamo(table, error))?;
        requests = written
            .unprocessed_items
            .unwrap_or_default()
            .remove(table)
            .unwrap_or_default();
        if requests.is_empty() {
            return Ok(());
        }
        tokio::time::sleep(pause).await;
    }
    let words = format!("DynamoDB keeps leaving notes in table {table}: it is asked too much");
    Err(BackendError::new(Trouble::Unavailable, words))
}

#[cfg(test)]
mod tests {
    use mamparo_durable::machine::AlertKind;

    use super::*;

    #[test]
    fn a_note_is_read_back_as_it_was_written_and_alerts_are_not_noted() {
        let fire_at = Utc::MAX;
        let (attempt, seq) = (u32::MAX, 7);
        let effects = vec![
            Effect::Schedule(Schedule {
                attempt,
                seq,
                fire_at,
            }),
            Effect::Unschedule { attempt, seq },
            Effect::Send { attempt, seq },
            Effect::Refire { attempt, seq },
        ];
        let id = TransactionId::new("a #~ ñ").unwrap();
        let note = Note::new(&id, effects.clone(), Utc::MIN);
        assert_eq!(Note::read(&note.item()), Some(note.clone()));
        let alert = vec![Effect::Alert(AlertKind::AnswerLost)];
        let told = Note::new(&id, [alert, effects].concat(), Utc::MIN);
        assert_eq!(
            Note::read(&told.item()).map(|it| it.effects),
            Some(note.effects)
        );
    }

    #[test]
    fn a_note_of_another_program_is_not_taken_for_one() {
        let id = TransactionId::new("t").unwrap();
        let item = Note::new(&id, Vec::new(), Utc::MIN).item();
        for bad in [
            "",
            "send",
            "send 1",
            "send 1 x",
            "schedule 1 0",
            "wait 1 0",
            "send -1 0",
        ] {
            let mut item = item.clone();
            item.insert(EFFECTS.to_owned(), AttributeValue::L(vec![text(bad)]));
            assert_eq!(Note::read(&item), None, "{bad:?}");
        }
        for missing in [SLOT, SERIAL, ID, LEASE_ENDS, EFFECTS] {
            let mut item = item.clone();
            item.remove(missing);
            assert_eq!(Note::read(&item), None, "{missing}");
        }
    }
}
