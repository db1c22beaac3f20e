//! Payments, made by servers and counted by tests, in the store that has the keys.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use axum::Router;
use axum::http::Response;
use axum::routing::MethodRouter;
use bytes::Bytes;
use mamparo::idempotency::{IdempotencyLayer, IdempotencyPolicy, IdempotencyTx, OnExpiry, Stored};
use mamparo_core::BoxError;
use mamparo_durable::backend::BoxFuture;
use mamparo_durable::events::{Backlog, Event, EventStore, Published, Publisher, Relay};
use mamparo_durable::supervise::Supervisor;
use mamparo_postgres::sqlx::postgres::PgPoolOptions;
use mamparo_postgres::sqlx::{PgPool, query, query_scalar};
use mamparo_postgres::{PostgresEvents, PostgresIdempotency, Settings};
use mamparo_redis::{RedisIdempotency, RedisServer};
use mamparo_sqlite::{SqliteEvents, SqliteIdempotency, TransactionError, complete};
use tokio::time::sleep;

/// Where the payments are, the keys, and the events that tell of payments.
#[derive(Clone)]
pub(super) enum Shop {
    Sqlite(SqliteIdempotency, SqliteEvents),
    Postgres(PostgresIdempotency, PgPool, PostgresEvents),
    /// Payments are lines of a file, since Redis has no transaction with them; whoever reads it has been told.
    Redis(RedisIdempotency, PathBuf),
}

/// How long a payment waits before its effect, before its commit, and before its answer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pauses(pub(super) [Duration; 3]);

impl Shop {
    /// Opens `sqlite FILE`, `postgres URL` or `redis URL FILE`.
    pub(super) async fn open(place: &str) -> Self {
        let mut words = place.split(' ');
        let mut word = || words.next().unwrap();
        match (word(), word()) {
            ("sqlite", file) => Self::sqlite(file).await,
            ("postgres", url) => Self::postgres(url).await,
            (_, url) => {
                let server = RedisServer::builder(url).build().unwrap();
                Self::Redis(RedisIdempotency::new(server), word().into())
            }
        }
    }

    async fn sqlite(file: &str) -> Self {
        let store = SqliteIdempotency::open(file).unwrap();
        let table = "CREATE TABLE IF NOT EXISTS payments (what TEXT NOT NULL)";
        let made =
            store.transaction(move |tx| tx.execute_batch(table).map_err(TransactionError::from));
        made.await.unwrap();
        Self::Sqlite(store, SqliteEvents::open(file).unwrap())
    }

    async fn postgres(url: &str) -> Self {
        let settings = Settings::builder(url).build().unwrap();
        let store = PostgresIdempotency::connect(settings.clone())
            .await
            .unwrap();
        let events = PostgresEvents::connect(settings).await.unwrap();
        let pool = PgPoolOptions::new().max_connections(8);
        let pool = pool.connect(url).await.unwrap();
        Self::Postgres(store, pool, events)
    }

    /// Makes the table, where the store is a server's.
    pub(super) async fn prepare(&self) {
        if let Self::Postgres(_, pool, _) = self {
            let table = "CREATE TABLE payments (id BIGSERIAL, what TEXT NOT NULL)";
            query(table).execute(pool).await.unwrap();
        }
    }

    /// Routes with the layer around them.
    pub(super) fn behind_keys(&self, lease: Duration, pay: MethodRouter) -> Router {
        let policy = IdempotencyPolicy::for_all_callers()
            .required()
            .lease(lease)
            .on_expiry(OnExpiry::RunAgain)
            .stored(Stored::NotServerErrors)
            .build()
            .unwrap();
        let routes = Router::new().route("/payments", pay);
        let http = mamparo::serve::http();
        match self.clone() {
            Self::Sqlite(store, _) => {
                routes.layer(http.idempotency(IdempotencyLayer::new(store, policy)))
            }
            Self::Postgres(store, ..) => {
                routes.layer(http.idempotency(IdempotencyLayer::new(store, policy)))
            }
            Self::Redis(store, _) => {
                routes.layer(http.idempotency(IdempotencyLayer::new(store, policy)))
            }
        }
    }

