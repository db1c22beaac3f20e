//! The demonstration.

use std::time::Duration;

use serde_json::Value;
use tokio::sync::Mutex;

use crate::collector::Collector;
use crate::picture;
use crate::run::{Ran, mamparo};

/// One at a time: they measure.
static STAGE: Mutex<()> = Mutex::const_new(());

async fn demo(args: &[&str]) -> Ran {
    let _alone = STAGE.lock().await;
    mamparo(&[&["demo"], args].concat()).await
}

#[tokio::test]
async fn the_demonstration_proves_what_it_claims_within_seconds() {
    let ran = demo(&[]).await;
    let text = String::from_utf8(ran.stdout.clone()).unwrap();
    assert_eq!((ran.code, &*ran.stderr), (0, ""), "{text}");
    assert!(ran.took < Duration::from_secs(12), "{:?}", ran.took);
    assert!(
        text.contains("charge: 1 effect, 2 attempts, 1 answer"),
        "{text}"
    );
    assert!(!text.contains("FAILED"), "{text}");
    for scene in [
        "An order.",
        "A page. The catalog fails first",
        "A page. Its reviews",
        "A price, over gRPC.",
        "A breaker.",
        "A bulkhead.",
        "A hedge.",
        "A fallback.",
    ] {
        assert!(text.contains(scene), "{scene}: {text}");
    }
    let proofs = [
        "gRPC",
        "gRPC deadline",
        "gRPC stream",
        "lost answers",
        "deferred",
        "breaker",
        "rejections",
        "ramp",
        "bulkhead",
        "hedge",
        "fallback",
    ];
    for proof in proofs {
        assert!(
            text.contains(&format!("ok      {proof}: ")),
            "{proof}: {text}"
        );
    }
    let states = text
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    let states = states.filter(|word| ["closed", "open", "half-open"].contains(word));
    assert!(states.count() >= 6, "a row for each state: {text}");
    assert!(!text.contains('\u{1b}'), "no colour off a terminal");
    assert!(
        text.contains("POST /orders"),
        "the shop's own span is drawn: {text}"
    );
}

#[tokio::test]
async fn its_figures_and_its_picture_follow_from_what_happened_and_are_exported() {
    let collector = Collector::start().await;
    let file = concat!(env!("CARGO_TARGET_TMPDIR"), "/time-line.svg");
    let more = ["--json", "--requests", "16", "--plot", file];
    let ran = demo(&[&more[..], &["--otlp", &collector.url()]].concat()).await;
    assert_eq!((ran.code, &*ran.stderr), (0, ""));
    let found = ran.json();
    assert_eq!(found["requests"], 16);
    figures(&found);
    protection(&found["protection"]);
    assert_eq!(found["grpc"]["status"], "DEADLINE_EXCEEDED");
    assert!((1..=8).contains(&found["grpc"]["prices"].as_u64().unwrap()));
    let svg = std::fs::read_to_string(file).unwrap();
    picture::check(&svg, &found["protection"]["breaker"]);
    assert!(collector.client_spans().len() > 16);
    let metrics = collector.metric_names();
    assert!(
        metrics.iter().any(|name| name == "mamparo.resends"),
        "{metrics:?}"
    );
}

fn figures(found: &Value) {
    let proofs = found["proofs"].as_array().unwrap();
    assert!(proofs.len() >= 10 && proofs.iter().all(|proof| proof["holds"] == true));
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

fn protection(found: &Value) {
    let number = |value: &Value| value.as_f64().unwrap();
    let breaker = &found["breaker"];
    let parts = ["admitted", "rejected"].map(|name| number(&breaker[name]));
    assert_eq!(number(&breaker["offered"]), parts.iter().sum::<f64>());
    let bands = breaker["bands"].as_array().unwrap();
    let states: Vec<_> = bands
        .iter()
        .map(|band| band["state"].as_str().unwrap())
        .collect();
    assert!(
        states.starts_with(&["closed", "open", "half_open", "open", "half_open"]),
        "{states:?}"
    );
    assert_eq!(states.last(), Some(&"closed"));
    for band in bands {
        let admitted = number(&band["admitted"]);
        assert!(band["state"] != "open" || admitted == 0.0, "{band}");
        assert!(
            band["state"] != "half_open" || (1.0..=6.0).contains(&admitted),
            "{band}"
        );
    }
    for scene in ["bulkhead", "hedge"] {
        let [without, with] = [0, 1].map(|row| &found[scene][row]);
        assert_eq!([&without[scene], &with[scene]], [false, true]);
        assert!(
            number(&with["p99_ms"]) * 2.0 < number(&without["p99_ms"]),
            "{scene}"
        );
    }
    assert_eq!(
        (&found["fallback"]["pages"], &found["fallback"]["partial"]),
        (&30.into(), &10.into())
    );
}

#[tokio::test]
async fn a_picture_that_has_no_place_is_refused_at_once() {
    let ran = mamparo(&["demo", "--plot", "no/such/folder/out.svg"]).await;
    assert_eq!((ran.code, ran.stdout.len()), (2, 0));
    let says = "error: no/such/folder/out.svg can't be written: No such file";
    assert!(ran.stderr.starts_with(says), "{}", ran.stderr);
    assert!(ran.took < Duration::from_secs(2), "{:?}", ran.took);
}
