use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use mamparo_core::clock::SystemClock;
use mamparo_durable::backend::{Committed, NewTransaction, Outbox as _, Step};
use mamparo_durable::machine::{
    AuditEvent, Cause, Effect, Progress, Record, Schedule, State, Terms, TransactionId, Utc, Write,
};
use mamparo_durable::policy::Policy;
use mamparo_testkit::private::PrivatePostgres;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _};

use crate::{Postgres, Settings, SettingsBuilder};

/// A name that no other test of this server has.
pub(crate) fn schema() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("test_{}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// A backend in a schema of its own.
pub(crate) async fn fresh() -> Postgres {
    fresh_with(|settings| settings).await
}

pub(crate) async fn fresh_with(
    change: impl FnOnce(SettingsBuilder) -> SettingsBuilder,
) -> Postgres {
    let settings = settings(&PrivatePostgres::shared().await.url()).schema(schema());
    Postgres::connect(change(settings).build().unwrap())
        .await
        .unwrap()
}

pub(crate) fn settings(url: &str) -> SettingsBuilder {
    // Servers that share two cores with a build may take their time.
    Settings::builder(url)
        .acquire_timeout(Duration::from_secs(20))
        .statement_timeout(Duration::from_secs(60))
}

/// A connection that sees the same tables.
pub(crate) async fn connection(postgres: &Postgres) -> PgConnection {
    let options = postgres.database().options();
    PgConnection::connect_with(&options).await.unwrap()
}

pub(crate) async fn sql(postgres: &Postgres, statement: &str) {
    let mut connection = connection(postgres).await;
    connection
        .execute(AssertSqlSafe(statement.to_owned()))
        .await
        .unwrap();
}

pub(crate) fn now() -> Utc {
    Utc::of(&SystemClock)
}

pub(crate) fn id(name: &str) -> TransactionId {
    TransactionId::new(name).unwrap()
}

pub(crate) fn record(name: &str) -> Record {
    let terms = Terms::new(id(name), "payment", &Policy::default(), now());
    Record::in_flight(Terms {
        dependency: Some("psp".into()),
        ..terms
    })
}

pub(crate) fn new(name: &str) -> NewTransaction {
    NewTransaction::new(record(name), name.as_bytes().to_vec()).unwrap()
}

/// As handler A does after a refusal: the next attempt stored, scheduled and confirmed.
pub(crate) fn refused(record: &Record, fire_at: Utc) -> Step {
    let from = &record.progress;
    let attempt = from.attempt_current + 1;
    let scheduling = Progress {
        state: State::Scheduling,
        attempt_next: Some(attempt),
        next_fire_at: Some(fire_at),
        reason: Some("CANCELLED".into()),
        updated_at: now(),
        ..from.clone()
    };
    let scheduled = Progress {
        state: State::Scheduled,
        ..scheduling.clone()
    };
    let event = |from, to, cause| AuditEvent {
        attempt,
        fire_at: Some(fire_at),
        ..AuditEvent::new(now(), Some(from), to, cause)
    };
    let mut step = Step::new(record.terms.id.clone());
    let refused = event(from.state, State::Scheduling, Cause::Refused);
    let confirmed = event(State::Scheduling, State::Scheduled, Cause::Confirmed);
    step.writes
        .push(Write::new(from.expect(), scheduling.clone(), refused));
    step.writes
        .push(Write::new(scheduling.expect(), scheduled, confirmed));
    step.effects.push(Effect::Schedule(Schedule {
        attempt,
        seq: 0,
        fire_at,
    }));
    step
}

/// As handler B does after a fire: the attempt claimed, its request sent, confirmed.
pub(crate) fn fired(record: &Record) -> Step {
    let from = &record.progress;
    let attempt = from.attempt_next.unwrap();
    let sending = Progress {
        state: State::Sending,
        attempt_current: attempt,
        next_fire_at: None,
        updated_at: now(),
        ..from.clone()
    };
    let in_flight = Progress {
        state: State::InFlight,
        attempt_next: None,
        ..sending.clone()
    };
    let event = |from, to, cause| AuditEvent {
        attempt,
        ..AuditEvent::new(now(), Some(from), to, cause)
    };
    let mut step = Step::new(record.terms.id.clone());
    let claimed = event(from.state, State::Sending, Cause::Claimed);
    let published = event(State::Sending, State::InFlight, Cause::Published);
    step.writes
        .push(Write::new(from.expect(), sending.clone(), claimed));
    step.writes
        .push(Write::new(sending.expect(), in_flight, published));
    step.effects.push(Effect::Send {
        attempt,
        seq: from.schedule_seq,
    });
    step
}

pub(crate) async fn commit(postgres: &Postgres, step: Step) -> Committed {
    postgres.commit(vec![step]).await.pop().unwrap().unwrap()
}

pub(crate) async fn commit_all(postgres: &Postgres, steps: Vec<Step>) {
    for committed in postgres.commit(steps).await {
        assert_eq!(committed.unwrap(), Committed::Applied { conflict: false });
    }
}

/// Begins transactions and has each refused, so that each waits for that instant.
pub(crate) async fn waiting(
    postgres: &Postgres,
    names: impl Iterator<Item = String>,
    fire_at: Utc,
) {
    let steps = names.map(|name| {
        let record = record(&name);
        let mut step = refused(&record, fire_at);
        step.begin = Some(NewTransaction::new(record, name.into_bytes()).unwrap());
        step
    });
    commit_all(postgres, steps.collect()).await;
}
