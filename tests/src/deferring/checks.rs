//! What must be true of every transaction once all are at their end.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use mamparo_core::clock::{self, SystemClock};
use mamparo_durable::backend::{Backend, QueueName};
use mamparo_durable::machine::{AlertKind, AuditEvent, End, Record, State, TransactionId, Utc};
use tokio::time::sleep;

use super::dependency::{Dependency, LATER, MAX_ATTEMPTS};

/// What was told of the transactions, and by them.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// Those that were begun, and what else was asked of them.
    pub(super) begun: HashMap<String, Option<&'static str>>,
    /// Those that were resolved or cancelled, and are known to be.
    pub(super) done: HashSet<String>,
    /// The alerts about each.
    pub(super) alerts: HashMap<String, HashSet<String>>,
}

impl Told {
    /// Notes an alert, as a worker says it.
    pub(super) fn alert(&mut self, said: &str) {
        let mut words = said.split(' ');
        let (kind, id) = (words.next().unwrap(), words.next().unwrap());
        let alerts = self.alerts.entry(id.to_owned()).or_default();
        alerts.insert(kind.to_owned());
    }
}

/// Waits until so many transactions are at their end, and no message is left.
pub(super) async fn until_all_ended(backend: &Backend, transactions: u64, patience: Duration) {
    let began = clock::now();
    loop {
        let census = backend.store().census(Utc::of(&SystemClock)).await.unwrap();
        let ended = census.counts.iter().filter(|it| it.state.is_terminal());
        let ended: u64 = ended.map(|it| it.transactions).sum();
        let mut left = 0;
        let mut depths = Vec::new();
        for name in QueueName::ALL {
            let depth = backend.queue(name).depth().await.unwrap();
            left += depth.ready + depth.later + depth.taken;
            depths.push((name, depth));
        }
        if ended == transactions && left == 0 {
            return;
        }
        assert!(
            began.elapsed() < patience,
            "{ended} of {transactions} ended: {census:?}, {depths:?}"
        );
        sleep(Duration::from_millis(50)).await;
    }
}

/// Holds each transaction against what the dependency did.
pub(super) async fn each_is_as_the_dependency_says(
    backend: &Backend,
    dependency: &Dependency,
    told: &Told,
) {
    assert_eq!(dependency.wrong(), Vec::<String>::new());
    for (id, asked) in &told.begun {
        let key = TransactionId::new(id.as_str()).unwrap();
        let loaded = backend.store().load(vec![key.clone()]).await.pop();
        let record = loaded
            .unwrap()
            .unwrap()
            .unwrap_or_else(|| panic!("{id} is lost"));
        let history = backend.store().history(key, 0, 10_000).await.unwrap();
        let all = format!(
            "{id} {:?} {history:#?}, dependency {:?}",
            record.progress,
            dependency.done(id)
        );
        ends_as_it_should(&record, dependency, *asked, told, &all);
        history_is_of(&record, &history, &all);
        let end = record.progress.end.unwrap();
        if end.state() == State::Failed && end != End::Cancelled {
            let kind = AlertKind::Failed(end).as_str();
            let heard = told
                .alerts
                .get(id)
                .is_some_and(|kinds| kinds.contains(kind));
            assert!(heard, "nobody was told: {all}");
        }
    }
}

fn ends_as_it_should(
    record: &Record,
    dependency: &Dependency,
    asked: Option<&str>,
    told: &Told,
    all: &str,
) {
    let id = record.terms.id.as_str();
    let progress = &record.progress;
    let (end, attempt) = (progress.end.expect(all), progress.attempt_current);
    assert!(attempt <= MAX_ATTEMPTS, "{all}");
    let meddled = match asked {
        Some("resolve") => end == End::Resolved,
        Some("cancel") => end == End::Cancelled,
        _ => false,
    };
    assert!(meddled || !told.done.contains(id), "{all}");
    if !meddled {
        assert_eq!((end, attempt), dependency.end_of(id), "{all}");
    }
    // Each attempt was made, and the next one after a refusal only; the last may be under way when it is resolved.
    for (number, done) in (1..).zip(dependency.done(id)) {
        match done {
            None => assert!(number > attempt || meddled && number == attempt, "{all}"),
            Some(LATER) => assert!(number <= attempt, "{all}"),
            Some(_) => assert_eq!(number, attempt, "{all}"),
        }
    }
}

fn history_is_of(record: &Record, history: &[AuditEvent], all: &str) {
    let progress = &record.progress;
    let mut state = None;
    for event in history {
        assert_eq!(event.from, state, "{all}");
        assert!(!state.is_some_and(State::is_terminal), "{all}");
        state = Some(event.to);
    }
    assert_eq!(state, Some(progress.state), "{all}");
    assert_eq!(
        history.last().map(|event| event.at),
        Some(progress.updated_at),
        "{all}"
    );
    let claims = history.iter().filter(|event| event.to == State::Sending);
    let claims: Vec<_> = claims.map(|event| event.attempt).collect();
    assert!(claims.is_sorted(), "{all}");
    let last = claims.last().copied().unwrap_or(1);
    assert_eq!(last, progress.attempt_current, "{all}");
}
