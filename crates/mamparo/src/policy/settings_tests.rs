//! What settings of a file do to calls.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use http::{Method, Request, Response};
use mamparo_core::{Event, Observer};
use tower::{ServiceBuilder, ServiceExt};

use super::*;
use crate::replay::ReplayBody;
use crate::stack::Stack;

fn stack(settings: &str) -> Stack {
    let document = format!("[dependency.catalog]\n{settings}\n");
    let loader = Policies::loader().text("policies.toml", document, Format::Toml);
    let policies = loader.load().unwrap();
    policies.dependency("catalog").unwrap().http().unwrap()
}

/// Sends requests of that method to a peer that is unavailable; how many attempts reached it.
async fn sent(stack: Stack, method: Method, requests: u32) -> u32 {
    let sent = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&sent);
    let peer = tower::service_fn(move |_: Request<ReplayBody<String>>| {
        count.fetch_add(1, SeqCst);
        let answer = Response::builder().status(503).body(String::new()).unwrap();
        async { Ok::<_, Infallible>(answer) }
    });
    let service = ServiceBuilder::new().layer(stack).service(peer);
    for _ in 0..requests {
        let request = Request::builder().method(method.clone());
        let request = request.body(String::new()).unwrap();
        drop(service.clone().oneshot(request).await);
    }
    sent.load(SeqCst)
}

#[tokio::test(start_paused = true)]
async fn the_listed_methods_are_sent_again_and_no_others() {
    let listed = r#"retry = { methods = ["GET"] }"#;
    assert_eq!(sent(stack(listed), Method::GET, 1).await, 3);
    assert_eq!(sent(stack(listed), Method::PUT, 1).await, 1);
    assert_eq!(sent(stack(""), Method::PUT, 1).await, 3);
    let keyed = "retry = { methods = [\"GET\", \"POST\"] }\nidempotency_key = \"require\"";
    assert_eq!(sent(stack(keyed), Method::POST, 1).await, 3);
    assert_eq!(sent(stack(""), Method::POST, 1).await, 1);
}

/// The kind of each event that is heard.
#[derive(Clone, Debug, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl Observer for Heard {
    fn on(&self, event: &Event<'_>) {
        let what = format!("{:?}", event.what);
        let kind = what.split([' ', '(']).next().unwrap_or_default();
        self.0.lock().unwrap().push(kind.to_owned());
    }
}

impl Heard {
    fn count(&self, kind: &str) -> usize {
        let heard = self.0.lock().unwrap();
        heard.iter().filter(|it| *it == kind).count()
    }
}

/// Row I5: what is off lets everything pass and reports nothing; operations and attempts are told all the same.
#[tokio::test(start_paused = true)]
async fn what_is_off_reports_nothing_and_calls_are_told_all_the_same() {
    let heard = Heard::default();
    let off = stack("retry = \"off\"\nbreaker = \"off\"\nbulkhead = \"off\"");
    let off = off.observer(Arc::new(heard.clone()));
    assert_eq!(sent(off, Method::GET, 30).await, 30);
    for kind in ["AttemptEnded", "NotResent", "OperationEnded"] {
        assert_eq!(heard.count(kind), 30, "{kind}");
    }
    assert_eq!(heard.0.lock().unwrap().len(), 90, "{heard:?}");

    let heard = Heard::default();
    let on = stack("retry = \"off\"").observer(Arc::new(heard.clone()));
    assert_eq!(sent(on, Method::GET, 30).await, 5);
    assert_eq!(
        (heard.count("BreakerTransition"), heard.count("Rejected")),
        (1, 25)
    );
}
