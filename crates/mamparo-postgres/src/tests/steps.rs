use std::time::Duration;

use mamparo_durable::backend::{
    Begun, Committed, Created, Filter, Message, Outbox as _, PostponeDue, QueueName,
    Scheduler as _, Step, Store as _, Trouble, Written,
};
use mamparo_durable::machine::{Cause, Effect, Label, Patience, Record, Schedule, State, Utc};

use mamparo_testkit::private::PrivatePostgres;

use super::support::{
    commit, commit_all, fired, fresh, id, new, now, record, refused, settings, sql, waiting,
};
use crate::Postgres;

async fn load(postgres: &Postgres, name: &str) -> Record {
    postgres
        .load(vec![id(name)])
        .await
        .pop()
        .unwrap()
        .unwrap()
        .unwrap()
}

#[tokio::test]
async fn a_transaction_goes_its_whole_way_and_its_history_says_so() {
    let postgres = fresh().await;
    assert_eq!(postgres.begin(new("a")).await.unwrap(), Begun::New);
    let stored = load(&postgres, "a").await;
    assert_eq!(stored.progress, record("a").progress.clone_at(&stored));
    assert_eq!(
        postgres.begin(new("a")).await.unwrap(),
        Begun::Exists(stored.clone())
    );
    assert_eq!(postgres.request(id("a")).await.unwrap().unwrap(), "a");

    let step = refused(&stored, now());
    assert_eq!(
        commit(&postgres, step.clone()).await,
        Committed::Applied { conflict: false }
    );
    let scheduled = load(&postgres, "a").await;
    assert_eq!(scheduled.progress.state, State::Scheduled);
    assert_eq!(
        commit(&postgres, step).await,
        Committed::Missed(Some(scheduled.clone()))
    );

    claim(&postgres, &scheduled).await;
    let causes = |events: Vec<mamparo_durable::machine::AuditEvent>| -> Vec<Cause> {
        events.into_iter().map(|event| event.cause).collect()
    };
    let all = [
        Cause::Begun,
        Cause::Refused,
        Cause::Confirmed,
        Cause::Claimed,
        Cause::Published,
    ];
    assert_eq!(
        causes(postgres.history(id("a"), 0, 100).await.unwrap()),
        all
    );
    assert_eq!(
        causes(postgres.history(id("a"), 1, 2).await.unwrap()),
        all[1..3]
    );
    let census = postgres.census(now()).await.unwrap();
    let counts: Vec<_> = census
        .counts
        .iter()
        .map(|count| (count.state, count.attempt, count.transactions))
        .collect();
    assert_eq!(counts, [(State::InFlight, 2, 1)]);
    assert_eq!(census.oldest, Some(stored.terms.created_at));
}

/// Takes the fire, and the request that its handling sends.
async fn claim(postgres: &Postgres, scheduled: &Record) {
    let fires = postgres.queue(QueueName::Fires);
    let fire = fires
        .take(10, Duration::from_secs(60))
        .await
        .unwrap()
        .pop()
        .unwrap();
    assert_eq!(
        fire.message,
        Message::Fire {
            id: id("a"),
            attempt: 2,
            seq: 0
        }
    );
    let mut step = fired(scheduled);
    step.settle = Some(fire.receipt);
    assert_eq!(
        commit(postgres, step).await,
        Committed::Applied { conflict: false }
    );
    assert_eq!(fires.depth().await.unwrap(), Default::default());
    let requests = postgres.queue(QueueName::Requests);
    let request = requests
        .take(10, Duration::from_secs(60))
        .await
        .unwrap()
        .pop()
        .unwrap();
    let Message::Request(sent) = request.message else {
        panic!("no request")
    };
    assert_eq!((sent.key().as_str(), &sent.body[..]), ("a#2", &b"a"[..]));
    assert_eq!(sent.dependency, Some(Label::from("psp")));
}

/// The same progress, as written at that record's beginning.
trait At {
    fn clone_at(&self, record: &Record) -> Self;
}

