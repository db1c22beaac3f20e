//! What the real service does now and then, and a local one never.

use mamparo_durable::backend::{
    Begun, Census, Filter, NewTransaction, Step, Store as _, Trouble, Written,
};
use mamparo_durable::machine::{Cause, End, Progress, Record, State, Utc};

use mamparo_testkit::private::PrivateMoto;

use super::support::{
    Ear, Fault, connect, fresh, heard, id, make_tables_with, now, record, settings, transition,
    waiting,
};
use crate::store::DynamoStore;
use crate::store::schema::{ID, PART, PROJECTED, RECORD};
use crate::store::text;

const TRANSACT: &str = "TransactWriteItems";

async fn begin(store: &DynamoStore, record: &Record) {
    let new = NewTransaction::new(record.clone(), &b"the request"[..]).unwrap();
    assert_eq!(store.begin(new).await.unwrap(), Begun::New);
}

async fn write(store: &DynamoStore, record: &Record, to: &Progress) -> Written {
    let write = transition(&record.progress, to, Cause::Refused);
    let written = store.write(vec![(record.terms.id.clone(), write)]).await;
    written.into_iter().next().unwrap().unwrap()
}

#[tokio::test]
async fn a_conflict_with_others_and_a_service_that_is_down_for_a_moment_are_waited_for() {
    let ear = Ear::default();
    let store = heard(&ear).await;
    let at = record("t");
    begin(&store, &at).await;
    for fault in [
        Fault::Conflict,
        Fault::InProgress,
        Fault::Down,
        Fault::Conflict,
    ] {
        ear.fault(TRANSACT, fault);
    }
    let to = waiting(&at, State::Scheduling, now());
    assert_eq!(write(&store, &at, &to).await, Written::Applied);
    assert_eq!(ear.faults_left(), 0);
    let history = store.history(id("t"), 0, 10).await.unwrap();
    assert_eq!(history.len(), 2, "{history:?}");
}

#[tokio::test]
async fn a_conflict_that_does_not_end_is_told_and_nothing_is_written() {
    let ear = Ear::default();
    let store = heard(&ear).await;
    let at = record("t");
    begin(&store, &at).await;
    for _ in 0..20 {
        ear.fault(TRANSACT, Fault::Conflict);
    }
    let step = |to| {
        let mut step = Step::new(id("t"));
        step.writes
            .push(transition(&at.progress, to, Cause::Refused));
        step
    };
    let to = waiting(&at, State::Scheduling, now());
    let error = store.commit(&step(&to), None).await.unwrap_err();
    assert_eq!(error.trouble(), Trouble::Unavailable);
    assert_eq!(
        error.to_string(),
        "others are at work on transaction t; it is tried again"
    );
    assert_eq!(store.stored(&id("t")).await.unwrap(), Some(at.clone()));
}

/// Here the second try misses, for the local server forgets tokens; the service itself knows the token and says that it is done.
#[tokio::test]
async fn a_write_whose_answer_is_lost_is_done_once() {
    let ear = Ear::default();
    let store = heard(&ear).await;
    let at = record("t");
    begin(&store, &at).await;
    ear.fault(TRANSACT, Fault::AnswerLost);
    let to = waiting(&at, State::Scheduling, now());
    let after = Record {
        progress: to.clone(),
        ..at.clone()
    };
    let written = write(&store, &at, &to).await;
    assert!(
        written == Written::Applied || written == Written::Missed(Some(after.clone())),
        "{written:?}"
    );
    assert_eq!(store.stored(&id("t")).await.unwrap(), Some(after));
    let history = store.history(id("t"), 0, 10).await.unwrap();
    assert_eq!(history.len(), 2, "{history:?}");
}

