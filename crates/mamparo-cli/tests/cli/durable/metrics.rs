use std::time::Duration;

use super::engine::{Engine, Place};
use super::provider::Provider;

const AT: &[&str] = &["--metrics", "127.0.0.1:0"];

/// The address that it says.
async fn address(engine: &mut Engine) -> String {
    let line = engine.says("metrics at").await;
    let (_, address) = line.split_once("metrics at ").unwrap();
    address.trim_end_matches(['"', '}']).to_owned()
}

/// Scrapes until the page has these lines.
async fn has(address: &str, lines: &[&str]) {
    let mut page = String::new();
    for _ in 0..200 {
        let answer = reqwest::get(address).await.unwrap();
        let kind = answer.headers()["content-type"].to_str().unwrap();
        assert!(kind.starts_with("text/plain; version=0.0.4"), "{kind}");
        page = answer.text().await.unwrap();
        if lines.iter().all(|line| page.lines().any(|it| it == *line)) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{lines:#?} is not all in\n{page}");
}

#[tokio::test]
async fn a_running_engine_is_scraped() {
    let (_, url) = Provider::start(1).await;
    let place = Place::new("scraped", &url);
    assert_eq!(place.submit("payment-1").await.code, 0);
    let mut engine = place.engine(AT).await;
    let address = address(&mut engine).await;
    let scope = "otel_scope_name=\"mamparo\"";
    let answer = |outcome| {
        let labels = format!("mamparo_defer_kind=\"psp\",mamparo_defer_outcome=\"{outcome}\"");
        format!("mamparo_defer_answers_total{{{labels},{scope}}} 1")
    };
    let (refused, success) = (answer("refused"), answer("success"));
    let state = "mamparo_defer_attempt=\"2\",mamparo_defer_state=\"SUCCEEDED\"";
    let transactions = format!("mamparo_defer_transactions{{{state},{scope}}} 1");
    let dead = format!("mamparo_defer_dead_letters{{mamparo_defer_queue=\"fires\",{scope}}} 0");
    let sent = "mamparo_attempt_verdict=\"success\",mamparo_dependency=\"psp\"";
    let sent = format!("mamparo_attempts_total{{{sent},{scope}}} 2");
    has(&address, &[&refused, &success, &transactions, &dead, &sent]).await;

    // A reload that is refused is counted, and what was counted stays through one that is applied.
    let good = std::fs::read_to_string(place.policies()).unwrap();
    place.policy(&good.replace("\"200ms\"", "\"soon\""));
    engine.signal("HUP").await;
    engine.says("nothing changes").await;
    place.policy(&good);
    engine.signal("HUP").await;
    engine.says("reloaded").await;
    let reload = |outcome| {
        format!("mamparo_policy_reloads_total{{mamparo_policy_outcome=\"{outcome}\",{scope}}} 1")
    };
    let (applied, not) = (reload("applied"), reload("refused"));
    has(&address, &[&applied, &not, &refused, &transactions]).await;
    engine.signal("TERM").await;
    assert_eq!(engine.ended().await, Some(0));
}

#[tokio::test]
async fn an_address_that_is_taken_is_told_in_a_line() {
    let place = Place::new("taken", "http://127.0.0.1:9");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let policies = place.policies();
    let ran = place
        .run(&[
            "engine",
            "run",
            "--policy",
            &policies,
            "--metrics",
            &address,
        ])
        .await;
    assert_eq!(ran.code, 4);
    let line = format!("metrics can't be served at {address}");
    assert!(ran.stderr.contains(&line), "{}", ran.stderr);
}