impl At for mamparo_durable::machine::Progress {
    fn clone_at(&self, record: &Record) -> Self {
        Self {
            updated_at: record.terms.created_at,
            ..self.clone()
        }
    }
}

#[tokio::test]
async fn of_a_thousand_steps_those_that_do_not_fit_miss_and_the_others_are_done() {
    let postgres = fresh().await;
    let names: Vec<String> = (0..1_000).map(|number| format!("t{number:04}")).collect();
    let begin = names.iter().map(|name| {
        let mut step = Step::new(id(name));
        step.begin = Some(new(name));
        step
    });
    commit_all(&postgres, begin.collect()).await;
    let steps = names.iter().enumerate().map(|(place, name)| {
        let mut record = record(name);
        if place % 10 == 3 {
            record.progress.attempt_current = 7;
        }
        let mut step = refused(&record, now().plus(Duration::from_secs(60)));
        if place % 10 == 5 {
            step.id = id("nobody");
        }
        step
    });
    let done = postgres.commit(steps.collect()).await;
    for (place, done) in done.into_iter().enumerate() {
        match (place % 10, done.unwrap()) {
            (3, Committed::Missed(Some(stored))) => assert_eq!(stored.terms.id, id(&names[place])),
            (5, missed) => assert_eq!(missed, Committed::Missed(None)),
            (_, done) => assert_eq!(done, Committed::Applied { conflict: false }),
        }
    }
    let census = postgres.census(now()).await.unwrap();
    let counts: Vec<_> = census
        .counts
        .iter()
        .map(|count| (count.state, count.transactions))
        .collect();
    assert_eq!(counts, [(State::InFlight, 200), (State::Scheduled, 800)]);
    let listed = postgres
        .list(Filter::default().state(State::Scheduled), 2_000)
        .await
        .unwrap();
    assert_eq!(listed.len(), 800);
    assert!(listed.is_sorted_by_key(|record| record.terms.id.clone()));
}

#[tokio::test]
async fn a_row_that_the_server_refuses_stops_no_other_of_its_batch() {
    let postgres = fresh().await;
    sql(
        &postgres,
        "ALTER TABLE history ADD CHECK (transaction_id <> 't0042')",
    )
    .await;
    let steps = (0..300).map(|number| {
        let name = format!("t{number:04}");
        let mut step = Step::new(id(&name));
        step.begin = Some(new(&name));
        step
    });
    for (place, done) in postgres
        .commit(steps.collect())
        .await
        .into_iter()
        .enumerate()
    {
        if place == 42 {
            let error = done.unwrap_err();
            assert_eq!(error.trouble(), Trouble::Refused, "{error}");
            assert!(error.to_string().contains("23514"), "{error}");
        } else {
            assert_eq!(done.unwrap(), Committed::Applied { conflict: false });
        }
    }
    // Nothing of it was done.
    assert_eq!(
        postgres
            .load(vec![id("t0042")])
            .await
            .pop()
            .unwrap()
            .unwrap(),
        None
    );
    assert_eq!(
        postgres.census(now()).await.unwrap().counts[0].transactions,
        299
    );
}

#[tokio::test]
async fn a_row_that_cannot_be_read_fails_alone() {
    let postgres = fresh().await;
    for name in ["good", "bad"] {
        postgres.begin(new(name)).await.unwrap();
    }
    sql(
        &postgres,
        "UPDATE transactions SET state = 'NONSENSE' WHERE transaction_id = 'bad'",
    )
    .await;
    let mut loaded = postgres.load(vec![id("bad"), id("good"), id("none")]).await;
    assert_eq!(loaded.pop().unwrap().unwrap(), None);
    assert!(loaded.pop().unwrap().unwrap().is_some());
    let error = loaded.pop().unwrap().unwrap_err();
    assert_eq!(error.trouble(), Trouble::Corrupt);
    assert_eq!(
        error.to_string(),
        "transaction bad can't be read: its state is \"NONSENSE\""
    );
    let stuck = postgres
        .stuck(
            now(),
            Patience {
                in_flight: Duration::ZERO,
                ..Patience::default()
            },
            10,
        )
        .await;
    assert_eq!(stuck.unwrap().len(), 1);
}

