use super::engine::Place;
use super::provider::Provider;
use crate::collector::Collector;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// Hours may lie between: each send is a trace of its own, and links the span that its transaction began in.
#[tokio::test]
async fn a_collector_gets_each_send_with_a_link_to_where_its_transaction_began() {
    let (_provider, url) = Provider::start(1).await;
    let (place, collector) = (Place::new("traces", &url), Collector::start().await);
    let engine = place.engine(&["--otlp", &collector.url()]).await;
    let traceparent = format!("00-{TRACE}-00f067aa0ba902b7-01");
    let policies = place.policies();
    let submit = ["tx", "submit", "p", "/charges", "--dependency", "psp"];
    let more = ["--policy", &policies, "--traceparent", &traceparent];
    let ran = place.run(&[&submit[..], &more].concat()).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    place.succeeded(1).await;
    engine.signal("TERM").await;
    assert_eq!(engine.ended().await, Some(0));
    // A send, its operation and its attempt: refused once, and done.
    let send = ("mamparo.defer psp".to_owned(), 3);
    assert_eq!(collector.linking(TRACE), [send.clone(), send]);
    let wrong = ["--policy", &policies, "--traceparent", "00-0-0-01"];
    let ran = place.run(&[&submit[..], &wrong].concat()).await;
    assert_eq!(ran.code, 2, "{}", ran.stderr);
}
