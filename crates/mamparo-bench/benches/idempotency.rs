//! What an idempotency key costs a server: first executions, replays, and keys among very many.
//!
//! `cargo bench -p mamparo-bench --bench idempotency`; `MAMPARO_BENCH_KEYS=10000000` for the size of the last part, 200 000 else.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program that measures"
)]

#[path = "report/program.rs"]
mod program;

use std::convert::Infallible;
use std::future::ready;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::Full;
use mamparo::idempotency::{
    Answer, Begin, Fence, Fingerprint, IdempotencyLayer, IdempotencyPolicy, IdempotencyStore,
    IdempotencyTx, Kept, KeyId, MemoryStore, OnExpiry,
};
use mamparo_core::clock;
use mamparo_sqlite::{SqliteIdempotency, TransactionError, complete, rusqlite};
use tokio::task::JoinSet;
use tower::{Layer, Service, ServiceExt, service_fn};

use program::{runtime, size};

const HOUR: Duration = Duration::from_secs(3600);
const ANSWER: &str = r#"{"id":"ch_1","amount":100,"status":"succeeded"}"#;
const REQUEST: &str = r#"{"amount":100,"currency":"eur"}"#;

type Body = Full<Bytes>;

fn main() {
    let runtime = runtime();
    let folder = tempfile::tempdir_in(folder()).unwrap();
    let folder = folder.path();
    runtime.block_on(async {
        without_a_key().await;
        replays("memory", MemoryStore::new(), 64, 400_000).await;
        let store = SqliteIdempotency::open(folder.join("replays.db")).unwrap();
        replays("SQLite", store, 64, 100_000).await;
        firsts(folder).await;
        among_many(folder).await;
    });
}

/// Where the files are: below the build's folder, since a temporary one may lie in memory.
fn folder() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

fn policy() -> IdempotencyPolicy {
    let policy = IdempotencyPolicy::for_all_callers();
    policy.on_expiry(OnExpiry::RunAgain).build().unwrap()
}

fn request(key: Option<u64>) -> Request<Body> {
    let request = Request::post("/charges").header("content-type", "application/json");
    let request = match key {
        Some(key) => request.header("idempotency-key", format!("\"key-{key:016x}\"")),
        None => request,
    };
    request.body(Full::from(REQUEST)).unwrap()
}

fn answer() -> Response<Body> {
    let response = Response::builder().header("content-type", "application/json");
    response.body(Full::from(ANSWER)).unwrap()
}

async fn without_a_key() {
    const CALLS: u32 = 200_000;
    let bare = service_fn(|_: Request<Body>| ready(Ok::<_, Infallible>(answer())));
    let off = time_of(CALLS, bare).await;
    let keyed = service_fn(|_: Request<_>| ready(Ok::<_, Infallible>(answer())));
    let layer = IdempotencyLayer::new(MemoryStore::new(), policy());
    let on = time_of(CALLS, layer.layer(keyed)).await;
    println!("a request without a key: {off:.0} ns without the layer, {on:.0} ns with it");
}

async fn time_of<S: Service<Request<Body>>>(calls: u32, mut service: S) -> f64 {
    let begun = clock::now();
    for _ in 0..calls {
        let service = service.ready().await.ok().unwrap();
        drop(service.call(request(None)).await);
    }
    begun.elapsed().as_nanos() as f64 / f64::from(calls)
}

/// Answers that are stored, given again through the layer.
async fn replays<St: IdempotencyStore>(name: &str, store: St, tasks: u64, calls: u64) {
    const KEYS: u64 = 10_000;
    let handler = service_fn(|_: Request<_>| ready(Ok::<_, Infallible>(answer())));
    let service = IdempotencyLayer::new(store, policy()).layer(handler);
    let firsts = service.clone();
    let call = move |key| drop_answer(firsts.clone().oneshot(request(Some(key))));
    let first = rate_of(tasks, KEYS, call).await;
    let rate = rate_of(tasks, calls, move |call| {
        let service = service.clone();
        async move {
            let response = service.oneshot(request(Some(call % KEYS))).await.unwrap();
            assert!(response.headers().contains_key("idempotent-replayed"));
        }
    });
    let again = rate.await;
    println!("{name}: {first:.0} first executions/s, {again:.0} replays/s ({tasks} at once)");
}

