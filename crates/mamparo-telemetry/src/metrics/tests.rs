use std::sync::Arc;
use std::time::Duration;

use mamparo_core::{
    Budget, CallContext, Dependency, Event, Kind, LayerKind, NotResent, Observer, Reason,
    Rejection, Resend, Verdict, What, clock,
};
use mamparo_testkit::service::Step;
use opentelemetry::trace::{TraceContextExt, Tracer, TracerProvider};
use opentelemetry::{Context, Value};

use super::*;
use crate::testing::{Counted, Kept, get, status, transport};

const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");

fn catalog() -> CallContext {
    CallContext::join(LayerKind::Retry, Dependency::named("catalog"))
}

fn scheduled(remaining: Option<Duration>) -> What<'static> {
    What::ResendScheduled {
        next: 2,
        reason: Kind::Unavailable,
        wait: Duration::from_millis(80),
        hinted: false,
        remaining,
    }
}

fn report(metrics: &Metrics, what: What<'_>) {
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
    let cases: [(What<'_>, &str, String); 8] = [
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
    assert_eq!(points("mamparo.budget.consumed"), [(catalog, 1), (free, 0)]);
}

/// I4: whatever is watched, collecting succeeds, again and again.
#[test]
fn collecting_twice_says_the_same() {
    let counted = Counted::new();
    let budget = Budget::default();
    let _metrics = Metrics::of(&counted.provider).watch_budget("catalog", &budget);
    let first = counted.points("mamparo.budget.consumed");
    assert_eq!(counted.points("mamparo.budget.consumed"), first);
    assert_eq!(first.len(), 1);
}

fn row(metric: &Metric) -> String {
    let attributes = metric.attributes.iter().map(|key| format!("`{key}`"));
    let attributes = attributes.collect::<Vec<_>>().join(", ");
    format!(
        "| `{}` | {} | `{}` | {attributes} | {} |",
        metric.name,
        metric.kind.as_str(),
        metric.unit,
        metric.says
    )
}

#[test]
fn the_table_in_the_docs_is_the_catalog() {
    let table = std::fs::read_to_string(TABLE).unwrap();
    let metrics = table.split("\n## ").next().unwrap();
    let rows: Vec<&str> = metrics
        .lines()
        .filter(|line| line.starts_with("| `"))
        .collect();
    let expected: Vec<String> = CATALOG.iter().map(row).collect();
    assert_eq!(rows, expected, "docs/metrics.md and CATALOG differ");
}

/// The catalog is what is written: names, units and attributes.
#[tokio::test]
async fn what_is_written_is_what_the_catalog_says() {
    use opentelemetry_sdk::metrics::data::ResourceMetrics;
    use tower::{Layer, ServiceExt};
    let counted = Counted::new();
    let attempt = crate::AttemptLayer::http("catalog").meter_provider(&counted.provider);
    let operation = crate::OperationLayer::http("catalog").meter_provider(&counted.provider);
    let script = transport([status(503), Step::error("broken")]);
    let twice = tower::service_fn(|()| {
        let service = attempt.layer(script.clone());
        async {
            drop(service.clone().oneshot(get("http://catalog/")).await);
            service.oneshot(get("http://catalog/")).await
        }
    });
    let answer = operation.layer(twice).oneshot(()).await;
    assert!(answer.is_err());
    report(&Metrics::of(&counted.provider), scheduled(None));
    let all = counted.collect();
    let scopes = all.iter().flat_map(ResourceMetrics::scope_metrics);
    let mut written = 0;
    for metric in scopes.flat_map(|scope| scope.metrics()) {
        let listed = CATALOG.iter().find(|m| m.name == metric.name()).unwrap();
        assert_eq!(metric.unit(), listed.unit, "{}", listed.name);
        assert_eq!(metric.description(), listed.says);
        for line in counted.points(listed.name).keys() {
            let mut keys = line.split(' ').map(|pair| pair.split('=').next().unwrap());
            assert!(keys.all(|key| listed.attributes.contains(&key)), "{line}");
        }
        written += 1;
    }
    assert_eq!(written, 6, "all that happened here was written");
}

/// NM-01.
#[test]
fn names_follow_the_naming_rules() {
    for metric in CATALOG {
        let name = metric.name;
        let plain = |c: char| c.is_ascii_lowercase() || matches!(c, '.' | '_');
        assert!(name.chars().all(plain), "{name}");
        let ours = name.starts_with("mamparo.");
        assert!(ours || name == "http.client.request.duration", "{name}");
        assert!(
            !name.ends_with("total") && !name.ends_with("count"),
            "{name}"
        );
        let duration = metric.kind == crate::metrics::Kind::Histogram;
        assert_eq!(name.ends_with(".duration"), duration, "{name}");
        assert_eq!(metric.unit == "s", duration, "{name}");
        let is_a_namespace = |other: &Metric| other.name.starts_with(&format!("{name}."));
        assert!(!CATALOG.iter().any(is_a_namespace), "{name}");
        let id = |key: &&str| key.contains("url") || key.ends_with(".id");
        assert!(!metric.attributes.iter().any(id), "{name}");
    }
}
