//! The demonstration.

use std::time::Duration;

use crate::collector::Collector;
use crate::run::mamparo;

#[tokio::test]
async fn the_demonstration_proves_what_it_claims_within_seconds() {
    let ran = mamparo(&["demo"]).await;
    let text = String::from_utf8(ran.stdout.clone()).unwrap();
    assert_eq!((ran.code, &*ran.stderr), (0, ""), "{text}");
    assert!(ran.took < Duration::from_secs(10), "{:?}", ran.took);
    assert!(
        text.contains("charge: 1 effect, 2 attempts, 1 answer"),
        "{text}"
    );
    assert!(!text.contains("FAILED"), "{text}");
    for scene in [
        "An order.",
        "A page. The catalog fails first",
        "A page. Its reviews",
    ] {
        assert!(text.contains(scene), "{scene}: {text}");
    }
    assert!(
        text.contains("POST /orders"),
        "the shop's own span is drawn: {text}"
    );
}

#[tokio::test]
async fn its_figures_follow_from_the_metrics() {
    let ran = mamparo(&["demo", "--json", "--requests", "16"]).await;
    let found = ran.json();
    assert_eq!((ran.code, &found["requests"]), (0, &16.into()));
    let proofs = found["proofs"].as_array().unwrap();
    assert!(proofs.len() >= 7 && proofs.iter().all(|proof| proof["holds"] == true));
    let rows = found["dependencies"].as_array().unwrap();
    let psp = rows.iter().find(|row| row["dependency"] == "psp").unwrap();
    let figures = ["operations", "attempts", "resent", "recovered"].map(|name| psp[name].as_u64());
    assert_eq!(
        figures,
        [2, 4, 2, 2].map(Some),
        "two orders, each sent twice"
    );
    assert_eq!(
        (psp["amplification"].as_f64(), psp["recovery"].as_f64()),
        (Some(2.0), Some(1.0))
    );
    assert_eq!(rows[0]["dependency"], "shop");
    assert_eq!(
        rows[0]["amplification"].as_f64(),
        Some(1.0),
        "the shop's own failures are not multiplied"
    );
}

#[tokio::test]
async fn it_exports_what_it_shows() {
    let collector = Collector::start().await;
    let ran = mamparo(&["demo", "--requests", "8", "--otlp", &collector.url()]).await;
    assert_eq!((ran.code, &*ran.stderr), (0, ""));
    assert!(collector.client_spans().len() > 16);
    let metrics = collector.metric_names();
    assert!(
        metrics.iter().any(|name| name == "mamparo.resends"),
        "{metrics:?}"
    );
}
