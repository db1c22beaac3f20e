//! What a collector gets, and what happens without one.

use std::time::Duration;

use mamparo_testkit::server::{Reply, Server};
use tokio::net::TcpListener;

use crate::collector::Collector;
use crate::run::call;

#[tokio::test]
async fn a_collector_gets_spans_and_metrics_of_the_service() {
    let server = Server::start(Reply::ok()).await;
    let collector = Collector::start().await;
    let ran = call(&[&server.url("/"), "--otlp", &collector.url()]).await;
    assert_eq!(ran.code, 0);
    assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
    assert_eq!(collector.client_spans().len(), 1);
    let metrics = collector.metric_names();
    for metric in [
        "mamparo.operations",
        "mamparo.attempts",
        "http.client.request.duration",
    ] {
        assert!(metrics.iter().any(|name| name == metric), "{metrics:?}");
    }
}

#[tokio::test]
async fn a_dead_collector_is_one_warning_and_no_failure() {
    let server = Server::start(Reply::ok().body("ok")).await;
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", port.local_addr().unwrap());
    drop(port);
    let ran = call(&[&server.url("/"), "--otlp", &url]).await;
    assert_eq!((ran.code, &ran.stdout[..]), (0, &b"ok"[..]));
    let warnings = ran.stderr.matches("warning: ").count();
    assert_eq!(warnings, 1, "{}", ran.stderr);
    assert!(ran.last_line().contains(&url), "{}", ran.stderr);
}

#[tokio::test]
async fn a_collector_that_hangs_is_given_up() {
    let server = Server::start(Reply::ok()).await;
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let ran = call(&[&server.url("/"), "--otlp", &url]).await;
    assert_eq!(ran.code, 0);
    assert!(ran.took < Duration::from_secs(5), "{:?}", ran.took);
    assert!(ran.last_line().starts_with("warning: "), "{}", ran.stderr);
}
