//! Stores that fail, are slow, or forget.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::Response;
use http_body_util::Full;
use mamparo_core::KeyStep;
use tokio::time::sleep;

use super::super::{
    Begin, Begun, IdempotencyStore, KeyId, Lease, MemoryStore, OnExpiry, OnStoreFailure, Record,
    SealedAnswer, StoreError, StoreErrorKind, Written, conformance,
};
use super::cast::{Server, policy, post};

const SECOND: Duration = Duration::from_secs(1);

/// A store each of whose steps takes a while.
#[derive(Clone, Debug)]
pub(super) struct Slow<St> {
    store: St,
    takes: Duration,
}

impl<St> Slow<St> {
    pub(super) fn new(store: St, takes: Duration) -> Self {
        Self { store, takes }
    }
}

/// A store that fails so many of its steps of one kind.
#[derive(Clone, Debug)]
struct Failing {
    store: MemoryStore,
    begins: Arc<AtomicUsize>,
    completes: Arc<AtomicUsize>,
    /// Whether what failed was done all the same.
    done_all_the_same: bool,
}

impl Failing {
    fn new(begins: usize, completes: usize) -> Self {
        Self {
            store: MemoryStore::new(),
            begins: Arc::new(AtomicUsize::new(begins)),
            completes: Arc::new(AtomicUsize::new(completes)),
            done_all_the_same: false,
        }
    }
}

fn fails(left: &AtomicUsize) -> Result<(), StoreError> {
    let take = |left: usize| left.checked_sub(1);
    match left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
        Ok(_) => Err(StoreError::new(StoreErrorKind::Unavailable, "on purpose")),
        Err(_) => Ok(()),
    }
}

impl IdempotencyStore for Failing {
    async fn begin(&self, begin: &Begin) -> Result<Begun, StoreError> {
        if self.done_all_the_same {
            let begun = self.store.begin(begin).await;
            fails(&self.begins)?;
            return begun;
        }
        fails(&self.begins)?;
        self.store.begin(begin).await
    }

    async fn find(&self, id: KeyId) -> Result<Option<Record>, StoreError> {
        self.store.find(id).await
    }

    async fn renew(&self, lease: Lease, term: Duration) -> Result<Written, StoreError> {
        self.store.renew(lease, term).await
    }

    async fn complete(
        &self,
        lease: Lease,
        answer: &SealedAnswer,
        retention: Duration,
    ) -> Result<Written, StoreError> {
        if self.done_all_the_same {
            let written = self.store.complete(lease, answer, retention).await;
            fails(&self.completes)?;
            return written;
        }
        fails(&self.completes)?;
        self.store.complete(lease, answer, retention).await
    }

    async fn release(&self, lease: Lease) -> Result<Written, StoreError> {
        self.store.release(lease).await
    }

    async fn sweep(&self, limit: usize) -> Result<usize, StoreError> {
        self.store.sweep(limit).await
    }
}

impl<St: IdempotencyStore> IdempotencyStore for Slow<St> {
    async fn begin(&self, begin: &Begin) -> Result<Begun, StoreError> {
        sleep(self.takes).await;
        self.store.begin(begin).await
    }

    async fn find(&self, id: KeyId) -> Result<Option<Record>, StoreError> {
        self.store.find(id).await
    }

    async fn renew(&self, lease: Lease, term: Duration) -> Result<Written, StoreError> {
        self.store.renew(lease, term).await
    }

    async fn complete(
        &self,
        lease: Lease,
        answer: &SealedAnswer,
        retention: Duration,
    ) -> Result<Written, StoreError> {
        sleep(self.takes).await;
        self.store.complete(lease, answer, retention).await
    }

    async fn release(&self, lease: Lease) -> Result<Written, StoreError> {
        self.store.release(lease).await
    }

    async fn sweep(&self, limit: usize) -> Result<usize, StoreError> {
        self.store.sweep(limit).await
    }
}

