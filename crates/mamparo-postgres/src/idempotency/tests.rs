use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use mamparo::idempotency::{
    Begin, Begun, Fence, Fingerprint, IdempotencyBody, IdempotencyLayer, IdempotencyPolicy,
    IdempotencyStore as _, IdempotencyTx, KeyId, OnExpiry, RecordState, StoreErrorKind, Written,
    conformance,
};
use mamparo_testkit::private::PrivatePostgres;
use sqlx::PgPool;
use tower::util::{BoxCloneSyncService, ServiceExt as _};
use tower::{Layer as _, service_fn};

use super::{PostgresIdempotency, TransactionError};
use crate::tests::support::{schema, settings};

const HOUR: Duration = Duration::from_secs(3600);

async fn fresh() -> PostgresIdempotency {
    let url = PrivatePostgres::shared().await.url();
    PostgresIdempotency::connect(settings(&url).schema(schema()).build().unwrap())
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_is_a_store_of_keys() {
    conformance::all(&Arc::new(fresh().await)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_that_share_it_are_as_one() {
    let url = PrivatePostgres::shared().await.url();
    let settings = settings(&url).schema(schema()).build().unwrap();
    let one = Arc::new(
        PostgresIdempotency::connect(settings.clone())
            .await
            .unwrap(),
    );
    let other = Arc::new(PostgresIdempotency::connect(settings).await.unwrap());
    conformance::of_many_begins_one_runs(&one, &other).await;
    conformance::stale_completions_and_takeovers_race_to_one_answer(&one, &other).await;
}

#[tokio::test]
async fn a_key_of_the_longest_lease_and_retention_is_kept() {
    let store = fresh().await;
    let id = KeyId::from_bytes(*Fence::fresh().as_bytes());
    let begin = Begin::new(
        id,
        Fingerprint::from_bytes([1; 32]),
        Duration::MAX,
        Duration::MAX,
    );
    assert_eq!(
        store.begin(&begin).await.unwrap(),
        Begun::Run { again: false }
    );
    assert_eq!(
        store.renew(begin.lease(), Duration::MAX).await.unwrap(),
        Written::Done
    );
    let found = store.find(id).await.unwrap().unwrap();
    assert!(matches!(found.state, RecordState::Started { lease_left } if lease_left > HOUR));
}

#[tokio::test]
async fn a_server_that_is_away_is_told_and_is_used_again_once_it_is_back() {
    let server = PrivatePostgres::start().await;
    let settings = settings(&server.url()).acquire_timeout(Duration::from_millis(300));
    let store = PostgresIdempotency::connect(settings.build().unwrap())
        .await
        .unwrap();
    let id = KeyId::from_bytes(*Fence::fresh().as_bytes());
    let begin = Begin::new(id, Fingerprint::from_bytes([1; 32]), HOUR, HOUR);
    assert_eq!(
        store.begin(&begin).await.unwrap(),
        Begun::Run { again: false }
    );
    server.kill().await;
    let error = store.find(id).await.unwrap_err();
    assert!(
        matches!(
            error.kind(),
            StoreErrorKind::Unavailable | StoreErrorKind::TimedOut
        ),
        "{error:?}"
    );
    server.restart().await;
    assert!(store.find(id).await.unwrap().is_some());
}

type Body = Full<Bytes>;
type Server =
    BoxCloneSyncService<Request<Body>, Response<IdempotencyBody<Body>>, mamparo_core::BoxError>;

/// A server whose handler answers 500 where it fails.
fn server<F>(
    store: PostgresIdempotency,
    handler: impl Fn(IdempotencyTx) -> F + Clone + Send + Sync + 'static,
) -> Server
where
    F: Future<Output = Result<Response<Bytes>, mamparo_core::BoxError>> + Send + 'static,
{
    let policy = IdempotencyPolicy::for_all_callers().on_expiry(OnExpiry::RunAgain);
    let layer = IdempotencyLayer::new(store, policy.build().unwrap());
    let service = layer.layer(service_fn(move |request: Request<_>| {
        let answer = handler(IdempotencyTx::of(request.extensions()).unwrap().clone());
        async move {
            Ok::<_, Infallible>(match answer.await {
                Ok(response) => response.map(Full::from),
                Err(error) => {
                    let response = Response::builder().status(500);
                    response.body(Full::from(error.to_string())).unwrap()
                }
            })
        }
    }));
    BoxCloneSyncService::new(service)
}

async fn send(server: &Server, key: &str) -> (u16, bool, String) {
    let request = Request::post("/charges").header("idempotency-key", key);
    let request = request.body(Full::from("100")).unwrap();
    let response = server.clone().oneshot(request).await.unwrap();
    let replayed = response.headers().contains_key("idempotent-replayed");
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, replayed, String::from_utf8(body.to_vec()).unwrap())
}

/// A shop of its own, on connections of its own, whose tables are elsewhere.
async fn shop() -> PgPool {
    let shop = PgPool::connect(&PrivatePostgres::shared().await.url())
        .await
        .unwrap();
    let make = "CREATE TABLE IF NOT EXISTS charges (number bigint GENERATED ALWAYS AS IDENTITY, key bytea NOT NULL)";
    // Tests that start together collide over the type's name.
    drop(sqlx::query(make).execute(&shop).await);
    sqlx::query("SELECT FROM charges")
        .execute(&shop)
        .await
        .unwrap();
    shop
}

async fn charge(
    shop: &PgPool,
    store: &PostgresIdempotency,
    key: &IdempotencyTx,
    commits: bool,
) -> Result<Response<Bytes>, mamparo_core::BoxError> {
    let mut transaction = shop.begin().await?;
    let insert =
        sqlx::query("INSERT INTO charges (key) VALUES ($1)").bind(&key.id().as_bytes()[..]);
    insert.execute(&mut *transaction).await?;
    let answer = Response::new(Bytes::from("charged"));
    store.complete_in(&mut transaction, key, &answer).await?;
    if commits {
        transaction.commit().await?;
        return Ok(answer);
    }
    Err("refused".into())
}

async fn charges(shop: &PgPool, key: KeyId) -> i64 {
    let count = sqlx::query_scalar("SELECT count(*) FROM charges WHERE key = $1");
    count
        .bind(&key.as_bytes()[..])
        .fetch_one(shop)
        .await
        .unwrap()
}

/// Remembers the key of the last request.
type Seen = Arc<std::sync::Mutex<Option<KeyId>>>;

#[tokio::test]
async fn effect_and_key_are_one_transaction_or_neither() {
    for (commits, answer) in [(true, (200, "charged")), (false, (500, "refused"))] {
        let (store, shop, seen) = (fresh().await, shop().await, Seen::default());
        let (inner, till, saw) = (store.clone(), shop.clone(), Arc::clone(&seen));
        let server = server(store, move |key| {
            let (store, shop) = (inner.clone(), till.clone());
            *saw.lock().unwrap() = Some(key.id());
            async move { charge(&shop, &store, &key, commits).await }
        });
        for replayed in [false, true, true] {
            assert_eq!(
                send(&server, answer.1).await,
                (answer.0, replayed, answer.1.to_owned())
            );
        }
        let key = seen.lock().unwrap().unwrap();
        assert_eq!(charges(&shop, key).await, i64::from(commits));
    }
}

/// A runner that slept through its lease can't commit any more, and gives no answer.
#[tokio::test]
async fn a_runner_that_was_replaced_commits_nothing() {
    let (store, shop, seen) = (fresh().await, shop().await, Seen::default());
    let (inner, till, saw) = (store.clone(), shop.clone(), Arc::clone(&seen));
    let server = server(store, move |key| {
        let (store, shop) = (inner.clone(), till.clone());
        *saw.lock().unwrap() = Some(key.id());
        async move {
            store.renew(key.lease(), Duration::ZERO).await?;
            let other = Begin::new(key.id(), key.fingerprint(), HOUR, HOUR);
            let begun = store.begin(&other.on_expiry(OnExpiry::RunAgain)).await?;
            assert_eq!(begun, Begun::Run { again: true });
            let error = charge(&shop, &store, &key, true).await.unwrap_err();
            assert!(error.downcast_ref::<TransactionError>().unwrap().is_lost());
            Err(error)
        }
    });
    let (status, _, body) = send(&server, "replaced").await;
    assert_eq!(status, 409, "{body:?}");
    let key = seen.lock().unwrap().unwrap();
    assert_eq!(charges(&shop, key).await, 0);
}

/// Whoever wants the key while its transaction is under way waits for its end, and finds the answer.
#[tokio::test]
async fn a_takeover_waits_for_the_transaction_that_completes() {
    let (store, shop) = (fresh().await, shop().await);
    let inner = store.clone();
    let server = server(store, move |key| {
        let (store, shop) = (inner.clone(), shop.clone());
        async move {
            store.renew(key.lease(), Duration::ZERO).await?;
            let mut transaction = shop.begin().await?;
            let answer = Response::new(Bytes::from("charged"));
            store.complete_in(&mut transaction, &key, &answer).await?;
            let other = Begin::new(key.id(), key.fingerprint(), HOUR, HOUR);
            let other = other.on_expiry(OnExpiry::RunAgain);
            let taker = store.clone();
            let taking = tokio::spawn(async move { taker.begin(&other).await });
            tokio::time::sleep(Duration::from_millis(300)).await;
            assert!(!taking.is_finished());
            transaction.commit().await?;
            let Begun::Found(found) = taking.await?? else {
                panic!("taken over")
            };
            assert!(matches!(found.state, RecordState::Completed(_)));
            Ok(answer)
        }
    });
    assert_eq!(send(&server, "k").await, (200, false, "charged".to_owned()));
}