    /// Pays: the effect, and with it, where the store can, its event and the key's answer.
    pub(super) async fn pay(
        &self,
        key: IdempotencyTx,
        what: String,
        pauses: Pauses,
    ) -> Result<Response<Bytes>, BoxError> {
        let Pauses([before, within, after]) = pauses;
        sleep(before).await;
        let paid = match self {
            Self::Sqlite(store, events) => {
                let events = events.clone();
                let paid = store.transaction(move |tx| {
                    tx.execute("INSERT INTO payments (what) VALUES (?1)", [&what])?;
                    let id = tx.last_insert_rowid();
                    thread::sleep(within);
                    events.put(tx, &event(id, &what))?;
                    let answer = answer(id, &what);
                    complete(tx, &key, &answer)?;
                    Ok::<_, TransactionError>(answer)
                });
                paid.await?
            }
            Self::Postgres(store, pool, events) => {
                let mut tx = pool.begin().await?;
                let insert = "INSERT INTO payments (what) VALUES ($1) RETURNING id";
                let id = query_scalar(insert).bind(&what).fetch_one(&mut *tx).await?;
                sleep(within).await;
                events.put(&mut tx, &event(id, &what)).await?;
                let answer = answer(id, &what);
                store.complete_in(&mut tx, &key, &answer).await?;
                tx.commit().await?;
                answer
            }
            Self::Redis(_, file) => {
                let mut options = std::fs::OpenOptions::new();
                let mut file = options.append(true).create(true).open(file)?;
                file.write_all(format!("{what}\n").as_bytes())?;
                sleep(within).await;
                answer(0, &what)
            }
        };
        sleep(after).await;
        Ok(paid)
    }

    /// The payments that were made for one thing.
    pub(super) async fn paid(&self, what: &str) -> Vec<i64> {
        let what = what.to_owned();
        match self {
            Self::Sqlite(store, _) => {
                let select = "SELECT rowid FROM payments WHERE what = ?1";
                let rows = store.read(move |db| {
                    let mut select = db.prepare_cached(select)?;
                    let rows = select.query_map([what], |row| row.get(0))?;
                    Ok(rows.collect::<Result<_, _>>()?)
                });
                rows.await.unwrap()
            }
            Self::Postgres(_, pool, _) => {
                let select = query_scalar("SELECT id FROM payments WHERE what = $1");
                select.bind(what).fetch_all(pool).await.unwrap()
            }
            Self::Redis(_, file) => {
                let text = std::fs::read_to_string(file).unwrap_or_default();
                text.lines()
                    .filter(|line| *line == what)
                    .map(|_| 0)
                    .collect()
            }
        }
    }

    /// Has a relay publish what there is, and returns what it told of, as often as it did.
    pub(super) async fn published(&self) -> Vec<String> {
        let store: Arc<dyn EventStore> = match self {
            Self::Sqlite(_, events) => Arc::new(events.clone()),
            Self::Postgres(_, _, events) => Arc::new(events.clone()),
            Self::Redis(_, file) => {
                let text = std::fs::read_to_string(file).unwrap();
                return text.lines().map(str::to_owned).collect();
            }
        };
        let heard = Arc::new(Heard::default());
        let relay = Relay::builder("payments", Arc::clone(&store), heard.clone()).build();
        let running = Supervisor::new().worker(relay.unwrap()).run();
        while store.backlog().await.unwrap() != Backlog::default() {
            sleep(Duration::from_millis(10)).await;
        }
        running.stop().await.unwrap();
        std::mem::take(&mut *heard.0.lock().unwrap())
    }
}

/// A broker's place: what it was told.
#[derive(Debug, Default)]
struct Heard(Mutex<Vec<String>>);

impl Publisher for Heard {
    fn publish<'a>(&'a self, event: &'a Event) -> BoxFuture<'a, Published> {
        let told = String::from_utf8(event.payload().to_vec()).unwrap();
        self.0.lock().unwrap().push(told);
        Box::pin(async { Published::Confirmed })
    }
}

fn event(id: i64, what: &str) -> Event {
    let event = Event::builder(format!("payment-{id}")).to("payments", "payment.made");
    event.payload(what.to_owned()).build().unwrap()
}

/// What a payment is answered with.
pub(super) fn answer(id: i64, what: &str) -> Response<Bytes> {
    Response::new(format!("payment {id} of {what}").into())
}
