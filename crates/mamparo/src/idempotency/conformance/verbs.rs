//! Every verb, called once and called twice.

use std::time::Duration;

use tokio::time::sleep;

use super::super::{Begun, Fence, IdempotencyStore, Lease, OnExpiry, Record, RecordState, Written};
use super::setup::{
    FIRST, LONG, OUTLIVED, SHORT, answer, begin, brief, fingerprint, found, is, key, ok, started,
};

/// A key is started once; whoever started it may ask again, and anybody else finds it started.
///
/// # Panics
///
/// Panics if the store does otherwise.
pub async fn begin_twice<St: IdempotencyStore>(store: &St) {
    let mine = begin(key());
    started(store, &mine).await;
    assert_eq!(
        ok(store.begin(&mine).await),
        FIRST,
        "the same fence may ask again"
    );
    let other = begin(mine.id);
    let Begun::Found(record) = ok(store.begin(&other).await) else {
        return assert_eq!(
            "run", "found",
            "another fence must not run a key that is started"
        );
    };
    assert_eq!(record.fingerprint, mine.fingerprint);
    let RecordState::Started { lease_left } = record.state else {
        return assert_eq!("completed", "started", "nobody has completed the key");
    };
    assert!(
        lease_left > LONG / 2 && lease_left <= LONG,
        "the lease that is left is that of the first: {lease_left:?}"
    );
    let mut reused = other;
    reused.fingerprint = fingerprint(2);
    assert!(
        matches!(ok(store.begin(&reused).await), Begun::Found(_)),
        "nor is it run for another request"
    );
}

/// What is known of a key is told as often as it is asked for, and none of it changes.
///
/// # Panics
///
/// Panics if the store does otherwise.
pub async fn find_changes_nothing<St: IdempotencyStore>(store: &St) {
    let id = key();
    for _ in 0..2 {
        assert_eq!(found(store, id).await, None, "an absent key is not found");
    }
    let lease = started(store, &begin(id)).await;
    for _ in 0..2 {
        let record = found(store, id).await;
        let state = record.map(|record| record.state);
        assert!(
            matches!(state, Some(RecordState::Started { .. })),
            "a started key is found started: {state:?}"
        );
    }
    let stored = answer("done");
    is(
        store.complete(lease, &stored, LONG),
        Written::Done,
        "completed",
    )
    .await;
    let completed = Record::new(fingerprint(1), RecordState::Completed(stored));
    for _ in 0..2 {
        assert_eq!(found(store, id).await, Some(completed.clone()));
    }
}

/// The end of a lease is where the last renewal put it, even after it was over; zero ends it at once.
///
/// # Panics
///
/// Panics if the store does otherwise.
pub async fn renew_twice<St: IdempotencyStore>(store: &St) {
    let mine = brief(key());
    let lease = started(store, &mine).await;
    is(store.renew(lease, LONG), Written::Done, "renewed").await;
    is(store.renew(lease, LONG), Written::Done, "renewed twice").await;
    sleep(OUTLIVED).await;
    let other = brief(mine.id);
    assert!(
        matches!(ok(store.begin(&other).await), Begun::Found(_)),
        "a lease that was renewed is not over"
    );
    is(store.renew(lease, Duration::ZERO), Written::Done, "ended").await;
    is(
        store.renew(lease, Duration::ZERO),
        Written::Done,
        "ended twice",
    )
    .await;
    let record = found(store, mine.id).await;
    let over = RecordState::Started {
        lease_left: Duration::ZERO,
    };
    assert_eq!(
        record.map(|record| record.state),
        Some(over),
        "a lease that was ended is over, and its key is kept"
    );
    is(
        store.renew(lease, LONG),
        Written::Done,
        "nobody has taken it",
    )
    .await;
    is(
        store.complete(lease, &answer(""), LONG),
        Written::Done,
        "completed",
    )
    .await;
    is(
        store.renew(lease, LONG),
        Written::Before,
        "nothing is left to renew",
    )
    .await;
}

