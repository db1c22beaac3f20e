use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mamparo_core::breaker::{BreakerCause, BreakerDecision, BreakerState, Transition};
use mamparo_core::grpc::Code;
use mamparo_core::{
    CallContext, Cause, Deadline, Dependency, Event, FallbackEnd, KeyStep, Kind, LayerKind,
    NotResent, Observer, Reason, Rejection, Resend, ShedBy, Verdict, What, clock,
};
use tracing::field::{Field, Visit};
use tracing::{Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use super::record::level;
use super::*;

const MS: Duration = Duration::from_millis(1);
const FAILED: Verdict = Verdict::failure(Kind::Unavailable, Resend::IfIdempotent);

/// One record: its level, its target, its fields as text.
type Line = (Level, String, BTreeMap<&'static str, String>);

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<Line>>>);

struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name(), format!("i64 {value}"));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        panic!("{} = {value} is a u64", field.name());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields(BTreeMap::new());
        event.record(&mut fields);
        let meta = event.metadata();
        let line = (*meta.level(), meta.target().to_owned(), fields.0);
        self.0.lock().unwrap().push(line);
    }
}

fn written(context: &CallContext, whats: &[What<'_>]) -> Vec<Line> {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::registry().with(lines.clone());
    let observer: Arc<dyn Observer> = Arc::new(TracingObserver);
    tracing::subscriber::with_default(subscriber, || {
        for what in whats {
            Event::report(Some(&observer), context, *what);
        }
    });
    let lines = lines.0.lock().unwrap();
    lines.clone()
}

fn context() -> CallContext {
    let now = clock::now();
    CallContext::join(LayerKind::Retry, Dependency::named("catalog"))
        .started_at(now)
        .with_deadline(Deadline::after(now, 2_000 * MS))
        .with_attempt(1, 3, Cause::Original)
        .with_attempt_timeout(now, 500 * MS)
        .with_key_hash(NonZeroU64::new(0xbeef))
}

fn scheduled() -> What<'static> {
    What::ResendScheduled {
        next: 2,
        reason: Kind::Unavailable,
        wait: 80 * MS,
        hinted: false,
        remaining: Some(1_900 * MS),
    }
}

fn not_resent(verdict: Verdict) -> What<'static> {
    What::NotResent {
        verdict,
        reason: NotResent::AttemptsExhausted,
    }
}

fn ended(verdict: Verdict) -> What<'static> {
    What::OperationEnded {
        verdict,
        attempts: 3,
        elapsed: 1_200 * MS,
    }
}

#[tokio::test(start_paused = true)]
async fn a_scheduled_resend_says_all_that_is_known() {
    let context = context();
    tokio::time::advance(100 * MS).await;
    let lines = written(&context, &[scheduled()]);
    let (level, target, fields) = &lines[0];
    assert_eq!((*level, target.as_str()), (Level::INFO, TARGET));
    let says = |key: &str| fields.get(key).map(String::as_str);
    assert_eq!(says("message"), Some("resend scheduled"));
    assert_eq!(says("dependency"), Some("catalog"));
    let id = context.operation().unwrap().to_string();
    assert_eq!(says("operation_id"), Some(id.as_str()));
    assert_eq!(says("idempotency_key_hash"), Some("000000000000beef"));
    assert_eq!(says("attempt_number"), Some("i64 1"));
    assert_eq!(says("max_total_attempts"), Some("i64 3"));
    assert_eq!(says("retry_reason"), Some("unavailable"));
    assert_eq!(says("retryable"), Some("true"));
    assert_eq!(says("backoff_ms"), Some("i64 80"));
    assert_eq!(says("remaining_deadline_ms"), Some("i64 1900"));
    assert_eq!(says("attempt_timeout_ms"), Some("i64 500"));
    assert_eq!(says("elapsed_total_ms"), Some("i64 100"));
}

#[test]
fn what_is_not_known_is_not_written() {
    let lines = written(&CallContext::EMPTY, &[What::SkewSuspected]);
    let fields: Vec<&str> = lines[0].2.keys().copied().collect();
    assert_eq!(fields, ["message"]);
}

/// EX-03, I6: one warning, which says that it is final; the attempts before it are no warnings.
#[test]
fn an_operation_that_fails_for_good_is_one_warning() {
    let whats = [
        What::AttemptEnded { verdict: FAILED },
        scheduled(),
        What::AttemptEnded { verdict: FAILED },
        not_resent(FAILED),
        ended(FAILED),
    ];
    let lines = written(&context(), &whats);
    let warnings: Vec<_> = lines.iter().filter(|line| line.0 == Level::WARN).collect();
    assert_eq!(warnings.len(), 1, "{lines:?}");
    let fields = &warnings[0].2;
    assert_eq!(fields["message"], "operation failed, not sent again");
    assert_eq!(fields["retryable"], "false");
    assert_eq!(fields["not_resent_reason"], "attempts_exhausted");
    assert_eq!(fields["outcome"], "unavailable");
}