async fn drop_answer<T, E>(call: impl Future<Output = Result<T, E>>) {
    drop(call.await);
}

/// Makes so many calls, so many at once; returns how many a second.
async fn rate_of<F>(tasks: u64, calls: u64, call: impl Fn(u64) -> F + Clone + Send + 'static) -> f64
where
    F: Future<Output = ()> + Send,
{
    let begun = clock::now();
    let mut set = JoinSet::new();
    for task in 0..tasks {
        let call = call.clone();
        set.spawn(async move {
            for number in (task..calls).step_by(tasks as usize) {
                call(number).await;
            }
        });
    }
    set.join_all().await;
    calls as f64 / begun.elapsed().as_secs_f64()
}

/// First executions, durable: started and completed, or completed with the effect.
async fn firsts(folder: &Path) {
    const KEYS: u64 = 40_000;
    for tasks in [1, 16, 256] {
        let keys = if tasks == 1 { KEYS / 40 } else { KEYS };
        let store = SqliteIdempotency::open(folder.join(format!("firsts-{tasks}.db"))).unwrap();
        let handler = service_fn(|_: Request<_>| ready(Ok::<_, Infallible>(answer())));
        let service = IdempotencyLayer::new(store, policy()).layer(handler);
        let call = move |key| drop_answer(service.clone().oneshot(request(Some(key))));
        let apart = rate_of(tasks, keys, call).await;
        let together = effects(&folder.join(format!("effects-{tasks}.db")), tasks, keys).await;
        println!(
            "SQLite, {tasks} at once: {apart:.0} keys/s started and completed, {together:.0}/s with an effect in one transaction"
        );
    }
}

async fn effects(file: &Path, tasks: u64, keys: u64) -> f64 {
    let store = SqliteIdempotency::open(file).unwrap();
    let table = "CREATE TABLE charges (cents INTEGER)";
    let made = store.transaction(|tx| tx.execute_batch(table).map_err(TransactionError::from));
    made.await.unwrap();
    let inner = store.clone();
    let handler = service_fn(move |request: Request<_>| {
        let key = IdempotencyTx::of(request.extensions()).unwrap().clone();
        let store = inner.clone();
        async move {
            let charged = store.transaction(move |tx| -> Result<_, TransactionError> {
                tx.prepare_cached("INSERT INTO charges VALUES (100)")?
                    .execute([])?;
                let answer = answer().map(|_| Bytes::from(ANSWER));
                complete(tx, &key, &answer)?;
                Ok(answer)
            });
            Ok::<_, Infallible>(charged.await.unwrap().map(Full::from))
        }
    });
    let service = IdempotencyLayer::new(store, policy()).layer(handler);
    let call = move |key| drop_answer(service.clone().oneshot(request(Some(key))));
    rate_of(tasks, keys, call).await
}

/// Looks among very many live keys, while expired ones are swept and new ones come.
async fn among_many(folder: &Path) {
    let keys: u64 = size("KEYS", 200_000);
    let file = folder.join("many.db");
    drop(SqliteIdempotency::open(&file).unwrap());
    let begun = clock::now();
    fill(&file, keys);
    let size = std::fs::metadata(&file).unwrap().len() >> 20;
    println!(
        "{keys} live keys and {} expired ones: {size} MiB, filled in {:.0?}",
        keys / 10,
        begun.elapsed()
    );
    let store = SqliteIdempotency::builder(&file)
        .sweep_every(None)
        .open()
        .unwrap();
    let store = Arc::new(store);
    let mut lookups = times(20_000, |_| find(&store, keys)).await;
    say("lookup", &mut lookups);
    let sweeping = tokio::spawn(sweep(Arc::clone(&store)));
    let mut writes = times(1_000, |_| first(&store)).await;
    say("first execution while keys are swept", &mut writes);
    let mut lookups = times(5_000, |_| find(&store, keys)).await;
    say("lookup while keys are swept", &mut lookups);
    let mut held = sweeping.await.unwrap();
    println!("{} batches swept", held.len());
    say("batch of a sweep, its commit included", &mut held);
}

fn id(number: u64) -> KeyId {
    let mix = |number: u64| {
        let mut x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    };
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&mix(number).to_be_bytes());
    bytes[8..].copy_from_slice(&mix(!number).to_be_bytes());
    KeyId::from_bytes(bytes)
}

