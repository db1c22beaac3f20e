use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mamparo_core::clock::{self, Instant, WallClock};
use mamparo_core::{BoxError, Reason, Rejection};
use mamparo_durable::backend::{Message, NewTransaction, QueueName, Request};
use mamparo_durable::engine::{Engine, Transaction};
use mamparo_durable::handler::{Gatekeeper, Listener as _};
use mamparo_durable::machine::{
    Answer, Gate, Outcome, Patience, Record, State, Terms, TransactionId, Utc,
};
use mamparo_durable::memory::Memory;
use mamparo_durable::policy::{Policies, Policy, Wait};
use opentelemetry::Context;
use opentelemetry::trace::{SpanKind, Status, TraceContextExt, Tracer, TracerProvider};
use tower::{Service, ServiceExt, service_fn};

use super::*;
use crate::Metrics;
use crate::metrics::CATALOG;
use crate::testing::{Counted, Kept, Look, Points};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

/// A wall clock that paused time moves.
#[derive(Clone, Copy, Debug)]
struct Paused(Instant);

impl WallClock for Paused {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1_700_000_000) + (clock::now() - self.0)
    }
}

struct Plane {
    engine: Engine,
    memory: Memory,
    metrics: Metrics,
    counted: Counted,
}

impl Plane {
    fn new() -> Self {
        Self::guarded(())
    }

    /// Waits are a minute; whatever is asked before an attempt is claimed is `gatekeeper`.
    fn guarded(gatekeeper: impl Gatekeeper) -> Self {
        let clock = Paused(clock::now());
        let (memory, counted) = (Memory::new(clock), Counted::new());
        let metrics = Metrics::of(&counted.provider);
        let wait = Wait::builder().base(MINUTE).factor(1.0).jitter(0.0);
        let wait = wait.build().unwrap();
        let policy = Policy::builder().business(wait).technical(wait);
        let policy = policy.postponed(wait).max_attempts(4).build().unwrap();
        let engine = Engine::builder(memory.backend())
            .wall_clock(clock)
            .policies(Policies::new(policy))
            .patience(Patience {
                sending: MINUTE,
                ..Patience::default()
            })
            .gatekeeper(gatekeeper)
            .listener(Arc::new(metrics.clone()));
        Self {
            engine: engine.build().unwrap(),
            memory,
            metrics,
            counted,
        }
    }

    async fn begin(&self, name: &str) {
        self.engine.begin(payment(name)).await.unwrap();
    }

    fn points(&self, name: &str) -> Points {
        self.counted.points(name)
    }

    fn watch(&self) -> EngineWatch {
        let engine = self.engine.clone();
        self.metrics.watch_engine(engine, SECOND).unwrap()
    }
}

fn id(name: &str) -> TransactionId {
    TransactionId::new(name).unwrap()
}

fn payment(name: &str) -> Transaction {
    Transaction::new(id(name), "payment", "5 EUR").dependency("psp")
}

fn line(points: &[(&str, u64)]) -> Points {
    let points = points.iter();
    points.map(|(line, it)| ((*line).to_owned(), *it)).collect()
}

/// Refuses the original, does not answer the second attempt the first time, and then does it.
fn provider(
    request: Request,
) -> impl Future<Output = Result<Option<Answer>, BoxError>> + Send + 'static {
    let outcome = match (request.attempt, request.seq) {
        (1, _) => Outcome::Refused,
        (2, 0) => Outcome::Technical,
        _ => Outcome::Success,
    };
    async move { Ok(Some(request.answer(outcome))) }
}

#[tokio::test(start_paused = true)]
async fn answers_schedules_fires_and_lag_are_counted_once_each() {
    let plane = Plane::new();
    let running = plane.engine.run(service_fn(provider));
    plane.begin("p").await;
    tokio::time::sleep(5 * MINUTE).await;
    let record = plane.engine.load(&id("p")).await.unwrap().unwrap();
    assert_eq!(record.progress.state, State::Succeeded);
    let answers = line(&[
        (
            "mamparo.defer.kind=payment mamparo.defer.outcome=refused",
            1,
        ),
        (
            "mamparo.defer.kind=payment mamparo.defer.outcome=success",
            1,
        ),
        (
            "mamparo.defer.kind=payment mamparo.defer.outcome=technical",
            1,
        ),
    ]);
    assert_eq!(plane.points("mamparo.defer.answers"), answers);
    let schedules = line(&[
        ("mamparo.defer.kind=payment mamparo.reason=refused", 1),
        (
            "mamparo.defer.kind=payment mamparo.reason=technical_failure",
            1,
        ),
    ]);
    assert_eq!(plane.points("mamparo.defer.schedules"), schedules);
    let fires = line(&[("mamparo.defer.outcome=applied", 2)]);
    assert_eq!(plane.points("mamparo.defer.fires"), fires);
    let lag = plane.points("mamparo.defer.lag.duration");
    assert_eq!(lag["mamparo.defer.queue=fires"], 2);
    assert_eq!(lag["mamparo.defer.queue=requests"], 3);
    let postponed = line(&[("mamparo.dependency=psp mamparo.reason=technical_failure", 1)]);
    assert_eq!(plane.points("mamparo.defer.postponements"), postponed);
    running.stop().await.unwrap();
}

