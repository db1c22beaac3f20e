//! Each event is counted once, under its own name, and gauges tell what is.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mamparo_core::breaker::{BreakerCause, BreakerState, Transition};
use mamparo_core::vitals::{self, Monitored, Vitals};
use mamparo_core::{
    Budget, CallContext, Dependency, Event, FallbackEnd, KeyStep, Kind, LayerKind, NotResent,
    Observer, Reason, Rejection, Resend, ShedBy, Verdict, What, clock,
};
use opentelemetry::metrics::MeterProvider;
use opentelemetry::trace::{TraceContextExt, Tracer, TracerProvider};
use opentelemetry::{Context, KeyValue, Value};

use super::super::pairs::{Labels, Pairs};
use super::super::*;
use crate::testing::{Counted, Kept, Look};

fn catalog() -> CallContext {
    CallContext::join(LayerKind::Retry, Dependency::named("catalog"))
}

pub(super) fn scheduled(remaining: Option<Duration>) -> What<'static> {
    What::ResendScheduled {
        next: 2,
        reason: Kind::Unavailable,
        wait: Duration::from_millis(80),
        hinted: false,
        remaining,
    }
}

pub(super) fn report(metrics: &Metrics, what: What<'_>) {
    let observer: Arc<dyn Observer> = Arc::new(metrics.clone());
    Event::report(Some(&observer), &catalog(), what);
}

