//! What `mamparo reconcile` says that it did.

use mamparo_durable::backend::{Backend, Message, NewTransaction, QueueName};
use mamparo_durable::engine::Engine;
use mamparo_durable::machine::{Answer, Outcome, Record, TransactionId, Utc};
use mamparo_sqlite::SqliteDurable;
use tokio::task::JoinSet;

use super::engine::Place;

/// More than one cycle of the reconciler takes.
const STUCK: usize = 1_003;

/// Leaves a transaction where a crash leaves it, long ago; or as no machine leaves it.
async fn leave(engine: Engine, name: String, sound: bool) {
    let terms = engine
        .runner()
        .terms(TransactionId::new(name).unwrap(), "payment", None);
    let mut record = Record::sending(terms);
    record.progress.updated_at = Utc::MIN;
    if !sound {
        record.progress.attempt_next = None;
    }
    let new = NewTransaction::new(record, "5 EUR").unwrap();
    engine.backend().store().begin(new).await.unwrap();
}

async fn bury(backend: &Backend) {
    let answers = backend.queue(QueueName::Answers);
    let id = TransactionId::new("unknown").unwrap();
    let answer = Answer::new(1, 0, Outcome::Success);
    answers
        .publish(vec![Message::Answer { id, answer }])
        .await
        .unwrap();
    let taken = answers
        .take(1, std::time::Duration::from_secs(60))
        .await
        .unwrap();
    answers
        .bury(taken[0].receipt.clone(), "nobody knows it".into())
        .await
        .unwrap();
}

#[tokio::test]
async fn all_cycles_of_a_run_are_counted_together_and_what_is_never_mended_once() {
    let place = Place::new("reconciled", "http://127.0.0.1:9");
    let file = place.store();
    let store = SqliteDurable::open(file.strip_prefix("sqlite:").unwrap()).unwrap();
    let engine = Engine::builder(store.backend()).build().unwrap();
    let stuck = (0..STUCK).map(|number| leave(engine.clone(), format!("stuck-{number}"), true));
    stuck.collect::<JoinSet<_>>().join_all().await;
    leave(engine.clone(), "corrupt".to_owned(), false).await;
    bury(engine.backend()).await;
    let counts = async || {
        let ran = place.run(&["reconcile", "--json"]).await;
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let said = ran.json();
        ["found", "mended", "failed", "dead_letters"].map(|key| said[key].as_u64().unwrap())
    };
    let many = STUCK as u64;
    assert_eq!(counts().await, [many + 1, many, 0, 1]);
    // What was brought on its way a moment ago is left alone.
    assert_eq!(counts().await, [1, 0, 0, 1]);
    let ran = place.run(&["reconcile"]).await;
    let said = String::from_utf8(ran.stdout).unwrap();
    assert_eq!(said, "1 stuck, 0 mended, 0 failed; 1 dead letters\n");
    let fires = engine.backend().queue(QueueName::Fires);
    assert_eq!(
        fires.depth().await.unwrap().ready,
        many,
        "each was fired once"
    );
}
