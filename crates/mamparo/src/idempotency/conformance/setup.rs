//! What the tests of a store share.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};

use super::super::{
    Answer, Begin, Begun, Fence, Fingerprint, IdempotencyStore, Kept, KeyId, Lease, OnExpiry,
    Record, SealedAnswer, StoreError, Written,
};

/// A lease or retention that a test outlives, and the wait in which it does.
pub(super) const SHORT: Duration = Duration::from_millis(60);
pub(super) const OUTLIVED: Duration = Duration::from_millis(150);

/// One that no test outlives.
pub(super) const LONG: Duration = Duration::from_secs(600);

/// Runs all tests of a store, one after the other.
///
/// # Panics
///
/// Panics if the store breaks one.
pub async fn all<St: IdempotencyStore>(store: &Arc<St>) {
    super::begin_twice(store).await;
    super::find_changes_nothing(store).await;
    super::renew_twice(store).await;
    super::complete_twice(store).await;
    super::release_twice(store).await;
    super::what_was_never_begun_is_lost(store).await;
    super::a_key_that_is_past_its_retention_is_absent(store).await;
    super::sweeps_are_bounded(store).await;
    super::a_lease_that_is_over_is_taken_only_where_that_is_asked_for(store).await;
    super::a_stale_runner_changes_nothing(store).await;
    super::of_many_begins_one_runs(store, store).await;
    super::stale_completions_and_takeovers_race_to_one_answer(store, store).await;
    super::big_answers_come_back_whole(store).await;
    super::binary_answers_come_back_byte_for_byte(store).await;
}

/// A key that nobody else has.
pub(super) fn key() -> KeyId {
    KeyId::from_bytes(*Fence::fresh().as_bytes())
}

pub(super) fn fingerprint(of: u8) -> Fingerprint {
    Fingerprint::from_bytes([of; 32])
}

pub(super) fn begin(id: KeyId) -> Begin {
    Begin::new(id, fingerprint(1), LONG, LONG)
}

/// A begin whose lease a test outlives.
pub(super) fn brief(id: KeyId) -> Begin {
    Begin::new(id, fingerprint(1), SHORT, LONG).on_expiry(OnExpiry::RunAgain)
}

pub(super) fn answer(body: impl Into<Bytes>) -> SealedAnswer {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("text/plain"));
    Answer::new(StatusCode::CREATED, headers, Kept::Body(body.into())).seal()
}

#[track_caller]
pub(super) fn ok<T>(result: Result<T, StoreError>) -> T {
    match result {
        Ok(done) => done,
        Err(error) => fail(&error),
    }
}

#[track_caller]
#[expect(clippy::panic, reason = "a test of a store fails by a panic")]
fn fail(error: &StoreError) -> ! {
    panic!("the store failed: {error}: {error:?}")
}

pub(super) const FIRST: Begun = Begun::Run { again: false };

/// Starts a key, and returns its lease.
pub(super) async fn started<St: IdempotencyStore>(store: &St, begin: &Begin) -> Lease {
    assert_eq!(ok(store.begin(begin).await), FIRST, "a new key is started");
    begin.lease()
}

pub(super) async fn found<St: IdempotencyStore>(store: &St, id: KeyId) -> Option<Record> {
    ok(store.find(id).await)
}

pub(super) async fn is<F>(written: F, expected: Written, why: &str)
where
    F: Future<Output = Result<Written, StoreError>>,
{
    assert_eq!(ok(written.await), expected, "{why}");
}