fn sealed() -> mamparo::idempotency::SealedAnswer {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", "application/json".parse().unwrap());
    Answer::new(
        StatusCode::CREATED,
        headers,
        Kept::Body(Bytes::from(ANSWER)),
    )
    .seal()
}

/// By hand, with the indices made at the end: the way through the store would take an hour.
fn fill(file: &Path, keys: u64) {
    let mut connection = rusqlite::Connection::open(file).unwrap();
    let made: Vec<String> = {
        let sql = "SELECT sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'mamparo_idempotency'";
        let mut sql = connection.prepare(sql).unwrap();
        sql.query_map([], |row| row.get(0))
            .unwrap()
            .map(Result::unwrap)
            .collect()
    };
    let drop = "DROP INDEX mamparo_idempotency_id; DROP INDEX mamparo_idempotency_expires_at; PRAGMA synchronous = off;";
    connection.execute_batch(drop).unwrap();
    let answer = sealed();
    let tx = connection.transaction().unwrap();
    {
        let insert = "INSERT INTO mamparo_idempotency VALUES (?1, ?2, ?3, 0, ?4, ?5)";
        let mut insert = tx.prepare(insert).unwrap();
        let (live, gone) = (i64::MAX / 2, 1);
        for number in 0..keys + keys / 10 {
            let expires = if number < keys {
                live + number as i64
            } else {
                gone
            };
            let fence = Fence::from_bytes([7; 16]);
            let id = id(number);
            let row = (
                id.as_bytes(),
                fence.as_bytes(),
                [1_u8; 32],
                expires,
                answer.as_bytes(),
            );
            insert.execute(row).unwrap();
        }
    }
    tx.commit().unwrap();
    for index in made {
        connection.execute_batch(&index).unwrap();
    }
    connection
        .pragma_update(None, "wal_checkpoint", "truncate")
        .unwrap();
}

async fn find(store: &SqliteIdempotency, keys: u64) {
    let number = fastrand::u64(..keys);
    assert!(store.find(id(number)).await.unwrap().is_some());
}

async fn first(store: &SqliteIdempotency) {
    let key = KeyId::from_bytes(*Fence::fresh().as_bytes());
    let begin = Begin::new(key, Fingerprint::from_bytes([1; 32]), HOUR, HOUR);
    store.begin(&begin).await.unwrap();
    store
        .complete(begin.lease(), &sealed(), HOUR)
        .await
        .unwrap();
}

/// Sweeps all that is expired, as the store's own sweeper would; returns how long each batch took.
async fn sweep(store: Arc<SqliteIdempotency>) -> Vec<Duration> {
    let mut held = Vec::new();
    loop {
        let begun = clock::now();
        if store.sweep(100).await.unwrap() == 0 {
            return held;
        }
        held.push(begun.elapsed());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn times<F: Future<Output = ()>>(calls: u32, call: impl Fn(u32) -> F) -> Vec<Duration> {
    let mut times = Vec::new();
    for number in 0..calls {
        let begun = clock::now();
        call(number).await;
        times.push(begun.elapsed());
    }
    times
}

fn say(what: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!(
        "{what}: p50 {:.0?}, p99 {:.0?}, longest {:.0?}",
        at(0.5),
        at(0.99),
        at(1.0)
    );
}