#[tokio::test]
async fn a_schedule_made_again_is_the_same_and_another_instant_is_a_conflict() {
    let postgres = fresh().await;
    let later = now().plus(Duration::from_secs(3600));
    let schedule = |fire_at| Schedule {
        attempt: 2,
        seq: 0,
        fire_at,
    };
    let create = async |fire_at| {
        postgres
            .create(vec![(id("a"), schedule(fire_at))])
            .await
            .pop()
            .unwrap()
            .unwrap()
    };
    assert_eq!(create(later).await, Created::New);
    assert_eq!(create(later).await, Created::Same);
    assert_eq!(create(now()).await, Created::Conflict);
    postgres.begin(new("a")).await.unwrap();
    let stored = load(&postgres, "a").await;
    let done = commit(&postgres, refused(&stored, now())).await;
    assert_eq!(done, Committed::Applied { conflict: true });
    postgres.delete(id("a"), 2, 0).await.unwrap();
    postgres.delete(id("a"), 2, 0).await.unwrap();
    assert_eq!(create(now()).await, Created::New);
    let fires = postgres.queue(QueueName::Fires);
    assert_eq!(
        fires.take(10, Duration::from_secs(60)).await.unwrap().len(),
        1
    );
    // It has fired: made again, it fires again.
    assert_eq!(create(now()).await, Created::New);
    assert_eq!(
        fires.take(10, Duration::from_secs(60)).await.unwrap().len(),
        1
    );
}

#[tokio::test]
async fn an_open_breaker_moves_what_is_due_once_and_leaves_the_rest() {
    let postgres = fresh().await;
    let due = now();
    waiting(
        &postgres,
        (0..200).map(|number| format!("due{number}")),
        due,
    )
    .await;
    waiting(
        &postgres,
        (0..20).map(|number| format!("later{number}")),
        due.plus(Duration::from_secs(7200)),
    )
    .await;
    sql(
        &postgres,
        "UPDATE transactions SET postponements = max_postponements WHERE transaction_id = 'due7'",
    )
    .await;
    let (until, spread) = (due.plus(Duration::from_secs(600)), Duration::from_secs(60));
    let postpone = PostponeDue::new("psp".into(), due, until, spread, 1_000);
    assert_eq!(postgres.postpone(postpone.clone()).await.unwrap(), 199);
    assert_eq!(postgres.postpone(postpone).await.unwrap(), 0);
    let moved = load(&postgres, "due1").await.progress;
    assert_eq!(
        (moved.state, moved.schedule_seq, moved.postponements),
        (State::Scheduled, 1, 1)
    );
    let fire_at = moved.next_fire_at.unwrap();
    assert!(
        fire_at >= until && fire_at < until.plus(spread),
        "{fire_at}"
    );
    let instants: std::collections::BTreeSet<Utc> = postgres
        .list(Filter::default(), 1_000)
        .await
        .unwrap()
        .iter()
        .filter_map(|record| record.progress.next_fire_at)
        .collect();
    assert!(
        instants.len() > 150,
        "spread over {} instants",
        instants.len()
    );
    let history = postgres.history(id("due1"), 0, 10).await.unwrap();
    let last = history.last().unwrap();
    assert_eq!(
        (last.cause, last.seq, last.fire_at),
        (Cause::Postponed, 1, Some(fire_at))
    );
    // One schedule each, and only what was not moved fires now.
    let fires = postgres.queue(QueueName::Fires);
    assert_eq!(
        fires
            .take(1_000, Duration::from_secs(60))
            .await
            .unwrap()
            .len(),
        1
    );
    assert_eq!(fires.depth().await.unwrap().later, 219);
}