#[test]
fn each_event_is_counted_once_under_its_own_name() {
    let counted = Counted::new();
    let metrics = Metrics::of(&counted.provider);
    let dependency = "mamparo.dependency=catalog";
    let refused = Rejection::refused(Reason::DeadlineExceeded, "catalog".into());
    let header = http::HeaderName::from_static("x-deadline");
    let second = Duration::from_secs(1);
    let verdict = Verdict::failure(Kind::Server, Resend::Never);
    let not_resent = What::NotResent {
        verdict,
        reason: NotResent::BudgetExhausted,
    };
    let nested = What::Nested {
        outer: None,
        upstream_attempt: 2,
    };
    let clamped = What::DeadlineClamped {
        asked: second,
        granted: second,
    };
    let transparently = What::SentTransparently {
        reason: Kind::Reset,
    };
    let cases: [(What<'_>, &str, String); 9] = [
        (
            transparently,
            "mamparo.resends",
            format!("{dependency} mamparo.reason=reset"),
        ),
        (
            scheduled(None),
            "mamparo.resends",
            format!("{dependency} mamparo.reason=unavailable"),
        ),
        (
            not_resent,
            "mamparo.refused_resends",
            format!("{dependency} mamparo.reason=budget_exhausted"),
        ),
        (
            What::Rejected(&refused),
            "mamparo.rejections",
            format!("{dependency} mamparo.reason=deadline_exceeded mamparo.sent=false"),
        ),
        (
            What::LateWork { late: second },
            "mamparo.late_work.duration",
            dependency.into(),
        ),
        (nested, "mamparo.nested_retries", dependency.into()),
        (
            What::MalformedDeadline { header: &header },
            "mamparo.doubted_deadlines",
            "mamparo.reason=malformed".into(),
        ),
        (
            clamped,
            "mamparo.doubted_deadlines",
            "mamparo.reason=clamped".into(),
        ),
        (
            What::SkewSuspected,
            "mamparo.doubted_deadlines",
            "mamparo.reason=skew_suspected".into(),
        ),
    ];
    for (what, name, attributes) in cases {
        report(&metrics, what);
        let points = counted.points(name);
        assert_eq!(points.get(&attributes), Some(&1), "{name}: {points:?}");
    }
}

#[test]
fn what_happens_to_keys_is_counted_and_none_of_them_is_told() {
    let counted = Counted::new();
    let replayed = What::Key {
        hash: NonZeroU64::new(1),
        step: KeyStep::Replayed,
        error: None,
    };
    report(&Metrics::of(&counted.provider), replayed);
    let points = counted.points("mamparo.idempotency_keys");
    let only = "mamparo.reason=replayed";
    assert_eq!(
        (points.len(), points.get(only)),
        (1, Some(&1)),
        "{points:?}"
    );
}

#[test]
fn reloads_of_policies_are_counted_by_what_came_of_them() {
    let counted = Counted::new();
    let metrics = Metrics::of(&counted.provider);
    let refused = std::io::Error::other("half of a file");
    report(&metrics, What::PoliciesReloaded { refused: None });
    report(&metrics, What::PoliciesReloaded { refused: None });
    let refused = Some(&refused as &(dyn std::error::Error + 'static));
    report(&metrics, What::PoliciesReloaded { refused });
    let points = counted.points("mamparo.policy.reloads");
    let lines: Vec<_> = points.into_iter().collect();
    let line = |outcome: &str, times| (format!("mamparo.policy.outcome={outcome}"), times);
    assert_eq!(lines, [line("applied", 2), line("refused", 1)]);
}

/// I3: given to several layers, each event still has one reporter.
#[test]
fn clones_share_their_instruments_and_nothing_is_counted_twice() {
    let counted = Counted::new();
    let metrics = Metrics::of(&counted.provider);
    let clone = metrics.clone();
    report(&metrics, scheduled(None));
    report(&clone, scheduled(None));
    let total: u64 = counted.points("mamparo.resends").values().sum();
    assert_eq!(total, 2);
}

#[test]
fn a_scheduled_resend_is_an_event_on_the_span_that_is_current() {
    let kept = Kept::all();
    let span = kept.provider.tracer("test").start("operation");
    let current = Context::new().with_span(span).attach();
    let metrics = Metrics::new();
    report(&metrics, scheduled(Some(Duration::from_millis(900))));
    report(&metrics, scheduled(None));
    drop(current);
    let events = kept.only().events;
    let says: Vec<_> = events[0]
        .attributes
        .iter()
        .map(|a| (a.key.as_str(), a.value.clone()))
        .collect();
    assert_eq!(events[0].name, "retry scheduled");
    let expected = [
        ("reason", Value::from("unavailable")),
        ("backoff_ms", Value::I64(80)),
        ("remaining_deadline_ms", Value::I64(900)),
    ];
    assert_eq!(says, expected);
    assert_eq!(
        events[1].attributes.len(),
        2,
        "no deadline, nothing remains of it"
    );
}

#[test]
fn a_budget_says_what_it_allowed_and_what_was_consumed() {
    let counted = Counted::new();
    let budget = Budget::builder()
        .ratio(0.5)
        .min_per_second(0)
        .build()
        .unwrap();
    let _metrics = Metrics::of(&counted.provider)
        .watch_budget("catalog", &budget)
        .watch_budget("free", &Budget::unlimited());
    for _ in 0..8 {
        drop(budget.deposit(None));
    }
    drop(budget.withdraw(clock::now(), None, 0).unwrap().spend());
    let points = |name: &str| counted.points(name).into_iter().collect::<Vec<_>>();
    let catalog = "mamparo.dependency=catalog".to_owned();
    let free = "mamparo.dependency=free".to_owned();
    assert_eq!(points("mamparo.budget.allowed"), [(catalog.clone(), 4)]);
    assert_eq!(points("mamparo.budget.tokens"), [(catalog.clone(), 3)]);
    assert_eq!(points("mamparo.budget.consumed"), [(catalog, 1), (free, 0)]);
}

/// Row I4: dependencies come while others collect, and those that stay are told each time.
#[test]
fn collecting_while_dependencies_come_says_those_that_stay_each_time() {
    let counted = Counted::new();
    let metrics = Metrics::of(&counted.provider).watch_budget("stays", &Budget::default());
    std::thread::scope(|scope| {
        let comes = scope.spawn(|| {
            for number in 0..200 {
                let name = format!("comes-{number}");
                drop(metrics.clone().watch_budget(&*name, &Budget::default()));
            }
        });
        loop {
            let done = comes.is_finished();
            let points = counted.points("mamparo.budget.consumed");
            assert!(
                points.contains_key("mamparo.dependency=stays"),
                "{points:?}"
            );
            if done {
                assert_eq!(points.len(), 201);
                break;
            }
        }
    });
}

/// Whatever is watched, collecting succeeds, again and again.
#[test]
fn collecting_twice_says_the_same() {
    let counted = Counted::new();
    let budget = Budget::default();
    let _metrics = Metrics::of(&counted.provider).watch_budget("catalog", &budget);
    let first = counted.points("mamparo.budget.consumed");
    assert_eq!(counted.points("mamparo.budget.consumed"), first);
    assert_eq!(first.len(), 1);
}

/// One dependency, whose breaker is open.
#[derive(Debug)]
struct Known(Budget);

impl Monitored for Known {
    fn each(&self, tell: &mut dyn FnMut(&Vitals)) {
        let mut vitals = Vitals::of("catalog".into());
        vitals.breaker = Some(BreakerState::Open);
        vitals.places = Some(vitals::Places {
            in_flight: 3,
            queued: 1,
            limit: 8,
        });
        vitals.budget = Some(self.0.clone());
        tell(&vitals);
    }
}

#[test]
fn what_a_source_knows_is_read_when_metrics_are_collected_and_goes_before_what_was_heard() {
    let counted = Counted::new();
    let budget = Budget::builder().ratio(0.0).min_per_second(5);
    let known = Known(budget.build().unwrap());
    let budget = known.0.clone();
    let metrics = Metrics::of(&counted.provider).watch_breaker("catalog");
    let _metrics = metrics.watch_breaker("psp").watch(known);
    let dependency = "mamparo.dependency=catalog";
    drop(budget.withdraw(clock::now(), None, 0).unwrap().spend());
    for (name, value) in [
        ("mamparo.breaker.state", 2),
        ("mamparo.bulkhead.in_flight", 3),
        ("mamparo.bulkhead.queued", 1),
        ("mamparo.bulkhead.limit", 8),
        ("mamparo.budget.consumed", 1),
    ] {
        let points = counted.points(name);
        assert_eq!(points.get(dependency), Some(&value), "{name}: {points:?}");
    }
    let breakers = counted.points("mamparo.breaker.state");
    assert_eq!(breakers.get("mamparo.dependency=psp"), Some(&0));
}

/// Each event is counted once, under that name and with those attributes beside the dependency.
fn counts_each(cases: &[(What<'_>, &str, &str)]) {
    let counted = Counted::new();
    let metrics = Metrics::of(&counted.provider);
    for (what, name, attributes) in cases {
        report(&metrics, *what);
        let points = counted.points(name);
        let line = format!("mamparo.dependency=catalog {attributes}");
        assert_eq!(points.get(line.trim()), Some(&1), "{name}: {points:?}");
        let listed = CATALOG.iter().any(|metric| metric.name == *name);
        assert!(listed, "{name} is not in the catalog");
    }
}

#[test]
fn what_the_protecting_layers_refuse_and_let_wait_is_counted() {
    let waited = Duration::from_millis(20);
    let refused = Rejection::refused(Reason::BreakerOpen, "catalog".into());
    let queued = What::QueueWaited { waited, limit: 8 };
    let limited = What::RateLimitWaited { waited };
    let heard = What::RateLimitHeard { wait: waited };
    let shed = |priority| What::Shed {
        by: ShedBy::InFlight,
        priority,
    };
    let shadowed = What::Shadowed(&refused);
    counts_each(&[
        (
            shadowed,
            "mamparo.shadow_rejections",
            "mamparo.reason=breaker_open",
        ),
        (queued, "mamparo.bulkhead.wait.duration", ""),
        (limited, "mamparo.rate_limit.wait.duration", ""),
        (heard, "mamparo.rate_limit.pauses", ""),
        (
            shed(Some("low")),
            "mamparo.shed_calls",
            "mamparo.priority=low mamparo.reason=in_flight",
        ),
        (shed(None), "mamparo.shed_calls", "mamparo.reason=in_flight"),
    ]);
}

#[test]
fn what_the_protecting_layers_do_instead_is_counted() {
    let hedge = |reason| What::HedgeSent {
        attempt: 2,
        beside: 1,
        reason,
        delay: Duration::from_millis(20),
    };
    let off = What::HedgeOff {
        reason: NotResent::ExtraLoad,
    };
    let fell_back = What::FellBack {
        verdict: Verdict::failure(Kind::Server, Resend::Never),
        ended: FallbackEnd::Failed,
    };
    let fault = What::FaultInjected { fault: "latency" };

    counts_each(&[
        (hedge(None), "mamparo.hedges", "mamparo.reason=delay"),
        (
            hedge(Some(Kind::Reset)),
            "mamparo.hedges",
            "mamparo.reason=reset",
        ),
        (What::HedgeWon { attempt: 2 }, "mamparo.won_hedges", ""),
        (off, "mamparo.refused_hedges", "mamparo.reason=extra_load"),
        (
            fell_back,
            "mamparo.fallbacks",
            "mamparo.fallback.outcome=failed",
        ),
        (fault, "mamparo.injected_faults", "mamparo.reason=latency"),
    ]);
}

fn change(from: BreakerState, to: Option<BreakerState>, key: Option<&str>) -> Transition {
    let mut change = Transition::new(from, to, BreakerCause::FailureRate, clock::now());
    change.key = key.map(Into::into);
    change
}

/// peer/tower-resilience-8: after a whole cycle the gauge tells the one state that it is in.
#[test]
fn a_breakers_gauge_tells_its_one_current_state() {
    use BreakerState::{Closed, HalfOpen, Open};
    let counted = Counted::new();
    let metrics = Metrics::of(&counted.provider).watch_breaker("psp");
    let gauge = || {
        counted
            .points("mamparo.breaker.state")
            .into_iter()
            .collect::<Vec<_>>()
    };
    let psp = ("mamparo.dependency=psp".to_owned(), 0);
    assert_eq!(gauge(), std::slice::from_ref(&psp));
    for (from, to) in [(Closed, Open), (Open, HalfOpen), (HalfOpen, Closed)] {
        let change = change(from, Some(to), None);
        report(&metrics, What::BreakerTransition(&change));
        let level = u64::from(to.level());
        let catalog = ("mamparo.dependency=catalog".to_owned(), level);
        assert_eq!(gauge(), [catalog, psp.clone()], "{to}");
    }
    let transitions = counted.points("mamparo.breaker.transitions");
    let to_open =
        "mamparo.breaker.state=open mamparo.dependency=catalog mamparo.reason=failure_rate";
    assert_eq!((transitions.len(), transitions.get(to_open)), (3, Some(&1)));
}

/// A breaker's own name is better than that of the call which found it out.
#[test]
fn a_breaker_of_a_key_has_a_gauge_as_long_as_it_is_there() {
    let counted = Counted::new();
    let metrics = Metrics::of(&counted.provider);
    let gauge = || {
        counted
            .points("mamparo.breaker.state")
            .into_keys()
            .collect::<Vec<_>>()
    };
    for shard in ["a", "b"] {
        let mut opened = change(BreakerState::Closed, Some(BreakerState::Open), Some(shard));
        opened.dependency = "shards".into();
        report(&metrics, What::BreakerTransition(&opened));
    }
    let of = |key: &str| format!("mamparo.breaker.key={key} mamparo.dependency=shards");
    assert_eq!(gauge(), [of("a"), of("b")]);
    let mut gone = change(BreakerState::Open, None, Some("a"));
    gone.dependency = "shards".into();
    report(&metrics, What::BreakerTransition(&gone));
    assert_eq!(gauge(), [of("b")]);
    let transitions = counted.points("mamparo.breaker.transitions");
    assert!(
        transitions.keys().all(|line| !line.contains("key")),
        "{transitions:?}"
    );
}

#[test]
fn breakers_past_the_bound_have_no_gauge_unless_they_open() {
    use BreakerState::{Closed, HalfOpen, Open};
    let counted = Counted::new();
    let metrics = Metrics::of(&counted.provider);
    let tell = |to, key: &str| {
        let change = change(HalfOpen, Some(to), Some(key));
        report(&metrics, What::BreakerTransition(&change));
    };
    for number in 0..MAX_BREAKERS {
        tell(Closed, &number.to_string());
    }
    tell(Closed, "one more");
    tell(Open, "open");
    let gauges = counted.points("mamparo.breaker.state");
    assert_eq!(gauges.len(), MAX_BREAKERS);
    let has = |key: &str| {
        gauges
            .keys()
            .any(|line| line.contains(&format!("key={key} ")))
    };
    assert_eq!((has("one more"), has("open")), (false, true));
}

#[test]
fn a_bulkhead_is_read_whenever_metrics_are_collected() {
    let counted = Counted::new();
    let queued = Arc::new(AtomicUsize::new(5));
    let read = Arc::clone(&queued);
    let _metrics = Metrics::of(&counted.provider).watch_bulkhead("catalog", move || {
        Places::new(64, read.load(Ordering::Relaxed), 64)
    });
    let says = |name: &str| counted.points(name).into_values().collect::<Vec<_>>();
    assert_eq!(says("mamparo.bulkhead.in_flight"), [64]);
    assert_eq!(says("mamparo.bulkhead.queued"), [5]);
    assert_eq!(says("mamparo.bulkhead.limit"), [64]);
    queued.store(0, Ordering::Relaxed);
    assert_eq!(says("mamparo.bulkhead.queued"), [0]);
}

#[test]
fn a_hedge_and_a_fallback_are_told_to_the_span_that_is_current() {
    let kept = Kept::all();
    let span = kept.provider.tracer("test").start("operation");
    let current = Context::new().with_span(span).attach();
    let metrics = Metrics::new();
    let hedge = What::HedgeSent {
        attempt: 2,
        beside: 1,
        reason: Some(Kind::Timeout),
        delay: Duration::from_millis(40),
    };
    report(&metrics, hedge);
    let fell_back = What::FellBack {
        verdict: Verdict::failure(Kind::Server, Resend::Never),
        ended: FallbackEnd::Served,
    };
    report(&metrics, fell_back);
    drop(current);
    let span = kept.only();
    let event = &span.events[0];
    assert_eq!(event.name, "hedge sent");
    let says: Vec<_> = (event.attributes.iter().map(|a| a.value.clone())).collect();
    assert_eq!(says, [Value::from("timeout"), Value::I64(40)]);
    assert_eq!(
        span.text("mamparo.fallback.outcome").as_deref(),
        Some("served")
    );
}

impl Labels for i64 {
    fn with<R>(&self, f: impl FnOnce(&[KeyValue], &[KeyValue]) -> R) -> R {
        let list = [KeyValue::new("number", *self)];
        f(&list, &list)
    }
}

/// More than are bound, where they are.
#[test]
fn labels_are_counted_each_for_itself_however_many_there_are() {
    let counted = Counted::new();
    let meter = counted.provider.meter("test");
    let (histogram, counter) = (
        meter.f64_histogram("h").build(),
        meter.u64_counter("c").build(),
    );
    let pairs = Pairs::new(histogram, Some(counter));
    for round in 1..=2 {
        for number in 0..100 {
            pairs.record(&number, 0.01);
        }
        for name in ["h", "c"] {
            let points = counted.points(name);
            assert_eq!(points.len(), 100);
            assert!(points.values().all(|&count| count == round), "{points:?}");
        }
    }
}