/// A key is completed once: the first answer stays.
///
/// # Panics
///
/// Panics if the store does otherwise.
pub async fn complete_twice<St: IdempotencyStore>(store: &St) {
    let mine = brief(key());
    let lease = started(store, &mine).await;
    // A runner that was slow, and whom nobody has replaced, is as good as any other.
    sleep(OUTLIVED).await;
    let first = answer("first");
    is(
        store.complete(lease, &first, LONG),
        Written::Done,
        "completed",
    )
    .await;
    is(
        store.complete(lease, &answer("second"), LONG),
        Written::Before,
        "the first stays",
    )
    .await;
    let completed = Record::new(fingerprint(1), RecordState::Completed(first));
    assert_eq!(
        ok(store.begin(&brief(mine.id)).await),
        Begun::Found(completed.clone()),
        "a completed key is not run again, however long ago its lease was over"
    );
    assert_eq!(
        ok(store.begin(&mine).await),
        Begun::Found(completed),
        "not even by the fence that completed it"
    );
}

/// A key for which nothing was done is as good as new; a completed one stays.
///
/// # Panics
///
/// Panics if the store does otherwise.
pub async fn release_twice<St: IdempotencyStore>(store: &St) {
    let id = key();
    let lease = started(store, &begin(id)).await;
    is(store.release(lease), Written::Done, "released").await;
    is(
        store.release(lease),
        Written::Lost,
        "there is nothing to release twice",
    )
    .await;
    assert_eq!(found(store, id).await, None, "a released key is absent");
    let again = started(store, &begin(id)).await;
    is(
        store.complete(lease, &answer("late"), LONG),
        Written::Lost,
        "an earlier fence",
    )
    .await;
    is(
        store.complete(again, &answer("done"), LONG),
        Written::Done,
        "completed",
    )
    .await;
    is(
        store.release(again),
        Written::Before,
        "a completed key stays",
    )
    .await;
    is(
        store.release(lease),
        Written::Lost,
        "to others it is none of theirs",
    )
    .await;
    assert!(found(store, id).await.is_some(), "a completed key stays");
}

/// A lease of a key that was never begun changes nothing.
///
/// # Panics
///
/// Panics if the store does otherwise.
pub async fn what_was_never_begun_is_lost<St: IdempotencyStore>(store: &St) {
    let lease = Lease::new(key(), Fence::fresh());
    is(store.renew(lease, LONG), Written::Lost, "never begun").await;
    is(
        store.complete(lease, &answer(""), LONG),
        Written::Lost,
        "never begun",
    )
    .await;
    is(store.release(lease), Written::Lost, "never begun").await;
    assert_eq!(
        found(store, lease.id).await,
        None,
        "and nothing is made of it"
    );
}

/// A completed key is absent past its retention, and one whose lease is over past the retention after that.
///
/// # Panics
///
/// Panics if the store does otherwise.
pub async fn a_key_that_is_past_its_retention_is_absent<St: IdempotencyStore>(store: &St) {
    let completed = begin(key());
    let lease = started(store, &completed).await;
    is(
        store.complete(lease, &answer("done"), SHORT),
        Written::Done,
        "completed",
    )
    .await;
    let mut dropped = brief(key());
    dropped.retention = SHORT;
    dropped.on_expiry = OnExpiry::Indeterminate;
    started(store, &dropped).await;
    sleep(SHORT + OUTLIVED).await;
    for id in [completed.id, dropped.id] {
        assert_eq!(
            found(store, id).await,
            None,
            "past its retention a key is absent"
        );
        started(store, &begin(id)).await;
    }
    is(
        store.complete(lease, &answer("late"), LONG),
        Written::Lost,
        "its fence is forgotten",
    )
    .await;
}

/// A sweep removes no more than it may, and nothing that is still kept.
///
/// # Panics
///
/// Panics if the store does otherwise.
pub async fn sweeps_are_bounded<St: IdempotencyStore>(store: &St) {
    let kept = begin(key());
    started(store, &kept).await;
    let mut gone = Vec::new();
    for _ in 0..25 {
        let begin = begin(key());
        let lease = started(store, &begin).await;
        is(
            store.complete(lease, &answer(""), SHORT),
            Written::Done,
            "completed",
        )
        .await;
        gone.push(begin.id);
    }
    sleep(OUTLIVED).await;
    assert_eq!(
        ok(store.sweep(0).await),
        0,
        "a sweep of nothing removes nothing"
    );
    loop {
        let swept = ok(store.sweep(10).await);
        assert!(swept <= 10, "a sweep of 10 removed {swept}");
        if swept == 0 {
            break;
        }
    }
    for id in gone {
        assert_eq!(
            found(store, id).await,
            None,
            "what is past its retention is gone"
        );
    }
    assert!(
        found(store, kept.id).await.is_some(),
        "what is kept is not swept"
    );
}
