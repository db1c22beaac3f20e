//! The store, and a layer over it.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use mamparo::idempotency::{
    Answer, Begin, Begun, Fence, Fingerprint, Idempotency, IdempotencyBody, IdempotencyLayer,
    IdempotencyPolicy, IdempotencyStore, IdempotencyTx, Kept, KeyId, Lease, OnExpiry, Written,
    conformance,
};
use mamparo_core::clock;
use rusqlite::{Connection, TransactionBehavior};
use tempfile::TempDir;
use tower::util::BoxCloneSyncService;
use tower::{Layer, ServiceExt, service_fn};

use super::SqliteIdempotency;
use crate::{TransactionError, complete};

const HOUR: Duration = Duration::from_secs(3600);

struct Disk(TempDir);

impl Disk {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("payments.db")
    }

    fn open(&self) -> SqliteIdempotency {
        SqliteIdempotency::open(self.path()).unwrap()
    }

    fn raw(&self) -> Connection {
        let connection = Connection::open(self.path()).unwrap();
        connection.busy_timeout(Duration::from_secs(5)).unwrap();
        connection
    }

    /// With a table for effects.
    fn with_charges(&self) -> SqliteIdempotency {
        let store = self.open();
        self.raw()
            .execute_batch("CREATE TABLE IF NOT EXISTS charges (cents INTEGER)")
            .unwrap();
        store
    }

    fn charges(&self) -> i64 {
        let charges = "SELECT count(*) FROM charges";
        self.raw().query_row(charges, [], |row| row.get(0)).unwrap()
    }
}

fn begin() -> Begin {
    let id = KeyId::from_bytes(*Fence::fresh().as_bytes());
    Begin::new(id, Fingerprint::from_bytes([1; 32]), HOUR, HOUR)
}

fn done(body: &'static str) -> Answer {
    let body = Kept::Body(Bytes::from(body));
    Answer::new(http::StatusCode::OK, http::HeaderMap::new(), body)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_store_passes_the_tests_of_all_stores() {
    let disk = Disk::new();
    conformance::all(&Arc::new(disk.open())).await;
}

/// As two server processes on one machine would.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_handles_of_one_file_are_one_store() {
    let disk = Disk::new();
    let (one, other) = (Arc::new(disk.open()), Arc::new(disk.open()));
    conformance::of_many_begins_one_runs(&one, &other).await;
    conformance::stale_completions_and_takeovers_race_to_one_answer(&one, &other).await;
}

#[tokio::test]
async fn keys_survive_a_restart() {
    let disk = Disk::new();
    let begin = begin();
    let store = disk.open();
    assert_eq!(
        store.begin(&begin).await.unwrap(),
        Begun::Run { again: false }
    );
    let answer = done("kept").seal();
    assert_eq!(
        store.complete(begin.lease(), &answer, HOUR).await.unwrap(),
        Written::Done
    );
    drop(store);
    let store = disk.open();
    assert!(matches!(
        store.begin(&begin).await.unwrap(),
        Begun::Found(_)
    ));
}

#[tokio::test]
async fn no_key_that_was_sent_is_in_the_file() {
    let disk = Disk::new();
    let server = server(disk.open(), async |_| {
        Ok(Response::new(Bytes::from("done")))
    });
    send(&server, "a-secret-key-of-a-caller").await;
    drop(server);
    for entry in std::fs::read_dir(disk.0.path()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        assert!(!bytes.windows(12).any(|part| part == b"a-secret-key"));
    }
}

/// However much there is to sweep, the thread that writes is never held for longer than a batch.
#[tokio::test]
async fn a_sweep_holds_the_writer_for_a_short_time_only() {
    let disk = Disk::new();
    let store = SqliteIdempotency::builder(disk.path())
        .sweep_every(None)
        .open()
        .unwrap();
    let fill = |connection: &Connection| -> Result<(), TransactionError> {
        connection.execute_batch(
            "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 20000)
             INSERT INTO mamparo_idempotency SELECT randomblob(16), randomblob(16), randomblob(32), 0, 0, randomblob(400) FROM n",
        )?;
        Ok(())
    };
    store.transaction(fill).await.unwrap();
    let (mut swept, mut batches) = (0, 0);
    loop {
        let batch = store.sweep(usize::MAX).await.unwrap();
        if batch == 0 {
            break;
        }
        swept += batch;
        batches += 1;
    }
    assert_eq!(swept, 20_000);
    // So many take longer than one batch may.
    assert!(batches > 2, "all was swept in {batches} batches");
}

