use std::time::Duration;

use mamparo_core::clock;
use mamparo_testkit::private::PrivateRabbit;

use super::engine::Place;
use super::provider::Provider;
use crate::run::mamparo;

#[tokio::test]
async fn a_refused_request_is_sent_again_until_it_is_done_and_all_of_it_can_be_seen() {
    let (provider, url) = Provider::start(2).await;
    let place = Place::new("runs", &url);
    let ran = place.submit("payment-1").await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let json = ran.json();
    assert_eq!(
        (&json["state"], &json["new"]),
        (&"IN_FLIGHT".into(), &true.into())
    );
    assert_eq!(place.submit("payment-1").await.json()["new"], false);

    let engine = place.engine(&[]).await;
    place.succeeded(1).await;
    assert_eq!(
        provider.keys(),
        ["payment-1#1", "payment-1#2", "payment-1#3"]
    );
    assert_eq!(provider.effects(), ["payment-1#3"]);
    // One that another process submits while it runs.
    assert_eq!(place.submit("payment-2").await.code, 0);
    place.succeeded(2).await;

    let began = clock::now();
    engine.signal("TERM").await;
    assert_eq!(engine.ended().await, Some(0));
    assert!(clock::now() - began < Duration::from_secs(5));

    let shown = place
        .run(&["tx", "show", "payment-1", "--json"])
        .await
        .json();
    assert_eq!(
        (&shown["state"], &shown["end"]),
        (&"SUCCEEDED".into(), &"answered".into())
    );
    let history = shown["history"].as_array().unwrap();
    let causes: Vec<_> = history
        .iter()
        .map(|event| event["cause"].as_str().unwrap())
        .collect();
    assert_eq!(
        causes.iter().filter(|cause| **cause == "refused").count(),
        2,
        "{causes:?}"
    );
    assert!(history.iter().any(|event| event["reason"] == "CANCELLED"));
    assert!(history.iter().any(|event| event["schedule"].is_string()));
    let text = place.run(&["tx", "show", "payment-1"]).await;
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(
        text.starts_with("payment-1  SUCCEEDED  attempt 3 of 4  answered"),
        "{text}"
    );

    let status = place.run(&["engine", "status", "--json"]).await.json();
    assert_eq!(status["transactions"][0]["transactions"], 2);
    assert_eq!(
        (&status["dead_letters"], &status["overdue"]),
        (&0.into(), &0.into())
    );
    let table = String::from_utf8(place.run(&["engine", "status"]).await.stdout).unwrap();
    assert!(
        table.contains("SUCCEEDED") && table.contains("0 overdue"),
        "{table}"
    );
}

#[tokio::test]
async fn answers_and_requests_may_be_in_a_rabbitmq() {
    let (provider, url) = Provider::start(1).await;
    let broker = PrivateRabbit::shared().await.url();
    let place = Place::new("broker", &url).with_broker(broker);
    assert_eq!(place.submit("payment-1").await.code, 0);
    let status = place.run(&["engine", "status", "--json"]).await.json();
    assert_eq!(status["queues"]["requests"]["ready"], 1);
    let file_alone = Place::store(&place).split(',').next().unwrap().to_owned();
    let status = mamparo(&["engine", "status", "--json", "--store", &file_alone]).await;
    assert_eq!(status.json()["queues"]["requests"]["ready"], 0);
    let engine = place.engine(&[]).await;
    place.succeeded(1).await;
    assert_eq!(provider.keys(), ["payment-1#1", "payment-1#2"]);
    engine.signal("TERM").await;
    assert_eq!(engine.ended().await, Some(0));
    let store = format!("{file_alone},amqp://guest@nowhere:none/%2f");
    let ran = mamparo(&["tx", "list", "--store", &store]).await;
    assert!(ran.code == 2 && ran.stderr.contains("amqp://user:password@host"));
}

#[tokio::test]
async fn policies_are_loaded_anew_all_or_nothing() {
    let (_, url) = Provider::start(9).await;
    let place = Place::new("reload", &url);
    let mut engine = place.engine(&[]).await;
    let good = std::fs::read_to_string(place.policies()).unwrap();
    place.policy(&good.replace("\"200ms\"", "\"soon\""));
    engine.signal("HUP").await;
    engine.says("nothing changes").await;
    place.policy(&format!("{good}defer.max_attempts = 2\n"));
    engine.signal("HUP").await;
    engine.says("reloaded").await;
    // What begins under it ends under it: refused twice, and exhausted.
    assert_eq!(place.submit("payment-1").await.code, 0);
    let line = engine.says("exhausted").await;
    assert!(line.contains("payment-1"), "{line}");
    engine.signal("TERM").await;
    assert_eq!(engine.ended().await, Some(0));
    assert_eq!(place.listed("FAILED").await[0]["end"], "exhausted");
}

#[tokio::test]
async fn an_operator_resolves_cancels_and_hurries_what_waits() {
    let (provider, url) = Provider::start(1).await;
    let place = Place::new("operates", &url);
    let slow = std::fs::read_to_string(place.policies()).unwrap();
    place.policy(&slow.replace(
        "base = \"200ms\", cap = \"200ms\"",
        "base = \"1h\", cap = \"1h\"",
    ));
    let engine = place.engine(&[]).await;
    for id in ["now", "never", "done"] {
        assert_eq!(place.submit(id).await.code, 0);
    }
    for _ in 0..200 {
        if place.listed("scheduled").await.len() == 3 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let ran = place
        .run(&["tx", "retry-now", "now", "--reason", "it is back"])
        .await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let ran = place
        .run(&[
            "tx",
            "cancel",
            "never",
            "--reason",
            "by the customer",
            "--json",
        ])
        .await;
    assert_eq!((ran.code, &ran.json()["end"]), (0, &"cancelled".into()));
    let ran = place.run(&["tx", "resolve", "done", "--json"]).await;
    assert_eq!((ran.code, &ran.json()["end"]), (0, &"resolved".into()));
    place.succeeded(2).await;
    let ran = place.run(&["tx", "cancel", "now"]).await;
    assert_eq!(
        (ran.code, ran.last_line()),
        (1, "error: now is SUCCEEDED: it is at its end")
    );
    assert_eq!(provider.effects(), ["now#2"]);
    engine.signal("TERM").await;
    assert_eq!(engine.ended().await, Some(0));
}