#[test]
fn what_is_forgotten_is_counted() {
    let plane = Plane::new();
    plane.metrics.forgotten(200);
    plane.metrics.forgotten(7);
    let forgotten = plane.points("mamparo.defer.forgotten_transactions");
    assert_eq!(forgotten, line(&[("", 207)]));
}

#[derive(Debug)]
struct Shut;

impl Gatekeeper for Shut {
    fn gate(&self, _: &Terms) -> Gate {
        Gate::Postpone { until: None }
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_breaker_postpones_is_counted_by_its_dependency() {
    let plane = Plane::guarded(Shut);
    let running = plane.engine.run(service_fn(provider));
    for name in ["a", "b"] {
        plane.begin(name).await;
    }
    tokio::time::sleep(MINUTE + SECOND).await;
    let points = plane.points("mamparo.defer.postponements");
    let postponed = points["mamparo.dependency=psp mamparo.reason=postponed"];
    assert!(postponed >= 2, "{points:?}");
    let alerts = plane.points("mamparo.defer.alerts");
    assert_eq!(alerts["mamparo.reason=breaker_postponing"], 1);
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_is_stored_is_told_by_state_and_attempt_with_ages_and_dead_letters() {
    let plane = Plane::new();
    let _watch = plane.watch();
    let runner = plane.engine.runner();
    for (name, attempt, state) in [
        ("a", 1, State::Scheduling),
        ("b", 1, State::Scheduling),
        ("c", 16, State::Scheduled),
        ("d", 900, State::Scheduled),
    ] {
        let mut record = Record::in_flight(runner.terms(id(name), "payment", None));
        let progress = &mut record.progress;
        progress.state = state;
        progress.attempt_current = attempt;
        progress.attempt_next = Some(attempt + 1);
        progress.next_fire_at = Some(runner.now().plus(MINUTE));
        let new = NewTransaction::new(record, "5 EUR").unwrap();
        plane.engine.backend().store().begin(new).await.unwrap();
    }
    tokio::time::sleep(2 * MINUTE).await;
    let transactions = line(&[
        ("mamparo.defer.attempt=1 mamparo.defer.state=SCHEDULING", 2),
        ("mamparo.defer.attempt=16+ mamparo.defer.state=SCHEDULED", 2),
    ]);
    assert_eq!(plane.points("mamparo.defer.transactions"), transactions);
    let overdue = line(&[("", 4)]);
    assert_eq!(plane.points("mamparo.defer.overdue_transactions"), overdue);
    let age = plane.points("mamparo.defer.overdue.age")[""];
    assert!((59..=60).contains(&age), "{age}");
    let oldest = plane.points("mamparo.defer.oldest_transaction.age")[""];
    assert!((119..=120).contains(&oldest), "{oldest}");
    let none = line(&[
        ("mamparo.defer.queue=answers", 0),
        ("mamparo.defer.queue=fires", 0),
        ("mamparo.defer.queue=requests", 0),
    ]);
    assert_eq!(plane.points("mamparo.defer.dead_letters"), none);
    assert_eq!(plane.points("mamparo.defer.buried_messages"), none);
}

#[tokio::test(start_paused = true)]
async fn dead_letters_are_told_as_long_as_they_are_there_and_counted_once() {
    let plane = Plane::new();
    let _watch = plane.watch();
    tokio::time::sleep(2 * SECOND).await;
    let answers = plane.memory.queue(QueueName::Answers);
    let (id, answer) = (id("nobody"), Answer::new(1, 0, Outcome::Success));
    let message = Message::Answer { id, answer };
    answers.publish(vec![message]).await.unwrap();
    let running = plane.engine.run(service_fn(provider));
    tokio::time::sleep(2 * MINUTE).await;
    let of_answers = "mamparo.defer.queue=answers";
    assert_eq!(plane.points("mamparo.defer.dead_letters")[of_answers], 1);
    assert_eq!(plane.points("mamparo.defer.buried_messages")[of_answers], 1);
    let alerts = plane.points("mamparo.defer.alerts");
    assert_eq!(alerts["mamparo.reason=first_dead_letter"], 1);
    assert_eq!(alerts["mamparo.reason=stuck"], 0, "begins at zero");
    let dead = answers.dead(None, 10).await.unwrap();
    answers
        .discard(vec![dead[0].number], "seen".into())
        .await
        .unwrap();
    tokio::time::sleep(2 * SECOND).await;
    assert_eq!(plane.points("mamparo.defer.dead_letters")[of_answers], 0);
    assert_eq!(plane.points("mamparo.defer.buried_messages")[of_answers], 1);
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_the_reconciler_mends_is_an_alert() {
    let plane = Plane::new();
    let _watch = plane.watch();
    let runner = plane.engine.runner();
    let mut record = Record::sending(runner.terms(id("s"), "payment", None));
    record.progress.updated_at = Utc::MIN;
    let new = NewTransaction::new(record, "5 EUR").unwrap();
    plane.engine.backend().store().begin(new).await.unwrap();
    let running = plane.engine.run(service_fn(provider));
    tokio::time::sleep(MINUTE).await;
    let alerts = plane.points("mamparo.defer.alerts");
    assert_eq!(alerts["mamparo.reason=stuck"], 1, "{alerts:?}");
    running.stop().await.unwrap();
}

/// The catalog is what is written: names, units and attributes.
#[tokio::test(start_paused = true)]
async fn what_is_written_of_an_engine_is_what_the_catalog_says() {
    let plane = Plane::new();
    let _watch = plane.watch();
    let running = plane.engine.run(service_fn(provider));
    plane.begin("p").await;
    tokio::time::sleep(5 * MINUTE).await;
    plane.metrics.forgotten(1);
    let listed = CATALOG
        .iter()
        .filter(|it| it.name.starts_with("mamparo.defer."));
    for metric in listed {
        let points = plane.points(metric.name);
        assert!(!points.is_empty(), "{} is not written", metric.name);
        for line in points.keys().filter(|line| !line.is_empty()) {
            let mut keys = line.split(' ').map(|pair| pair.split('=').next().unwrap());
            assert!(keys.all(|key| metric.attributes.contains(&key)), "{line}");
        }
    }
    running.stop().await.unwrap();
}

/// Law 10: kinds that callers make up fill a table and no more.
#[tokio::test(start_paused = true)]
async fn there_are_so_many_kinds_and_no_more() {
    let plane = Plane::new();
    for number in 0..=MAX_KINDS + 5 {
        let (id, kind) = (id(&format!("p{number}")), format!("kind {number}"));
        let done = Answer::new(1, 0, Outcome::Success);
        let payment = Transaction::new(id, kind.as_str(), "5 EUR").answered(done);
        plane.engine.begin(payment).await.unwrap();
    }
    let points = plane.points("mamparo.defer.answers");
    assert_eq!(points.len(), MAX_KINDS + 1);
    let others = "mamparo.defer.kind=(other) mamparo.defer.outcome=success";
    assert_eq!(points[others], 6);
}

/// As at a reload: the next engine is watched before the last one no longer is.
#[tokio::test(start_paused = true)]
async fn the_later_of_two_watches_is_the_one_that_tells() {
    let (plane, looks) = (Plane::new(), |plane: &Plane| {
        plane.points("mamparo.defer.overdue.age")
    });
    let first = plane.watch();
    let second = plane.watch();
    tokio::time::sleep(SECOND).await;
    drop(first);
    assert!(!looks(&plane).is_empty());
    drop(second);
    assert!(looks(&plane).is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_is_watched_no_more_says_nothing() {
    let plane = Plane::new();
    let watch = plane.watch();
    tokio::time::sleep(SECOND).await;
    assert!(!plane.points("mamparo.defer.overdue.age").is_empty());
    drop(watch);
    tokio::time::sleep(2 * SECOND).await;
    assert!(plane.points("mamparo.defer.overdue.age").is_empty());
}

#[tokio::test]
async fn looking_again_and_again_without_a_pause_is_refused() {
    let plane = Plane::new();
    let refused = plane
        .metrics
        .watch_engine(plane.engine.clone(), Duration::ZERO);
    assert_eq!(
        refused.unwrap_err().to_string(),
        "every = 0ns is refused: must be at least 100 ms: each look asks the store"
    );
}

#[tokio::test(start_paused = true)]
async fn a_retry_is_a_trace_of_its_own_and_links_the_span_that_it_began_in() {
    let (plane, kept) = (Plane::new(), Kept::all());
    let tracer = kept.provider.tracer("shop");
    let below = kept.provider.tracer("client");
    let sender = service_fn(move |request: Request| {
        // As a client stack does: below what is current.
        drop(below.start("POST"));
        provider(request)
    });
    let running = plane
        .engine
        .run(Traced::new(sender).tracer_provider(&kept.provider));
    let original = {
        let context = Context::new().with_span(tracer.start("checkout"));
        let attached = context.clone().attach();
        let payment = traced(payment("p"));
        drop(attached);
        plane.engine.begin(payment).await.unwrap();
        context.span().span_context().clone()
    };
    tokio::time::sleep(5 * MINUTE).await;
    running.stop().await.unwrap();

    let spans = kept.spans();
    let sends: Vec<_> = spans
        .iter()
        .filter(|it| it.name == "mamparo.defer payment")
        .collect();
    let said = |key: &str| {
        sends
            .iter()
            .map(|it| it.text(key).unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        said("mamparo.defer.outcome"),
        ["refused", "technical", "success"]
    );
    assert_eq!(said("mamparo.defer.attempt"), ["1", "2", "2"]);
    assert_eq!(said("mamparo.defer.seq"), ["0", "0", "1"]);
    assert_eq!(said("mamparo.defer.transaction"), ["p"; 3]);
    for send in &sends {
        let link = &send.links.links[0].span_context;
        assert_eq!(
            (link.trace_id(), link.span_id()),
            (original.trace_id(), original.span_id())
        );
        assert_ne!(send.span_context.trace_id(), original.trace_id());
        assert_eq!(send.span_kind, SpanKind::Consumer);
        let child = spans
            .iter()
            .find(|it| it.parent_span_id == send.span_context.span_id());
        assert_eq!(child.unwrap().name, "POST");
    }
    assert_eq!(sends[1].status, Status::error(""));
    assert_eq!(sends[2].status, Status::Unset);
}

fn request(trace: Option<&str>) -> Request {
    let plane = Plane::new();
    let mut terms = plane.engine.runner().terms(id("p"), "payment", None);
    terms.trace = trace.map(Into::into);
    Request::new(&terms, 1, 0, "5 EUR".into())
}

#[tokio::test]
async fn what_is_no_traceparent_links_nothing() {
    let kept = Kept::all();
    let mut sender = Traced::new(service_fn(provider)).tracer_provider(&kept.provider);
    for trace in [None, Some("00-zz-zz-01"), Some("")] {
        sender
            .ready()
            .await
            .unwrap()
            .call(request(trace))
            .await
            .unwrap();
    }
    assert_eq!(kept.spans().len(), 3);
    assert!(kept.spans().iter().all(|span| span.links.links.is_empty()));
}

#[tokio::test]
async fn a_send_that_fails_or_is_dropped_ends_its_span() {
    let kept = Kept::all();
    let refused = || Rejection::refused(Reason::BreakerOpen, "psp".into());
    let failing = service_fn(move |_: Request| async move { Err(BoxError::from(refused())) });
    let mut failing = Traced::new(failing).tracer_provider(&kept.provider);
    assert!(
        failing
            .ready()
            .await
            .unwrap()
            .call(request(None))
            .await
            .is_err()
    );
    let hanging = service_fn(|_: Request| std::future::pending::<Result<_, BoxError>>());
    let mut hanging = Traced::new(hanging).tracer_provider(&kept.provider);
    drop(hanging.ready().await.unwrap().call(request(None)));
    let ends: Vec<_> = kept
        .spans()
        .iter()
        .map(|it| it.text("mamparo.defer.outcome"))
        .collect();
    assert_eq!(
        ends,
        [Some("failed".to_owned()), Some("cancelled".to_owned())]
    );
}

#[test]
fn without_a_span_a_transaction_keeps_no_trace() {
    let payment = traced(payment("p"));
    assert!(
        format!("{payment:?}").contains("trace: None"),
        "{payment:?}"
    );
}
