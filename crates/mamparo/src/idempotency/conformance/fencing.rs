//! Who may run a key, and whose answer counts.

use std::sync::Arc;

use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::super::{Begun, IdempotencyStore, OnExpiry, RecordState, Written};
use super::setup::{
    LONG, OUTLIVED, answer, begin, brief, fingerprint, found, is, key, ok, started,
};

/// How many begin one key at once.
const MANY: usize = 200;

/// A lease that is over is taken by who asks to run again, for the same request, and by nobody else.
///
/// # Panics
///
/// Panics if the store does otherwise.
pub async fn a_lease_that_is_over_is_taken_only_where_that_is_asked_for<St: IdempotencyStore>(
    store: &St,
) {
    let first = brief(key());
    started(store, &first).await;
    assert!(
        matches!(ok(store.begin(&brief(first.id)).await), Begun::Found(_)),
        "a lease that is not over is not taken"
    );
    sleep(OUTLIVED).await;
    let asks = brief(first.id).on_expiry(OnExpiry::Indeterminate);
    let Begun::Found(record) = ok(store.begin(&asks).await) else {
        return assert_eq!("run", "found", "who does not ask to run again does not");
    };
    assert!(
        matches!(record.state, RecordState::Started { lease_left } if lease_left.is_zero()),
        "it is told that the lease is over: {:?}",
        record.state
    );
    let mut reused = brief(first.id);
    reused.fingerprint = fingerprint(2);
    assert!(
        matches!(ok(store.begin(&reused).await), Begun::Found(_)),
        "another request does not take it"
    );
    let second = begin(first.id).on_expiry(OnExpiry::RunAgain);
    for _ in 0..2 {
        let begun = ok(store.begin(&second).await);
        assert!(
            matches!(begun, Begun::Run { .. }),
            "the same request does: {begun:?}"
        );
    }
    assert!(
        matches!(ok(store.begin(&brief(first.id)).await), Begun::Found(_)),
        "once"
    );
}

/// Whoever let its lease run out, and was replaced, can do nothing any more.
///
/// # Panics
///
/// Panics if the store does otherwise.
pub async fn a_stale_runner_changes_nothing<St: IdempotencyStore>(store: &St) {
    let stale = brief(key());
    let old = started(store, &stale).await;
    sleep(OUTLIVED).await;
    let current = begin(stale.id).on_expiry(OnExpiry::RunAgain);
    assert_eq!(
        ok(store.begin(&current).await),
        Begun::Run { again: true },
        "it is told that an earlier lease was over"
    );
    is(
        store.renew(old, LONG),
        Written::Lost,
        "a stale runner renews nothing",
    )
    .await;
    is(store.release(old), Written::Lost, "it releases nothing").await;
    is(
        store.complete(old, &answer("stale"), LONG),
        Written::Lost,
        "it completes nothing",
    )
    .await;
    assert!(
        matches!(ok(store.begin(&stale).await), Begun::Found(_)),
        "nor does it run again by asking again"
    );
    let right = answer("current");
    is(
        store.complete(current.lease(), &right, LONG),
        Written::Done,
        "the key is another's",
    )
    .await;
    is(
        store.complete(old, &answer("stale"), LONG),
        Written::Lost,
        "it completes nothing",
    )
    .await;
    let state = found(store, stale.id).await.map(|record| record.state);
    assert_eq!(
        state,
        Some(RecordState::Completed(right)),
        "its answer is not the key's"
    );
}

/// Of 200 who begin one key at once, half at either handle of a store, one runs.
///
/// # Panics
///
/// Panics if another number does.
pub async fn of_many_begins_one_runs<St: IdempotencyStore>(one: &Arc<St>, other: &Arc<St>) {
    let id = key();
    let line = Arc::new(Barrier::new(MANY));
    let mut tasks = JoinSet::new();
    for number in 0..MANY {
        let store = Arc::clone(if number % 2 == 0 { one } else { other });
        let line = Arc::clone(&line);
        tasks.spawn(async move {
            line.wait().await;
            matches!(ok(store.begin(&begin(id)).await), Begun::Run { .. })
        });
    }
    let run = tasks.join_all().await.into_iter().filter(|run| *run);
    assert_eq!(run.count(), 1, "of {MANY} begins one runs");
}

/// Runners that complete late race with others that take over: whatever the order, one answer stands, and it is of the one
/// who was told so.
///
/// # Panics
///
/// Panics if two answers were taken, or one that is not there.
pub async fn stale_completions_and_takeovers_race_to_one_answer<St: IdempotencyStore>(
    one: &Arc<St>,
    other: &Arc<St>,
) {
    for _ in 0..20 {
        let first = brief(key());
        let old = started(&**one, &first).await;
        is(
            one.renew(old, std::time::Duration::ZERO),
            Written::Done,
            "ended",
        )
        .await;
        let second = begin(first.id).on_expiry(OnExpiry::RunAgain);
        let line = Arc::new(Barrier::new(2));
        let (late, ready) = (Arc::clone(one), Arc::clone(&line));
        let late = tokio::spawn(async move {
            ready.wait().await;
            ok(late.complete(old, &answer("old"), LONG).await)
        });
        line.wait().await;
        let begun = ok(other.begin(&second).await);
        let taken = matches!(begun, Begun::Run { .. });
        let completed = match taken {
            true => ok(other.complete(second.lease(), &answer("new"), LONG).await),
            false => Written::Lost,
        };
        let late = match late.await {
            Ok(written) => written,
            Err(broken) => return assert_eq!("broken", "", "{broken}"),
        };
        let expected = match (late, completed) {
            (Written::Done, Written::Lost) => answer("old"),
            (Written::Lost, Written::Done) => answer("new"),
            both => return assert_eq!("both", "one", "one answer is taken: {both:?}"),
        };
        let state = found(&**one, first.id).await.map(|record| record.state);
        assert_eq!(state, Some(RecordState::Completed(expected)));
    }
}
