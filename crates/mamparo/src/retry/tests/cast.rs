//! Who plays in the tests: the peer, its answers, the caller's requests, and who hears of it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{HeaderMap, Method, Request, Response};
use mamparo_core::http::Http;
use mamparo_core::{
    Backoff, BoxError, CallContext, Deadline, Event, Jitter, Observer, What, clock,
};
use mamparo_testkit::body::ScriptedBody;
use mamparo_testkit::service::{Script, Step};
use tower::{Layer, ServiceExt};

use crate::replay::ReplayBody;
use crate::retry::{RetryBuilder, RetryLayer, RetryPolicy};

pub(super) type Wire = Request<ReplayBody<ScriptedBody>>;
pub(super) type Answer = Response<ScriptedBody>;
pub(super) type Peer = Script<Wire, Answer, HeaderMap>;

pub(super) fn policy() -> RetryBuilder {
    let backoff = Backoff::builder().jitter(Jitter::None).build().unwrap();
    RetryPolicy::builder().backoff(backoff)
}

pub(super) fn retry() -> RetryLayer<Http> {
    RetryLayer::http(policy().build().unwrap()).dependency("catalog")
}

pub(super) fn peer(steps: impl IntoIterator<Item = Step<Answer>>) -> Peer {
    Script::noting(|request: &Wire| request.headers().clone(), steps)
}

pub(super) fn answer(status: u16) -> Answer {
    let body = ScriptedBody::new(format!("body of {status}"));
    Response::builder().status(status).body(body).unwrap()
}

pub(super) fn with(status: u16, name: &'static str, value: &str) -> Answer {
    let mut answer = answer(status);
    answer.headers_mut().insert(name, value.parse().unwrap());
    answer
}

pub(super) fn statuses(statuses: &[u16]) -> Peer {
    peer(statuses.iter().map(|status| Step::answer(answer(*status))))
}

pub(super) fn request(method: Method) -> Request<ScriptedBody> {
    let body = ScriptedBody::empty();
    Request::builder()
        .method(method)
        .uri("http://catalog/")
        .body(body)
        .unwrap()
}

pub(super) fn keyed(method: Method) -> Request<ScriptedBody> {
    let mut request = request(method);
    request
        .headers_mut()
        .insert("idempotency-key", "\"k\"".parse().unwrap());
    request
}

pub(super) async fn send(peer: &Peer, request: Request<ScriptedBody>) -> Result<Answer, BoxError> {
    retry().layer(peer.clone()).oneshot(request).await
}

#[derive(Clone, Debug, Default)]
pub(super) struct Heard(Arc<Mutex<Vec<String>>>);

impl Observer for Heard {
    fn on(&self, event: &Event<'_>) {
        let text = match event.what {
            What::ResendScheduled {
                next,
                reason,
                wait,
                hinted,
                ..
            } => {
                format!(
                    "resend {next} after {wait:?} for {} hinted {hinted}",
                    reason.as_str()
                )
            }
            What::NotResent { reason, .. } => format!("not resent: {}", reason.as_str()),
            What::OperationEnded {
                attempts, verdict, ..
            } => {
                format!("ended {} after {attempts}", verdict.as_str())
            }
            What::Nested {
                upstream_attempt, ..
            } => format!("nested {upstream_attempt}"),
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
