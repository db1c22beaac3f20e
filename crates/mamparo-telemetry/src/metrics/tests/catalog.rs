//! The catalog, the table in the docs and what is written say the same.

use std::time::Duration;

use mamparo_core::{CallContext, LayerKind};
use mamparo_testkit::service::Step;

use super::super::*;
use super::told::{report, scheduled};
use crate::testing::{Counted, get, status, transport};

const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");

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
    assert_eq!(written(&counted), 6, "all that happened here was written");
}

/// How many metrics were written, each as the catalog says.
fn written(counted: &Counted) -> usize {
    use opentelemetry_sdk::metrics::data::ResourceMetrics;
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
    written
}

/// Those of RPCs and of what is served, too: RP-06, RP-08.
#[tokio::test]
async fn what_is_written_of_rpcs_and_servers_is_what_the_catalog_says() {
    use crate::testing::{read, rpc, trailers_only};
    use mamparo_core::grpc::Code;
    use mamparo_core::{BoxError, Cause, Scope};
    use tower::{Layer, ServiceExt, service_fn};
    let counted = Counted::new();
    let meters = &counted.provider;
    let resent = service_fn(|_| async {
        let mut scope = Scope::join(LayerKind::Retry, "catalog".into());
        for cause in [Cause::Retry, Cause::Hedge, Cause::Transparent] {
            scope.set_attempt(2, 4, cause);
            scope.enter(|| CallContext::note_resend(Duration::from_millis(80)));
        }
        Ok::<_, BoxError>(trailers_only(Code::NotFound))
    });
    let call = crate::OperationLayer::grpc("catalog").meter_provider(meters);
    let call = call.retry_metrics().layer(resent);
    read(call.oneshot(rpc("/shop.Catalog/Find")).await).await;
    let served = crate::ServerCallLayer::grpc().meter_provider(meters);
    let served = served.layer(transport([Step::answer(trailers_only(Code::Internal))]));
    read(served.oneshot(rpc("/shop.Catalog/Find")).await).await;
    let served = crate::ServerCallLayer::http().meter_provider(meters);
    let served = served.route(|_| Some("/items/{id}"));
    let served = served.layer(transport([status(503)]));
    read(served.oneshot(get("http://catalog/items/7")).await).await;
    // Two of the operation, the call's and its four of retries, and one for each that was served.
    assert_eq!(written(&counted), 2 + 5 + 2);
}

/// NM-01.
#[test]
fn names_follow_the_naming_rules() {
    for metric in CATALOG {
        let name = metric.name;
        let plain = |c: char| c.is_ascii_lowercase() || matches!(c, '.' | '_');
        assert!(name.chars().all(plain), "{name}");
        let ours = name.starts_with("mamparo.");
        let grpcs = name.starts_with("grpc.client.call.");
        let standard = ["http.", "rpc."]
            .iter()
            .any(|start| name.starts_with(start));
        assert!(ours || grpcs || standard, "{name}");
        assert!(
            !name.ends_with("total") && !name.ends_with("count"),
            "{name}"
        );
        let duration = metric.kind == Kind::Histogram;
        // gRPC has rules of its own.
        if !grpcs {
            assert_eq!(name.ends_with(".duration"), duration, "{name}");
            // How old something is, is read and not recorded.
            let age = name.ends_with(".age");
            assert_eq!(metric.unit == "s", duration || age, "{name}");
        }
        let is_a_namespace = |other: &Metric| other.name.starts_with(&format!("{name}."));
        assert!(!CATALOG.iter().any(is_a_namespace), "{name}");
        let url = |key: &str| key.starts_with("url.") && key != "url.scheme";
        let id = |key: &&str| url(key) || key.ends_with(".id");
        assert!(!metric.attributes.iter().any(id), "{name}");
    }
}
