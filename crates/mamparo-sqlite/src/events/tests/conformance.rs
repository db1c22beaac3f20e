//! The suite that every backend of events runs.

use std::sync::Arc;
use std::time::Duration;

use mamparo_core::BoxError;
use mamparo_durable::backend::BoxFuture;
use mamparo_durable::conformance::events::EventBackend;
use mamparo_durable::events::{Event, EventStore, Seen, StuckSagas};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::{SqliteEvents, TransactionError};

async fn fresh() -> (Arc<dyn EventBackend>, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let events = SqliteEvents::builder(folder.path().join("shop.db"));
    let events = events.keep_inbox(Duration::from_millis(1)).open().unwrap();
    let tables = "CREATE TABLE effects (number INTEGER); CREATE TABLE sagas (id TEXT PRIMARY KEY, state TEXT)";
    let made = events.transaction(|tx| Ok::<_, TransactionError>(tx.execute_batch(tables)?));
    made.await.unwrap();
    (Arc::new(Service(events)), folder)
}

mamparo_durable::event_conformance!(fresh);

#[derive(Debug)]
struct Service(SqliteEvents);

impl Service {
    /// A transaction that may be rolled back on purpose.
    async fn transaction<T: Send + 'static>(
        &self,
        commit: bool,
        work: impl FnOnce(&SqliteEvents, &Connection) -> Result<T, TransactionError> + Send + 'static,
    ) -> Option<T> {
        let (events, kept) = (self.0.clone(), Arc::new(std::sync::Mutex::new(None)));
        let keep = kept.clone();
        let done = self.0.transaction(move |tx| {
            *keep.lock().unwrap() = Some(work(&events, tx)?);
            match commit {
                true => Ok(()),
                false => Err(TransactionError::work("rolled back on purpose")),
            }
        });
        assert_eq!(done.await.is_ok(), commit);
        kept.lock().unwrap().take()
    }

    async fn count(&self, select: &'static str, of: Option<String>) -> u64 {
        let count = move |tx: &Connection| {
            let of: Vec<String> = of.into_iter().collect();
            Ok::<u32, TransactionError>(tx.query_row(
                select,
                rusqlite::params_from_iter(of),
                |row| row.get(0),
            )?)
        };
        u64::from(self.0.transaction(count).await.unwrap())
    }
}

impl EventBackend for Service {
    fn store(&self) -> Arc<dyn EventStore> {
        Arc::new(self.0.clone())
    }

    fn put(&self, events: Vec<Event>, commit: bool) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.transaction(commit, move |outbox, tx| {
                events.iter().try_for_each(|event| outbox.put(tx, event))
            })
            .await;
        })
    }

    fn put_late(&self, _: Event) -> BoxFuture<'_, Option<BoxFuture<'static, ()>>> {
        // One transaction writes at a time.
        Box::pin(std::future::ready(None))
    }

    fn tear(&self, id: &str) -> BoxFuture<'_, ()> {
        let id = id.to_owned();
        Box::pin(async move {
            let tear = "UPDATE mamparo_events SET head = 'torn' WHERE id = ?1";
            let torn = self.transaction(true, move |_, tx| Ok(tx.execute(tear, [id])?));
            torn.await;
        })
    }

    fn process(&self, consumer: &str, id: &str, commit: bool) -> BoxFuture<'_, Seen> {
        let (consumer, id) = (consumer.to_owned(), id.to_owned());
        Box::pin(async move {
            let processed = self.transaction(commit, move |inbox, tx| {
                let seen = inbox.processed_once(tx, &consumer, &id)?;
                if seen == Seen::First {
                    tx.execute("INSERT INTO effects VALUES (1)", [])?;
                }
                Ok(seen)
            });
            processed.await.unwrap()
        })
    }

    fn effects(&self) -> BoxFuture<'_, u64> {
        Box::pin(self.count("SELECT count(*) FROM effects", None))
    }

    fn sweep(&self, limit: usize) -> BoxFuture<'_, usize> {
        Box::pin(async move { self.0.sweep_inbox(limit).await.unwrap() })
    }

    fn begin(&self, sagas: Vec<String>) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.transaction(true, move |_, tx| {
                let mut begin = tx.prepare("INSERT INTO sagas VALUES (?1, 'PENDING')")?;
                sagas
                    .iter()
                    .try_for_each(|saga| begin.execute([saga]).map(drop))?;
                Ok(())
            })
            .await;
        })
    }

    fn stuck(&self) -> Arc<dyn StuckSagas> {
        let select = "SELECT id FROM sagas WHERE state = 'PENDING' LIMIT ?1";
        self.0.stuck(select, |tx, saga| {
            tx.execute("UPDATE sagas SET state = 'CANCELLED' WHERE id = ?1", [saga])?;
            if saga.starts_with("broken") {
                return Err(TransactionError::work(BoxError::from("its row is broken")));
            }
            let event = Event::builder(format!("{saga}/cancelled"))
                .key(saga)
                .build();
            Ok(vec![event.map_err(TransactionError::work)?])
        })
    }

    fn sagas(&self, state: &str) -> BoxFuture<'_, u64> {
        let of = Some(state.to_owned());
        Box::pin(self.count("SELECT count(*) FROM sagas WHERE state = ?1", of))
    }
}