#[tokio::test]
async fn two_engines_that_write_the_same_transactions_miss_and_never_fail() {
    let one = fresh().await;
    let other = one.beside().await;
    let names: Vec<String> = (0..200).map(|number| format!("t{number:03}")).collect();
    waiting(&one, names.iter().cloned(), now()).await;
    let claim = |postgres: Postgres, backwards: bool| {
        let mut names = names.clone();
        if backwards {
            names.reverse();
        }
        tokio::spawn(claim_all(postgres, names))
    };
    let (there, back) = (claim(one.clone(), false), claim(other, true));
    assert_eq!(there.await.unwrap() + back.await.unwrap(), 200);
    assert_eq!(
        one.queue(QueueName::Requests).depth().await.unwrap().ready,
        200
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engines_that_write_the_same_rows_in_opposite_orders_do_not_block_each_other() {
    let server = PrivatePostgres::start().await;
    let one = Postgres::connect(settings(&server.url()).build().unwrap())
        .await
        .unwrap();
    let other = one.beside().await;
    let names: Vec<String> = (0..600).map(|number| format!("t{number:03}")).collect();
    waiting(&one, names.iter().cloned(), now()).await;
    let records = one.load(names.iter().map(|name| id(name)).collect()).await;
    let records: Vec<Record> = records
        .into_iter()
        .map(|record| record.unwrap().unwrap())
        .collect();
    let forth: Vec<Step> = records.iter().map(fired).collect();
    let back: Vec<Step> = forth.iter().rev().cloned().collect();
    let (there, here) = tokio::join!(one.commit(forth), other.commit(back));
    let applied = |done: Vec<Result<Committed, _>>| {
        let done = done.into_iter().map(Result::unwrap);
        done.filter(|done| *done == Committed::Applied { conflict: false })
            .count()
    };
    assert_eq!(applied(there) + applied(here), 600);
    let log = std::fs::read_to_string(server.folder().join("log")).unwrap();
    assert!(!log.contains("deadlock detected"), "{log}");
}

/// Claims what is still there to be claimed, and counts it.
async fn claim_all(postgres: Postgres, names: Vec<String>) -> usize {
    let mut applied = 0;
    for part in names.chunks(50) {
        let loaded = postgres
            .load(part.iter().map(|name| id(name)).collect())
            .await;
        let records = loaded.into_iter().map(|loaded| loaded.unwrap().unwrap());
        let scheduled = records.filter(|record| record.progress.state == State::Scheduled);
        let steps = scheduled.map(|record| fired(&record)).collect();
        for done in postgres.commit(steps).await {
            applied += usize::from(done.unwrap() == Committed::Applied { conflict: false });
        }
    }
    applied
}

#[tokio::test]
async fn a_reason_with_a_nul_which_the_server_can_not_store_is_no_trouble() {
    let postgres = fresh().await;
    postgres.begin(new("a")).await.unwrap();
    let stored = load(&postgres, "a").await;
    let mut step = refused(&stored, now());
    let mut write = step.writes.remove(0);
    write.to.reason = Some("a\0b".into());
    let written = postgres
        .write(vec![(id("a"), write)])
        .await
        .pop()
        .unwrap()
        .unwrap();
    assert_eq!(written, Written::Applied);
    assert_eq!(
        load(&postgres, "a").await.progress.reason,
        Some("a\0b".into())
    );
}

#[tokio::test]
async fn a_step_without_writes_needs_its_transaction_and_is_as_good_twice() {
    let postgres = fresh().await;
    let mut step = Step::new(id("a"));
    step.effects.push(Effect::Refire { attempt: 2, seq: 0 });
    assert_eq!(
        commit(&postgres, step.clone()).await,
        Committed::Missed(None)
    );
    postgres.begin(new("a")).await.unwrap();
    for _ in 0..2 {
        assert_eq!(
            commit(&postgres, step.clone()).await,
            Committed::Applied { conflict: false }
        );
    }
    assert_eq!(
        postgres
            .queue(QueueName::Fires)
            .depth()
            .await
            .unwrap()
            .ready,
        2
    );
}