#[tokio::test]
async fn an_expired_session_and_a_wrong_clock_are_each_told_in_one_line() {
    let ear = Ear::default();
    let store = heard(&ear).await;
    for (fault, words) in [
        (
            Fault::Expired,
            "DynamoDB refuses an expired token: renew the session of these credentials",
        ),
        (
            Fault::Skewed,
            "DynamoDB refuses the time of this machine's clock: set the clock",
        ),
    ] {
        // As often as is tried.
        for _ in 0..3 {
            ear.fault("GetItem", fault);
        }
        let error = store.stored(&id("t")).await.unwrap_err();
        assert_eq!(error.to_string(), words);
        assert!(error.is_transient(), "it is waited for, and nothing ends");
        ear.forget();
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_in_one_line() {
    let aws = connect(settings("http://127.0.0.1:1"), &Ear::default()).await;
    let error = DynamoStore::new(aws).check(true).await.unwrap_err();
    assert_eq!(error.to_string(), "DynamoDB does not answer");
    assert_eq!(error.trouble(), Trouble::Unavailable);
}

#[tokio::test]
async fn what_cant_be_read_fails_alone() {
    let store = fresh().await;
    begin(&store, &record("good")).await;
    begin(&store, &record("bad")).await;
    let broken = store
        .client()
        .update_item()
        .table_name(store.table())
        .key(ID, text("bad"))
        .key(PART, text(RECORD))
        .update_expression("SET attempt_current = :many")
        .expression_attribute_values(":many", text("many"));
    broken.send().await.unwrap();
    let loaded = store.load(vec![id("good"), id("bad"), id("good")]).await;
    let [good, bad, again] = &loaded[..] else {
        panic!("{loaded:?}");
    };
    assert!(good.as_ref().is_ok_and(Option::is_some));
    assert!(again.as_ref().is_ok_and(Option::is_some));
    let error = bad.as_ref().unwrap_err();
    assert_eq!(error.trouble(), Trouble::Corrupt);
    assert_eq!(
        error.to_string(),
        "transaction bad can't be read: its attempt_current is no number"
    );
    assert_eq!(store.list(Filter::default(), 10).await.unwrap().len(), 1);
    let census: Census = store.census(now()).await.unwrap();
    assert_eq!(census.counts.len(), 1);
}

/// Whoever forgets the same at the same time, or after it, takes nothing of what has its id now.
#[tokio::test]
async fn what_begins_again_under_a_forgotten_id_keeps_its_request_and_history() {
    let store = fresh().await;
    let at = record("t");
    begin(&store, &at).await;
    let to = Progress {
        state: State::Failed,
        end: Some(End::Exhausted),
        ..at.progress.clone()
    };
    assert_eq!(write(&store, &at, &to).await, Written::Applied);
    let forgotten = tokio::join!(store.forget(now(), 10), store.forget(now(), 10));
    assert_eq!(forgotten.0.unwrap() + forgotten.1.unwrap(), 1);
    begin(&store, &record("t")).await;
    assert_eq!(store.forget(Utc::MAX, 10).await.unwrap(), 0);
    assert!(store.request(id("t")).await.unwrap().is_some());
    assert_eq!(store.history(id("t"), 0, 10).await.unwrap().len(), 1);
}

/// The history of a transaction that was postponed a hundred times is more than fits into one transaction of the service.
#[tokio::test]
async fn a_long_history_is_forgotten_too() {
    let store = fresh().await;
    let mut at = record("t");
    begin(&store, &at).await;
    for seq in 1..=120 {
        let to = Progress {
            schedule_seq: seq,
            ..at.progress.clone()
        };
        assert_eq!(write(&store, &at, &to).await, Written::Applied);
        at.progress = to;
    }
    let end = Progress {
        state: State::Failed,
        end: Some(End::Cancelled),
        ..at.progress.clone()
    };
    assert_eq!(write(&store, &at, &end).await, Written::Applied);
    assert_eq!(store.history(id("t"), 100, 100).await.unwrap().len(), 22);
    assert_eq!(store.forget(now(), 10).await.unwrap(), 1);
    assert_eq!(store.history(id("t"), 0, 100).await.unwrap(), []);
    assert_eq!(store.request(id("t")).await.unwrap(), None);
}

/// What ends is removed by the service itself if nobody forgets it: all of its items say when.
#[tokio::test]
async fn all_items_of_what_ended_expire() {
    let store = fresh().await;
    let at = record("t");
    begin(&store, &at).await;
    let to = Progress {
        state: State::Succeeded,
        end: Some(End::Answered),
        ..at.progress.clone()
    };
    let expiring = || async {
        let all = store.client().scan().table_name(store.table());
        let items = all.send().await.unwrap().items.unwrap();
        let expire = items.iter().filter(|item| item.contains_key("expires_at"));
        (expire.count(), items.len())
    };
    assert_eq!(expiring().await, (1, 3), "only its history, and that late");
    assert_eq!(write(&store, &at, &to).await, Written::Applied);
    assert_eq!(expiring().await, (4, 4));
}

/// What `check` says when the table is changed so.
async fn checked(key: [&str; 2], projected: &[&str]) -> String {
    let url = PrivateMoto::shared().await.url();
    let aws = connect(settings(&url), &Ear::default()).await;
    let missing = DynamoStore::new(aws.clone()).check(true).await.unwrap_err();
    assert_eq!(missing.trouble(), Trouble::Incompatible);
    let name = aws.names().transactions();
    let words =
        format!("DynamoDB has no table {name} in this region and account: run `mamparo aws apply`");
    assert_eq!(missing.to_string(), words);
    make_tables_with(&aws, key, projected).await;
    let error = DynamoStore::new(aws).check(true).await.unwrap_err();
    assert_eq!(error.trouble(), Trouble::Incompatible);
    error.to_string().replace(&name, "TABLE")
}

#[tokio::test]
async fn a_table_that_is_missing_or_of_another_program_is_told_before_an_engine_starts() {
    let remedy = "choose another prefix, or let `mamparo aws check` say what differs";
    assert_eq!(
        checked(["id", "sort"], &PROJECTED).await,
        format!("TABLE has another key than id, part: {remedy}")
    );
    assert_eq!(
        checked(["id", "part"], &["kind"]).await,
        format!("index by_state lacks an attribute: {remedy}")
    );
    fresh().await.check(true).await.unwrap();
}
