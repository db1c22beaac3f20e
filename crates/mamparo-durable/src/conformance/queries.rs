//! What people and the reconciler ask of a [`Store`](crate::backend::Store).

use std::time::Duration;

use super::support::{begin, id, load, now, put, record, waiting};
use crate::backend::{Backend, Count, Filter};
use crate::machine::{End, Patience, Progress, Record, State, Terms, Utc};

fn stands(state: State, updated_at: Utc, fire_at: Utc) -> impl FnOnce(&Record) -> Progress {
    move |record| {
        let waits = waiting(record, state, fire_at);
        Progress {
            updated_at,
            attempt_next: waits.attempt_next.filter(|_| state != State::InFlight),
            next_fire_at: waits.next_fire_at.filter(|_| state.is_waiting()),
            ..waits
        }
    }
}

/// What sits in a state past its threshold is found, the oldest first, and nothing else.
pub async fn what_is_stuck_is_found_and_nothing_else(backend: Backend) {
    let minute = Duration::from_secs(60);
    let now = now();
    let old = |minutes: u32| {
        Utc::from_millis(now.millis() - i64::from(minutes) * 60_000).unwrap_or(Utc::MIN)
    };
    put(
        &backend,
        "scheduling",
        stands(State::Scheduling, old(3), now),
    )
    .await;
    put(&backend, "sending", stands(State::Sending, old(4), now)).await;
    put(&backend, "in flight", stands(State::InFlight, old(5), now)).await;
    put(
        &backend,
        "scheduled",
        stands(State::Scheduled, old(6), old(2)),
    )
    .await;
    put(
        &backend,
        "not due",
        stands(State::Scheduled, old(7), now.plus(minute)),
    )
    .await;
    put(&backend, "just written", stands(State::Sending, now, now)).await;
    put(
        &backend,
        "just fired again",
        stands(State::Scheduled, now, old(2)),
    )
    .await;
    put(&backend, "ended", |it| Progress {
        updated_at: old(9),
        state: State::Failed,
        end: Some(End::Exhausted),
        ..it.progress.clone()
    })
    .await;
    let patience = Patience {
        scheduling: minute,
        scheduled: minute,
        sending: minute,
        in_flight: minute,
    };
    let names = |stuck: Vec<Record>| {
        stuck
            .iter()
            .map(|it| it.terms.id.to_string())
            .collect::<Vec<_>>()
    };
    let mut stuck = names(backend.store().stuck(now, patience, 10).await.unwrap());
    stuck.sort_unstable();
    assert_eq!(stuck, ["in flight", "scheduled", "scheduling", "sending"]);
    assert_eq!(
        backend.store().stuck(now, patience, 2).await.unwrap().len(),
        2
    );
    let patient = Patience {
        in_flight: 10 * minute,
        scheduled: 10 * minute,
        ..patience
    };
    assert_eq!(
        names(backend.store().stuck(now, patient, 1).await.unwrap()).len(),
        1
    );
}

/// Transactions are listed by what they are, in pages, each once.
pub async fn transactions_are_listed_in_pages_each_once(backend: Backend) {
    for n in 0..7 {
        let terms = Terms {
            dependency: Some("psp".into()),
            ..(*record(&format!("t-{n}")).terms).clone()
        };
        begin(&backend, &Record::in_flight(terms)).await;
    }
    put(&backend, "waits", |record| {
        waiting(record, State::Scheduled, now())
    })
    .await;
    let mut seen = Vec::new();
    let mut filter = Filter::default()
        .state(State::InFlight)
        .dependency("psp")
        .kind("payment");
    loop {
        let page = backend.store().list(filter.clone(), 3).await.unwrap();
        let Some(last) = page.last() else { break };
        filter = filter.after(last.terms.id.clone());
        seen.extend(page.iter().map(|record| record.terms.id.to_string()));
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..7).map(|n| format!("t-{n}")).collect::<Vec<_>>());
    let list = |filter: Filter| async { backend.store().list(filter, 100).await.unwrap().len() };
    assert_eq!(list(Filter::default()).await, 8);
    assert_eq!(list(Filter::default().state(State::Scheduled)).await, 1);
    assert_eq!(list(Filter::default().kind("other")).await, 0);
    assert_eq!(list(Filter::default().dependency("other")).await, 0);
}

/// The census counts by state and attempt, and knows who is the oldest and who is late.
pub async fn the_census_counts_by_state_and_attempt(backend: Backend) {
    let now = now();
    let hour = Duration::from_secs(3600);
    let late = Utc::from_millis(now.millis() - 3_600_000).unwrap();
    let oldest = Record::in_flight(Terms {
        created_at: late,
        ..(*record("oldest").terms).clone()
    });
    begin(&backend, &oldest).await;
    put(&backend, "late", |record| {
        waiting(record, State::Scheduled, late)
    })
    .await;
    put(&backend, "waits", |record| {
        waiting(record, State::Scheduled, now.plus(hour))
    })
    .await;
    put(&backend, "ended", |it| Progress {
        state: State::Succeeded,
        end: Some(End::Answered),
        ..it.progress.clone()
    })
    .await;
    let mut census = backend.store().census(now).await.unwrap();
    census.counts.sort_unstable();
    let count = |state, transactions| Count {
        state,
        attempt: 1,
        transactions,
    };
    assert_eq!(
        census.counts,
        [
            count(State::InFlight, 1),
            count(State::Scheduled, 2),
            count(State::Succeeded, 1)
        ]
    );
    assert_eq!(
        (census.oldest, census.overdue, census.overdue_since),
        (Some(late), 1, Some(late))
    );
}

/// Transactions are forgotten some time after their end, the first to end first, with their request and history, and their id is free
/// again; nothing that lives is forgotten, however old it is.
pub async fn what_ended_long_ago_is_forgotten_and_nothing_else(backend: Backend) {
    let now = now();
    let old = |minutes: i64| Utc::from_millis(now.millis() - minutes * 60_000).unwrap();
    for (name, minutes, end) in [
        ("just now", 1, Some(End::Resolved)),
        ("waits", 9, None),
        // The last, whose places in a store may be taken again: nothing of theirs must be there.
        ("first", 9, Some(End::Answered)),
        ("second", 8, Some(End::Exhausted)),
    ] {
        put(&backend, name, |it| Progress {
            updated_at: old(minutes),
            state: end.map_or(State::InFlight, End::state),
            end,
            ..it.progress.clone()
        })
        .await;
    }
    let store = backend.store();
    assert_eq!(store.forget(old(10), 10).await.unwrap(), 0);
    assert_eq!(store.forget(old(8), 1).await.unwrap(), 1);
    assert_eq!(load(&backend, &id("first")).await, None);
    assert!(load(&backend, &id("second")).await.is_some());
    assert_eq!(store.forget(old(8), 10).await.unwrap(), 1);
    assert_eq!(store.forget(old(8), 10).await.unwrap(), 0);
    for gone in ["first", "second"] {
        assert_eq!(load(&backend, &id(gone)).await, None);
        assert_eq!(store.request(id(gone)).await.unwrap(), None);
        let history = store.history(id(gone), 0, 10).await.unwrap();
        assert!(history.is_empty(), "{history:?}");
    }
    let count = |state| Count {
        state,
        attempt: 1,
        transactions: 1,
    };
    let mut census = store.census(now).await.unwrap();
    census.counts.sort_unstable();
    let left = [count(State::InFlight), count(State::Succeeded)];
    assert_eq!(census.counts, left);
    begin(&backend, &record("first")).await;
    let history = store.history(id("first"), 0, 10).await.unwrap();
    assert_eq!(history.len(), 1, "{history:?}");
}