fn over<St: IdempotencyStore>(store: St, policy: super::super::IdempotencyBuilder) -> Server {
    Server::over(store, policy, async |run, _| {
        Response::new(Full::from(format!("run {run}")))
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_store_in_memory_passes_the_tests_of_all_stores() {
    conformance::all(&Arc::new(MemoryStore::new())).await;
}

/// IV-… store outage: refused with 503 and Retry-After, and nothing is run.
#[tokio::test]
async fn while_the_store_is_away_keyed_requests_are_refused() {
    let server = over(Failing::new(2, 0), policy());
    for _ in 0..2 {
        let got = server.post("k", "x").await;
        assert_eq!(
            (got.status.as_u16(), got.problem().as_str()),
            (503, "idempotency-store-unavailable")
        );
        let wait: u64 = got.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=3).contains(&wait), "{wait}");
    }
    assert_eq!(server.runs(), 0);
    assert!(server.heard.has(KeyStep::StoreFailed));
    assert_eq!(server.post("k", "x").await.body, "run 1");
}

/// Without a key a request needs no store.
#[tokio::test]
async fn while_the_store_is_away_requests_without_a_key_are_served() {
    let server = over(Failing::new(9, 0), policy());
    let mut bare = post("k", "x");
    bare.headers_mut().clear();
    assert_eq!(server.send(bare).await.status, 200);
}

#[tokio::test]
async fn where_that_is_set_requests_are_run_unprotected_and_it_is_told() {
    let open = policy().on_store_failure(OnStoreFailure::RunUnprotected);
    let server = over(Failing::new(2, 0), open);
    for run in 1..=2 {
        let got = server.post("k", "x").await;
        assert_eq!(got.body, format!("run {run}"));
        assert_eq!(got.header("idempotency-recorded"), Some("no"));
    }
    assert!(server.heard.has(KeyStep::RunUnprotected));
}

/// The store took the key, and its answer was lost: the key is free again, or its run is recorded.
#[tokio::test]
async fn a_begin_that_failed_and_was_done_leaves_no_key_behind() {
    let mut store = Failing::new(1, 0);
    store.done_all_the_same = true;
    let server = over(store, policy());
    assert_eq!(server.post("k", "x").await.status, 503);
    sleep(Duration::from_millis(20)).await;
    assert_eq!(server.post("k", "x").await.body, "run 1");

    let mut store = Failing::new(1, 0);
    store.done_all_the_same = true;
    let server = over(
        store,
        policy().on_store_failure(OnStoreFailure::RunUnprotected),
    );
    assert_eq!(server.post("k", "x").await.body, "run 1");
    assert!(server.post("k", "x").await.is_replayed());
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_stored_although_the_store_fails_twice() {
    for done_all_the_same in [false, true] {
        let mut store = Failing::new(0, 2);
        store.done_all_the_same = done_all_the_same;
        let server = over(store, policy());
        assert_eq!(
            server.post("k", "x").await.header("idempotency-recorded"),
            None
        );
        assert!(server.post("k", "x").await.is_replayed());
    }
}

/// The caller gets what was done; its key then belongs to nobody, and by default nothing is run again.
#[tokio::test(start_paused = true)]
async fn an_answer_that_can_not_be_stored_is_given_all_the_same() {
    let server = over(Failing::new(0, 99), policy().lease(SECOND));
    let got = server.post("k", "x").await;
    assert_eq!(
        (got.body.as_ref(), got.header("idempotency-recorded")),
        (&b"run 1"[..], Some("no"))
    );
    assert!(server.heard.has(KeyStep::NotRecorded));
    sleep(2 * SECOND).await;
    assert_eq!(
        server.post("k", "x").await.problem(),
        "idempotency-outcome-indeterminate"
    );
}

#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_answer_is_given_up() {
    let store = Slow::new(MemoryStore::new(), Duration::from_secs(3600));
    let server = over(store, policy().store_timeout(SECOND));
    let before = mamparo_core::clock::now();
    assert_eq!(server.post("k", "x").await.status, 503);
    assert!(before.elapsed() < 2 * SECOND);
}

/// A runner that was replaced changes nothing, and its caller gets the answer of the key and not its own.
#[tokio::test(start_paused = true)]
async fn a_runner_that_was_replaced_gives_no_answer() {
    let store = Arc::new(MemoryStore::new());
    let taken = Arc::clone(&store);
    let stale = Server::over(Arc::clone(&store), policy(), move |_, sent| {
        let store = Arc::clone(&taken);
        async move {
            let tx = super::super::IdempotencyTx::of(sent.extensions())
                .unwrap()
                .clone();
            // As if this process had slept through its lease, and another had taken over.
            store.renew(tx.lease(), Duration::ZERO).await.unwrap();
            let other = Begin::new(tx.id(), tx.fingerprint(), SECOND, SECOND);
            let begun = store.begin(&other.on_expiry(OnExpiry::RunAgain)).await;
            assert_eq!(begun.unwrap(), Begun::Run { again: true });
            Response::new(Full::from("stale"))
        }
    });
    let got = stale.post("k", "x").await;
    assert_eq!(
        (got.status.as_u16(), got.problem().as_str()),
        (409, "idempotency-key-in-progress")
    );
    assert!(stale.heard.has(KeyStep::Lost));
}

#[tokio::test]
async fn a_store_that_forgets_is_told_of_once() {
    let server = Server::counting(policy());
    for key in ["a", "b", "c"] {
        server.post(key, "x").await;
    }
    let steps = server.heard.steps();
    assert_eq!(
        steps
            .iter()
            .filter(|step| **step == KeyStep::Volatile)
            .count(),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn a_full_store_in_memory_forgets_what_is_expired_and_then_refuses() {
    let server = Server::counting(policy().retention(60 * SECOND));
    let small = MemoryStore::with_room_for(1);
    let full = over(small, policy().retention(60 * SECOND));
    let mut stored = 0;
    for key in 0..200 {
        stored += usize::from(full.post(&key.to_string(), "x").await.status == 200);
    }
    assert!((1..=64).contains(&stored), "{stored}");
    sleep(61 * SECOND).await;
    assert_eq!(full.post("0", "x").await.status, 200);
    drop(server);
}

#[tokio::test(start_paused = true)]
async fn a_sweeper_removes_what_is_past_its_retention() {
    let store = Arc::new(MemoryStore::new());
    let server = over(Arc::clone(&store), policy().retention(60 * SECOND));
    for key in 0..1200 {
        server.post(&key.to_string(), "x").await;
    }
    let sweeper =
        super::super::sweep_every(10 * SECOND, Arc::clone(&store), |error| panic!("{error}"));
    let sweeper = tokio::spawn(sweeper);
    sleep(75 * SECOND).await;
    assert_eq!(store.sweep(usize::MAX).await.unwrap(), 0);
    sweeper.abort();
}