#[tokio::test]
async fn a_store_sweeps_itself() {
    let disk = Disk::new();
    let store = SqliteIdempotency::builder(disk.path());
    let store = store.sweep_every(Duration::from_millis(10)).open().unwrap();
    for _ in 0..20 {
        let begin = begin();
        store.begin(&begin).await.unwrap();
        let kept = Duration::from_millis(1);
        store
            .complete(begin.lease(), &done("").seal(), kept)
            .await
            .unwrap();
    }
    let rows = || {
        let rows = "SELECT count(*) FROM mamparo_idempotency";
        disk.raw()
            .query_row(rows, [], |row| row.get::<_, i64>(0))
            .unwrap()
    };
    let begun = clock::now();
    while rows() > 0 {
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "{} rows are left",
            rows()
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

type Body = Full<Bytes>;
type Server =
    BoxCloneSyncService<Request<Body>, Response<IdempotencyBody<Body>>, mamparo_core::BoxError>;

/// A server whose handler answers 500 where it fails.
fn server<F>(
    store: SqliteIdempotency,
    handler: impl Fn(IdempotencyTx) -> F + Clone + Send + Sync + 'static,
) -> Server
where
    F: Future<Output = Result<Response<Bytes>, TransactionError>> + Send + 'static,
{
    let policy = IdempotencyPolicy::for_all_callers().on_expiry(OnExpiry::RunAgain);
    let layer = IdempotencyLayer::new(store, policy.build().unwrap());
    let service: Idempotency<_, _> = layer.layer(service_fn(move |request: Request<_>| {
        let answer = handler(IdempotencyTx::of(request.extensions()).unwrap().clone());
        async move {
            Ok::<_, Infallible>(match answer.await {
                Ok(response) => response.map(Full::from),
                Err(_) => {
                    let response = Response::builder().status(500);
                    response.body(Full::from("failed")).unwrap()
                }
            })
        }
    }));
    BoxCloneSyncService::new(service)
}

async fn send(server: &Server, key: &str) -> (u16, bool, Bytes) {
    let request = Request::post("/charges").header("idempotency-key", key);
    let request = request.body(Full::from("100")).unwrap();
    let response = server.clone().oneshot(request).await.unwrap();
    let replayed = response.headers().contains_key("idempotent-replayed");
    let status = response.status().as_u16();
    (
        status,
        replayed,
        response.into_body().collect().await.unwrap().to_bytes(),
    )
}

fn charge(
    connection: &Connection,
    key: &IdempotencyTx,
) -> Result<Response<Bytes>, TransactionError> {
    connection.execute("INSERT INTO charges VALUES (100)", [])?;
    let number = connection.last_insert_rowid();
    let answer = Response::new(Bytes::from(format!("charge {number}")));
    complete(connection, key, &answer)?;
    Ok(answer)
}

#[tokio::test]
async fn effect_and_key_are_one_transaction_on_the_stores_thread() {
    let disk = Disk::new();
    let store = disk.with_charges();
    let inner = store.clone();
    let server = server(store, move |key| {
        let store = inner.clone();
        async move { store.transaction(move |tx| charge(tx, &key)).await }
    });
    for replayed in [false, true, true] {
        assert_eq!(send(&server, "k").await, (200, replayed, "charge 1".into()));
    }
    assert_eq!(disk.charges(), 1);
}

#[tokio::test]
async fn effect_and_key_are_one_transaction_on_a_connection_of_ones_own() {
    let disk = Disk::new();
    let server = server(disk.with_charges(), {
        let path = disk.path();
        move |key| {
            let mut own = Connection::open(&path).unwrap();
            async move {
                let tx = own.transaction_with_behavior(TransactionBehavior::Immediate)?;
                let answer = charge(&tx, &key)?;
                tx.commit()?;
                Ok(answer)
            }
        }
    });
    for replayed in [false, true] {
        assert_eq!(send(&server, "k").await, (200, replayed, "charge 1".into()));
    }
    assert_eq!(disk.charges(), 1);
}

/// Its error is then the answer, and stored as any other is.
#[tokio::test]
async fn a_transaction_that_fails_leaves_neither_effect_nor_answer() {
    let disk = Disk::new();
    let store = disk.with_charges();
    let inner = store.clone();
    let server = server(store, move |key| {
        let store = inner.clone();
        async move {
            let work = move |tx: &Connection| {
                charge(tx, &key)?;
                Err(TransactionError::work("no money"))
            };
            store.transaction(work).await
        }
    });
    assert_eq!(send(&server, "k").await, (500, false, "failed".into()));
    assert_eq!(send(&server, "k").await, (500, true, "failed".into()));
    assert_eq!(disk.charges(), 0);
}

/// A runner that slept through its lease can't commit any more, and gives no answer.
#[tokio::test]
async fn a_runner_that_was_replaced_commits_nothing() {
    let disk = Disk::new();
    let store = disk.with_charges();
    let inner = store.clone();
    let server = server(store, move |key| {
        let store = inner.clone();
        async move {
            store.renew(key.lease(), Duration::ZERO).await?;
            let other = Begin::new(key.id(), key.fingerprint(), HOUR, HOUR);
            let begun = store.begin(&other.on_expiry(OnExpiry::RunAgain)).await?;
            assert_eq!(begun, Begun::Run { again: true });
            let error = store
                .transaction(move |tx| charge(tx, &key))
                .await
                .unwrap_err();
            assert!(error.is_lost());
            Err(error)
        }
    });
    let (status, _, body) = send(&server, "k").await;
    assert_eq!(status, 409, "{body:?}");
    assert_eq!(disk.charges(), 0);
}

#[tokio::test]
async fn a_key_is_completed_in_a_transaction_or_not_at_all() {
    let disk = Disk::new();
    let path = disk.path();
    let server = server(disk.open(), move |key| {
        let own = Connection::open(&path).unwrap();
        async move {
            let answer = Response::new(Bytes::from("done"));
            let error = complete(&own, &key, &answer).unwrap_err();
            assert!(error.to_string().contains("begin one first"));
            Ok(answer)
        }
    });
    assert_eq!(send(&server, "k").await, (200, false, "done".into()));
}

#[tokio::test]
async fn a_lease_of_another_key_is_not_this_keys() {
    let disk = Disk::new();
    let store = disk.open();
    let (one, other) = (begin(), begin());
    store.begin(&one).await.unwrap();
    let mixed = Lease::new(one.id, other.fence);
    assert_eq!(
        store.complete(mixed, &done("").seal(), HOUR).await.unwrap(),
        Written::Lost
    );
}