/// EX-03: errors that were retried are no warnings.
#[test]
fn an_operation_that_recovers_is_no_warning() {
    let whats = [
        What::AttemptEnded { verdict: FAILED },
        scheduled(),
        ended(Verdict::SUCCESS),
    ];
    let lines = written(&context(), &whats);
    assert!(lines.iter().all(|line| line.0 > Level::WARN), "{lines:?}");
    assert_eq!(lines[2].2["elapsed_total_ms"], "i64 1200");
    assert_eq!(lines[2].2["attempt_number"], "i64 3");
}

#[test]
fn a_request_at_fault_is_for_its_caller_to_report() {
    let client = Verdict::failure(Kind::Client, Resend::Never);
    assert_eq!(level(&context(), &not_resent(client)), Level::DEBUG);
}

/// I6: whoever has the last word warns, and nobody else.
#[test]
fn of_a_retry_and_a_rejection_only_the_one_further_out_warns() {
    let cut = Rejection::cut(Reason::AttemptTimedOut, "catalog".into());
    let inside = level(&context(), &What::Rejected(&cut));
    assert_eq!(inside, Level::DEBUG, "the retry around it answers");
    let outside = CallContext::join(LayerKind::Deadline, Dependency::named("catalog"));
    assert_eq!(level(&outside, &What::Rejected(&cut)), Level::WARN);
    let refused = ended(Verdict::IGNORED);
    assert_eq!(level(&context(), &refused), Level::WARN, "refused inside");
}

#[test]
fn a_retry_inside_another_leaves_the_warning_to_the_outer_one() {
    let mut outer = context();
    let inner = outer.enter(|| CallContext::join(LayerKind::Retry, Dependency::named("db")));
    assert!(inner.is_inside_retry());
    assert_eq!(level(&inner, &not_resent(FAILED)), Level::DEBUG);
}

/// So that nobody takes it for the dependency's own doing, nor is woken by it.
#[test]
fn an_injected_fault_is_said_to_be_one() {
    let lines = written(&context(), &[What::FaultInjected { fault: "latency" }]);
    let (level, _, fields) = &lines[0];
    assert_eq!(*level, Level::INFO);
    assert_eq!(fields["message"], "fault injected on purpose");
    assert_eq!(fields["outcome"], "latency");
}

#[test]
fn a_malformed_header_is_a_warning() {
    let header = http::HeaderName::from_static("grpc-timeout");
    let what = What::MalformedDeadline { header: &header };
    assert_eq!(level(&CallContext::EMPTY, &what), Level::WARN);
}

#[test]
fn a_key_is_named_by_its_hash_and_is_a_warning_where_an_effect_is_in_doubt() {
    let away = std::io::Error::other("away");
    let hash = NonZeroU64::new(0xab);
    let about = |step, error| What::Key { hash, step, error };
    let lost = about(KeyStep::NotRecorded, Some(&away as &dyn std::error::Error));
    let lines = written(&CallContext::EMPTY, &[lost]);
    let (loud, _, fields) = &lines[0];
    assert_eq!(*loud, Level::WARN);
    assert_eq!(fields["outcome"], "not_recorded");
    assert_eq!(fields["idempotency_key_hash"], "00000000000000ab");
    assert_eq!(fields["error"], "away");
    let usual = about(KeyStep::Replayed, None);
    assert_eq!(level(&CallContext::EMPTY, &usual), Level::DEBUG);
}

#[test]
fn an_answered_error_is_a_warning_unless_it_was_reported_where_it_arose() {
    let answered = |error| What::ErrorAnswered {
        error,
        status: http::StatusCode::INTERNAL_SERVER_ERROR,
    };
    let bug = std::io::Error::other("a bug");
    let lines = written(&CallContext::EMPTY, &[answered(&bug)]);
    assert_eq!(lines[0].2["error"], "a bug");
    assert_eq!(level(&CallContext::EMPTY, &answered(&bug)), Level::WARN);
    let ours = Rejection::refused(Reason::DeadlineExceeded, "catalog".into());
    assert_eq!(level(&CallContext::EMPTY, &answered(&ours)), Level::DEBUG);
}

#[test]
fn a_rejection_says_what_was_refused() {
    let refused = Rejection::refused(Reason::DeadlineExceeded, "catalog".into());
    let lines = written(&CallContext::EMPTY, &[What::Rejected(&refused)]);
    let fields = &lines[0].2;
    assert_eq!(fields["error"], refused.to_string());
    assert_eq!(fields["dependency"], "catalog");
    assert_eq!(fields["outcome"], "deadline_exceeded");
}

fn opened() -> Transition {
    let (closed, open) = (BreakerState::Closed, Some(BreakerState::Open));
    let now = clock::now();
    let mut opened = Transition::new(closed, open, BreakerCause::FailureRate, now);
    opened.dependency = "catalog".into();
    opened.key = Some("shard-3".into());
    opened.wait = Some(5_000 * MS);
    opened
}

