//! What a [`Store`](crate::backend::Store) promises.

use super::support::{begin, id, load, now, put, record, stored, transition, waiting, write};
use crate::backend::{Backend, Begun, NewTransaction, Written};
use crate::limits::{
    MAX_ATTEMPTS, MAX_ID_BYTES, MAX_LABEL_BYTES, MAX_POSTPONEMENTS, MAX_REQUEST_BYTES,
};
use crate::machine::{Cause, End, Expect, Label, Progress, Record, State, Terms, Utc};

/// A transaction begins once; whoever begins it again gets what is stored.
pub async fn a_transaction_begins_once(backend: Backend) {
    let first = record("t");
    let new = |record: &Record, request: &'static [u8]| {
        NewTransaction::new(record.clone(), request).unwrap()
    };
    assert_eq!(
        backend.store().begin(new(&first, b"one")).await.unwrap(),
        Begun::New
    );
    let again = Record::sending(Terms {
        kind: "other".into(),
        ..(*first.terms).clone()
    });
    assert_eq!(
        backend.store().begin(new(&again, b"two")).await.unwrap(),
        Begun::Exists(first.clone())
    );
    assert_eq!(load(&backend, &first.terms.id).await, Some(first.clone()));
    assert_eq!(
        backend
            .store()
            .request(first.terms.id.clone())
            .await
            .unwrap()
            .as_deref(),
        Some(&b"one"[..])
    );
    let history = backend
        .store()
        .history(first.terms.id.clone(), 0, 10)
        .await
        .unwrap();
    assert_eq!(history, [new(&first, b"").event()]);
}

/// What is stored is read back whole, at every bound.
pub async fn what_is_stored_is_read_back_whole(backend: Backend) {
    let long = Label::from("'\"\\;ñ\n😀".repeat(MAX_LABEL_BYTES));
    let terms = Terms {
        customer: Some(long.clone()),
        dependency: Some("".into()),
        trace: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into()),
        max_attempts: MAX_ATTEMPTS,
        max_postponements: MAX_POSTPONEMENTS,
        give_up_at: Utc::MAX,
        created_at: Utc::MIN,
        ..Terms::new(
            id(&"ñ'".repeat(MAX_ID_BYTES / 3)),
            long.clone(),
            &crate::policy::Policy::default(),
            now(),
        )
    };
    let begun = Record::sending(terms);
    let request: Vec<u8> = (0..MAX_REQUEST_BYTES)
        .map(|byte| u8::try_from(byte % 251).unwrap_or(0))
        .collect();
    let new = NewTransaction::new(begun.clone(), request.clone()).unwrap();
    assert_eq!(backend.store().begin(new).await.unwrap(), Begun::New);
    let to = Progress {
        state: State::Scheduled,
        attempt_current: MAX_ATTEMPTS - 1,
        attempt_next: Some(MAX_ATTEMPTS),
        schedule_seq: u32::MAX,
        postponements: u32::MAX,
        next_fire_at: Some(Utc::MAX),
        reason: Some(long),
        end: None,
        updated_at: Utc::MAX,
    };
    let mut moved = transition(&begun.progress, &to, Cause::Refused);
    moved.event.reason.clone_from(&to.reason);
    let id = &begun.terms.id;
    assert_eq!(write(&backend, id, moved.clone()).await, Written::Applied);
    let whole = Record::new(begun.terms.clone(), to);
    assert_eq!(stored(&backend, id).await, whole);
    assert_eq!(
        backend
            .store()
            .request(id.clone())
            .await
            .unwrap()
            .as_deref(),
        Some(&request[..])
    );
    assert_eq!(
        backend.store().history(id.clone(), 1, 10).await.unwrap(),
        [moved.event]
    );
    for end in End::ALL {
        ends(&backend, end).await;
    }
}

async fn ends(backend: &Backend, end: End) {
    let to = |record: &Record| Progress {
        state: end.state(),
        end: Some(end),
        ..record.progress.clone()
    };
    let record = put(backend, end.as_str(), to).await;
    assert_eq!(stored(backend, &record.terms.id).await, record);
}

/// A write applies once, and only if all four parts of its condition are as stored.
pub async fn a_write_applies_once_and_only_as_expected(backend: Backend) {
    let before = put(&backend, "t", |record| {
        waiting(record, State::Scheduled, now())
    })
    .await;
    let to = Progress {
        state: State::Sending,
        attempt_current: 2,
        next_fire_at: None,
        ..before.progress.clone()
    };
    let good = transition(&before.progress, &to, Cause::Claimed);
    let expect = good.expect;
    let missed = Written::Missed(Some(before.clone()));
    for bad in [
        Expect {
            state: State::Scheduling,
            ..expect
        },
        Expect {
            attempt_current: 2,
            ..expect
        },
        Expect {
            attempt_next: Some(3),
            ..expect
        },
        Expect {
            attempt_next: None,
            ..expect
        },
        Expect {
            schedule_seq: 1,
            ..expect
        },
    ] {
        let bad = crate::machine::Write {
            expect: bad,
            ..good.clone()
        };
        assert_eq!(write(&backend, &before.terms.id, bad).await, missed);
    }
    assert_eq!(
        write(&backend, &before.terms.id, good.clone()).await,
        Written::Applied
    );
    let after = Record {
        progress: to,
        ..before
    };
    assert_eq!(
        write(&backend, &after.terms.id, good).await,
        Written::Missed(Some(after.clone()))
    );
    let history = backend
        .store()
        .history(after.terms.id.clone(), 0, 10)
        .await
        .unwrap();
    let causes: Vec<Cause> = history.iter().map(|event| event.cause).collect();
    assert_eq!(
        causes,
        [Cause::Begun, Cause::Moved, Cause::Claimed],
        "a write that misses leaves no row"
    );
}

