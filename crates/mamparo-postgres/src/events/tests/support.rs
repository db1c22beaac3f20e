//! A service with tables of its own.

use std::sync::Arc;
use std::time::Duration;

use mamparo_core::BoxError;
use mamparo_durable::backend::BoxFuture;
use mamparo_durable::conformance::events::EventBackend;
use mamparo_durable::events::{Event, EventStore, Seen, StuckSagas};
use mamparo_testkit::private::PrivatePostgres;
use sqlx::postgres::{PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, query, query_scalar, raw_sql};

use crate::PostgresEvents;
use crate::events::handle::sweep;
use crate::tests::support::{schema, settings};

#[derive(Debug)]
pub(super) struct Service {
    pub(super) events: PostgresEvents,
    pub(super) pool: PgPool,
    schema: String,
}

impl Service {
    /// With a schema of its own, in which the service's tables are too.
    pub(super) async fn fresh() -> Self {
        let url = PrivatePostgres::shared().await.url();
        let schema = schema();
        let settings = settings(&url).schema(&schema).build().unwrap();
        let pool = PgPoolOptions::new()
            .max_connections(6)
            .connect(&url)
            .await
            .unwrap();
        let this = Self {
            events: PostgresEvents::connect(settings).await.unwrap(),
            pool,
            schema,
        };
        for table in [
            "effects (number bigint)",
            "sagas (id text PRIMARY KEY, state text)",
        ] {
            this.sql(&format!("CREATE TABLE {}.{table}", this.schema))
                .await;
        }
        this
    }

    pub(super) async fn sql(&self, statement: &str) {
        raw_sql(AssertSqlSafe(statement.to_owned()))
            .execute(&self.pool)
            .await
            .unwrap();
    }

    pub(super) fn named(&self, statement: &str) -> AssertSqlSafe<String> {
        AssertSqlSafe(statement.replace("{schema}", &self.schema))
    }

    async fn count(&self, select: &str) -> u64 {
        let count: i64 = query_scalar(self.named(select))
            .fetch_one(&self.pool)
            .await
            .unwrap();
        count.unsigned_abs()
    }
}

impl EventBackend for Service {
    fn store(&self) -> Arc<dyn EventStore> {
        Arc::new(self.events.clone())
    }

    fn put(&self, events: Vec<Event>, commit: bool) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let mut transaction = self.pool.begin().await.unwrap();
            for event in &events {
                self.events.put(&mut transaction, event).await.unwrap();
            }
            match commit {
                true => transaction.commit().await.unwrap(),
                false => transaction.rollback().await.unwrap(),
            }
        })
    }

    fn put_late(&self, event: Event) -> BoxFuture<'_, Option<BoxFuture<'static, ()>>> {
        Box::pin(async move {
            let mut transaction = self.pool.begin().await.unwrap();
            self.events.put(&mut transaction, &event).await.unwrap();
            let commit = async move { transaction.commit().await.unwrap() };
            Some(Box::pin(commit) as BoxFuture<'static, ()>)
        })
    }

    fn tear(&self, id: &str) -> BoxFuture<'_, ()> {
        let id = id.to_owned();
        Box::pin(async move {
            let tear = query(self.named("UPDATE {schema}.events SET head = 'torn' WHERE id = $1"));
            tear.bind(id).execute(&self.pool).await.unwrap();
        })
    }

    fn process(&self, consumer: &str, id: &str, commit: bool) -> BoxFuture<'_, Seen> {
        let (consumer, id) = (consumer.to_owned(), id.to_owned());
        Box::pin(async move {
            let mut transaction = self.pool.begin().await.unwrap();
            let seen = self
                .events
                .processed_once(&mut transaction, &consumer, &id)
                .await
                .unwrap();
            if seen == Seen::First {
                let effect = query(self.named("INSERT INTO {schema}.effects VALUES (1)"));
                effect.execute(&mut *transaction).await.unwrap();
            }
            match commit {
                true => transaction.commit().await.unwrap(),
                false => transaction.rollback().await.unwrap(),
            }
            seen
        })
    }

    fn effects(&self) -> BoxFuture<'_, u64> {
        Box::pin(self.count("SELECT count(*) FROM {schema}.effects"))
    }

    fn sweep(&self, limit: usize) -> BoxFuture<'_, usize> {
        // As if it kept nothing for long; its own task sweeps by itself, and would sweep what other cases count on.
        let shared = &self.events.shared;
        let keep = Duration::from_millis(1);
        Box::pin(async move {
            let swept = sweep(&shared.database, &shared.statements, keep, limit);
            swept.await.unwrap()
        })
    }

    fn begin(&self, sagas: Vec<String>) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let begin =
                self.named("INSERT INTO {schema}.sagas SELECT unnest($1::text[]), 'PENDING'");
            query(begin).bind(sagas).execute(&self.pool).await.unwrap();
        })
    }

    fn stuck(&self) -> Arc<dyn StuckSagas> {
        let select =
            "SELECT id FROM {schema}.sagas WHERE state = 'PENDING' LIMIT $1 FOR UPDATE SKIP LOCKED";
        let cancel = self
            .named("UPDATE {schema}.sagas SET state = 'CANCELLED' WHERE id = $1")
            .0;
        self.events.stuck(self.named(select).0, move |tx, saga| {
            let cancel = AssertSqlSafe(cancel.clone());
            Box::pin(async move {
                query(cancel).bind(&saga).execute(tx).await?;
                if saga.starts_with("broken") {
                    return Err(BoxError::from("its row is broken"));
                }
                let event = Event::builder(format!("{saga}/cancelled")).key(&saga);
                Ok(vec![event.build()?])
            })
        })
    }

    fn sagas(&self, state: &str) -> BoxFuture<'_, u64> {
        let select = format!("SELECT count(*) FROM {{schema}}.sagas WHERE state = '{state}'");
        Box::pin(async move { self.count(&select).await })
    }
}