#[test]
fn a_breaker_that_opens_is_a_warning_that_says_which_and_why() {
    let opened = opened();
    let lines = written(&CallContext::EMPTY, &[What::BreakerTransition(&opened)]);
    let (level, _, fields) = &lines[0];
    assert_eq!(*level, Level::WARN);
    let expected = [
        ("backoff_ms", "i64 5000"),
        ("breaker_cause", "failure_rate"),
        ("breaker_key", "shard-3"),
        ("breaker_state", "open"),
        ("dependency", "catalog"),
        ("message", "breaker open"),
    ];
    let says: Vec<_> = fields.iter().map(|(k, v)| (*k, v.as_str())).collect();
    assert_eq!(says, expected);
}

#[test]
fn a_breaker_that_recovers_is_no_warning() {
    let now = clock::now();
    let change = |to| Transition::new(BreakerState::Open, to, BreakerCause::WaitElapsed, now);
    let closed = change(Some(BreakerState::Closed));
    let gone = change(None);
    let says = |change| level(&CallContext::EMPTY, &What::BreakerTransition(change));
    assert_eq!((says(&closed), says(&gone)), (Level::INFO, Level::DEBUG));
}

#[test]
fn every_record_says_what_the_protecting_layers_decided() {
    let mut context = context();
    context.enter(|| {
        let catalog = Dependency::named("catalog");
        CallContext::note_queue(catalog, 30 * MS, Some(8));
        CallContext::note_rate_limit(catalog, 20 * MS);
        CallContext::note_breaker(catalog, BreakerState::HalfOpen, BreakerDecision::Probe);
    });
    let lines = written(&context, &[scheduled()]);
    let fields = &lines[0].2;
    assert_eq!(fields["breaker_state"], "half_open");
    assert_eq!(fields["breaker_decision"], "probe");
    assert_eq!(fields["queue_wait_ms"], "i64 30");
    assert_eq!(fields["limit_in_force"], "i64 8");
    assert_eq!(fields["rate_limit_wait_ms"], "i64 20");
}

#[test]
fn what_a_protecting_layer_does_is_said_in_its_own_words() {
    let hedge = What::HedgeSent {
        attempt: 2,
        beside: 1,
        reason: None,
        delay: 40 * MS,
    };
    let fell_back = What::FellBack {
        verdict: FAILED,
        ended: FallbackEnd::Served,
    };
    let shed = What::Shed {
        by: ShedBy::QueueTime,
        priority: Some("low"),
    };
    let queued = What::QueueWaited {
        waited: 7 * MS,
        limit: 4,
    };
    let lines = written(&context(), &[hedge, fell_back, shed, queued]);
    let says = |line: usize, key: &str| lines[line].2[key].clone();
    assert_eq!(says(0, "message"), "hedge sent");
    assert_eq!(
        (says(0, "retry_reason"), says(0, "backoff_ms")),
        ("delay".into(), "i64 40".into())
    );
    assert_eq!(
        (says(1, "message"), says(1, "fallback")),
        ("fell back".into(), "served".into())
    );
    assert_eq!(
        (says(2, "outcome"), says(2, "priority")),
        ("queue_time".into(), "low".into())
    );
    assert_eq!(
        (says(3, "queue_wait_ms"), says(3, "limit_in_force")),
        ("i64 7".into(), "i64 4".into())
    );
}

/// RP-04: of an RPC its status, by its name.
#[test]
fn what_ends_an_rpc_says_its_status() {
    let failed = FAILED.with_code(Code::Unavailable);
    let ends = [
        What::AttemptEnded { verdict: failed },
        not_resent(failed),
        ended(failed),
        ended(FAILED),
    ];
    let lines = written(&context(), &ends);
    let codes = lines
        .iter()
        .map(|(.., fields)| fields.get("rpc_status_code"));
    let unavailable = "UNAVAILABLE".to_owned();
    let told = Some(&unavailable);
    assert_eq!(codes.collect::<Vec<_>>(), [told, told, told, None]);
}

#[test]
fn an_attempt_that_is_sent_once_more_says_why() {
    let again = What::SentTransparently {
        reason: Kind::Unavailable,
    };
    let (level, _, fields) = written(&context(), &[again]).remove(0);
    assert_eq!(level, Level::INFO);
    assert_eq!(fields["retry_reason"], "unavailable");
    assert!(fields["message"].contains("never processed"));
}

#[test]
fn policies_that_are_refused_are_a_warning_that_says_why() {
    let why = std::io::Error::other("half of a file");
    let refused = What::PoliciesReloaded {
        refused: Some(&why),
    };
    let applied = What::PoliciesReloaded { refused: None };
    let lines = written(&context(), &[refused, applied]);
    assert_eq!((lines[0].0, lines[1].0), (Level::WARN, Level::INFO));
    assert!(lines[0].2["message"].contains("the old ones stay"));
    assert!(lines[0].2["error"].contains("half of a file"));
}