/// That nothing follows is a value like any other in a condition.
pub async fn no_next_attempt_is_part_of_the_condition(backend: Backend) {
    let before = record("t");
    begin(&backend, &before).await;
    let mut bad = transition(
        &before.progress,
        &waiting(&before, State::Scheduling, now()),
        Cause::Refused,
    );
    bad.expect.attempt_next = Some(1);
    assert_eq!(
        write(&backend, &before.terms.id, bad).await,
        Written::Missed(Some(before))
    );
}

/// What is not stored is neither read nor written.
pub async fn an_unknown_transaction_is_none(backend: Backend) {
    let unknown = record("unknown");
    let id = &unknown.terms.id;
    assert_eq!(load(&backend, id).await, None);
    assert_eq!(backend.store().request(id.clone()).await.unwrap(), None);
    assert_eq!(
        backend.store().history(id.clone(), 0, 10).await.unwrap(),
        []
    );
    let moved = transition(
        &unknown.progress,
        &waiting(&unknown, State::Scheduling, now()),
        Cause::Refused,
    );
    assert_eq!(write(&backend, id, moved).await, Written::Missed(None));
    assert_eq!(load(&backend, id).await, None);
}

/// Of many writes and reads in one call, each has its own result, in their order.
pub async fn one_write_that_misses_stops_no_other(backend: Backend) {
    let records: Vec<Record> = (0..60).map(|n| record(&format!("t{n}"))).collect();
    for record in &records {
        begin(&backend, record).await;
    }
    let writes = records.iter().enumerate().map(|(n, record)| {
        let mut moved = transition(
            &record.progress,
            &waiting(record, State::Scheduling, now()),
            Cause::Refused,
        );
        moved.expect.schedule_seq = u32::from(n % 3 == 0);
        (record.terms.id.clone(), moved)
    });
    let written = backend.store().write(writes.collect()).await;
    let missed: Vec<bool> = written
        .into_iter()
        .map(|it| it.unwrap() != Written::Applied)
        .collect();
    assert_eq!(missed, (0..60).map(|n| n % 3 == 0).collect::<Vec<_>>());
    let mut ids: Vec<_> = records
        .iter()
        .map(|record| record.terms.id.clone())
        .collect();
    ids.insert(7, id("unknown"));
    let loaded: Vec<_> = backend
        .store()
        .load(ids)
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect();
    assert_eq!(loaded.len(), 61);
    assert!(
        loaded[7].is_none()
            && loaded[6]
                .as_ref()
                .is_some_and(|it| it.terms.id.as_str() == "t6")
    );
    assert_eq!(
        loaded[8].as_ref().map(|it| it.terms.id.as_str()),
        Some("t7")
    );
}

/// Of writers that race, one wins each time.
pub async fn of_writers_that_race_one_wins(backend: Backend) {
    let before = record("t");
    begin(&backend, &before).await;
    let racers: Vec<_> = (0..16)
        .map(|n| {
            let (backend, before) = (backend.clone(), before.clone());
            tokio::spawn(async move {
                let to = Progress {
                    postponements: n,
                    ..waiting(&before, State::Scheduling, now())
                };
                write(
                    &backend,
                    &before.terms.id,
                    transition(&before.progress, &to, Cause::Refused),
                )
                .await
                    == Written::Applied
            })
        })
        .collect();
    let mut wins = 0;
    for racer in racers {
        wins += usize::from(racer.await.unwrap());
    }
    assert_eq!(wins, 1);
    assert_eq!(
        backend
            .store()
            .history(before.terms.id.clone(), 0, 10)
            .await
            .unwrap()
            .len(),
        2
    );
}

/// History is read in order and in pages.
pub async fn history_is_read_in_order_and_in_pages(backend: Backend) {
    let mut at = record("t");
    begin(&backend, &at).await;
    for seq in 1..=9 {
        let to = Progress {
            schedule_seq: seq,
            ..at.progress.clone()
        };
        assert_eq!(
            write(
                &backend,
                &at.terms.id,
                transition(&at.progress, &to, Cause::Moved)
            )
            .await,
            Written::Applied
        );
        at.progress = to;
    }
    let mut seqs = Vec::new();
    for page in 0..4 {
        let rows = backend
            .store()
            .history(at.terms.id.clone(), page * 3, 3)
            .await
            .unwrap();
        seqs.extend(rows.iter().map(|event| event.seq));
    }
    assert_eq!(seqs, (0..=9).collect::<Vec<_>>());
}
