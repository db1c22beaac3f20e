//! Who plays in the tests: the peer, its answers, the caller's requests, and who hears of it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{HeaderMap, Method, Request, Response};
use mamparo_core::http::Http;
use mamparo_core::{Budget, CallContext, Cause, Deadline, Event, Observer, What, clock};
use mamparo_testkit::body::ScriptedBody;
use mamparo_testkit::service::{Script, Step};

use crate::hedge::{HedgeBuilder, HedgeLayer, HedgePolicy};
use crate::replay::ReplayBody;

pub(super) const MS: Duration = Duration::from_millis(1);

pub(super) type Wire = Request<ReplayBody<ScriptedBody>>;
pub(super) type Answer = Response<ScriptedBody>;
pub(super) type Peer = Script<Wire, Answer, (HeaderMap, u32, Cause)>;

/// A fixed delay of 100 ms, and nothing that bounds the load.
pub(super) fn policy() -> HedgeBuilder {
    let builder = HedgePolicy::builder()
        .fixed(100 * MS)
        .without_extra_load_cap();
    builder.budget(Budget::unlimited())
}

pub(super) fn hedge() -> HedgeLayer<Http> {
    HedgeLayer::http(policy().build().unwrap()).dependency("catalog")
}

/// A peer that notes each request's headers, and the attempt that it came with.
pub(super) fn peer(steps: impl IntoIterator<Item = Step<Answer>>) -> Peer {
    let note = |request: &Wire| {
        let context = CallContext::current();
        (
            request.headers().clone(),
            context.attempt(),
            context.cause(),
        )
    };
    Script::noting(note, steps)
}

pub(super) fn answer(status: u16) -> Answer {
    let body = ScriptedBody::new(format!("body of {status}"));
    Response::builder().status(status).body(body).unwrap()
}

/// An answer of that status after so many milliseconds.
pub(super) fn after(ms: u32, status: u16) -> Step<Answer> {
    Step::answer(answer(status)).after(ms * MS)
}

pub(super) fn with(status: u16, name: &'static str, value: &str) -> Answer {
    let mut answer = answer(status);
    answer.headers_mut().insert(name, value.parse().unwrap());
    answer
}

pub(super) fn request(method: Method) -> Request<ScriptedBody> {
    let body = ScriptedBody::empty();
    let request = Request::builder().method(method).uri("http://catalog/");
    request.body(body).unwrap()
}

pub(super) fn get() -> Request<ScriptedBody> {
    request(Method::GET)
}

/// When the peer was called, in milliseconds after the first call.
pub(super) fn sends(peer: &Peer) -> Vec<u128> {
    let starts = peer.starts();
    let since = |start: &clock::Instant| (*start - starts[0]).as_millis();
    starts.iter().map(since).collect()
}

#[derive(Clone, Debug, Default)]
pub(super) struct Heard(Arc<Mutex<Vec<String>>>);

impl Observer for Heard {
    fn on(&self, event: &Event<'_>) {
        let attempt = event.context.attempt();
        let text = match event.what {
            What::AttemptEnded { verdict } => format!("{attempt}: {}", verdict.as_str()),
            What::HedgeSent {
                attempt,
                beside,
                reason,
                delay,
            } => {
                let why = reason.map_or("slow", |kind| kind.as_str());
                format!("sent {attempt} beside {beside} after {delay:?}: {why}")
            }
            What::HedgeWon { attempt } => format!("won by {attempt}"),
            What::HedgeOff { reason } => format!("off: {}", reason.as_str()),
            What::NotResent { reason, .. } => format!("not resent: {}", reason.as_str()),
            What::OperationEnded {
                attempts, verdict, ..
            } => {
                format!("ended {} after {attempts}", verdict.as_str())
            }
            What::Rejected(rejection) => format!("rejected: {}", rejection.reason().as_str()),
            What::Nested { .. } => "nested".to_owned(),
            _ => return,
        };
        self.0.lock().unwrap().push(text);
    }
}

impl Heard {
    pub(super) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

pub(super) async fn within<T>(limit: Duration, call: impl Future<Output = T>) -> T {
    let deadline = Deadline::after(clock::now(), limit);
    let mut context = CallContext::current().with_deadline(deadline);
    let mut call = std::pin::pin!(call);
    std::future::poll_fn(|cx| context.enter(|| call.as_mut().poll(cx))).await
}
