//! Who plays in the tests of gRPC's layers: the peer, its answers, its caller's requests.

use std::time::Duration;

use http::{HeaderMap, Method, Request, Response};
use mamparo_core::grpc::{Code, Codes, GRPC_PREVIOUS_RPC_ATTEMPTS};
use mamparo_core::{Backoff, CallContext, Cause, Kind, Resend, TransportError, clock};
use mamparo_testkit::body::{Frames, ScriptedBody};
use mamparo_testkit::service::{Script, Step};

use crate::grpc::{HedgePlan, MethodConfig, RetryPlan, ServiceConfig, ServiceConfigBuilder};
use crate::replay::ReplayBody;

pub(crate) const MS: Duration = Duration::from_millis(1);

pub(crate) type Wire = Request<ReplayBody<ScriptedBody>>;
pub(crate) type Answer = Response<ScriptedBody>;
pub(crate) type Peer = Script<Wire, Answer, Note>;

/// What a peer notes of a request.
#[derive(Clone, Debug)]
pub(crate) struct Note {
    pub(crate) headers: HeaderMap,
    pub(crate) attempt: u32,
    pub(crate) cause: Cause,
}

pub(crate) fn peer(steps: impl IntoIterator<Item = Step<Answer>>) -> Peer {
    let note = |request: &Wire| {
        let context = CallContext::current();
        Note {
            headers: request.headers().clone(),
            attempt: context.attempt(),
            cause: context.cause(),
        }
    };
    Script::noting(note, steps)
}

/// A peer that always answers with that status, in the head.
pub(crate) fn always(code: Code) -> Peer {
    peer([]).otherwise(move || Step::answer(status(code)))
}

/// A Trailers-Only answer.
pub(crate) fn status(code: Code) -> Answer {
    let head = Response::builder().header("content-type", "application/grpc");
    let head = head.header("grpc-status", u16::from(code.number()));
    head.body(ScriptedBody::empty()).unwrap()
}

/// A Trailers-Only answer that says when to come back.
pub(crate) fn pushed_back(code: Code, pushback: &[&str]) -> Answer {
    let mut answer = status(code);
    for value in pushback {
        let value = value.parse().unwrap();
        answer.headers_mut().append("grpc-retry-pushback-ms", value);
    }
    answer
}

/// An answer whose head says nothing: its stream does.
pub(crate) fn streamed(frames: Frames) -> Answer {
    let head = Response::builder().header("content-type", "application/grpc");
    head.body(ScriptedBody::new(frames)).unwrap()
}

pub(crate) fn ok() -> Answer {
    streamed(Frames::new().data("answer").trailer("grpc-status", "0"))
}

/// Proof that the peer did nothing with the request: `REFUSED_STREAM`, or a GOAWAY that tells so.
pub(crate) fn never_processed() -> Step<Answer> {
    Step::error(TransportError::new(
        Kind::Unavailable,
        Resend::Always,
        "refused stream",
    ))
}

pub(crate) fn reset() -> Step<Answer> {
    let reset = TransportError::new(Kind::Reset, Resend::IfIdempotent, "reset");
    Step::error(reset)
}

pub(crate) const PATH: &str = "/shop.Catalog/Search";

pub(crate) fn request() -> Request<ScriptedBody> {
    with_body(ScriptedBody::new("question"))
}

pub(crate) fn with_body(body: ScriptedBody) -> Request<ScriptedBody> {
    let request = Request::builder()
        .method(Method::POST)
        .uri(format!("http://catalog{PATH}"));
    request.body(body).unwrap()
}

/// 100 ms, ×2, up to 1 s, ±20 %.
pub(crate) fn backoff() -> Backoff {
    Backoff::grpc(100 * MS, 1_000 * MS, 2.0).unwrap()
}

pub(crate) fn retried(attempts: u32, codes: &[Code]) -> ServiceConfigBuilder {
    let codes: Codes = codes.iter().copied().collect();
    let plan = RetryPlan::new(attempts, backoff(), codes).unwrap();
    let config = MethodConfig::new().retried(plan);
    ServiceConfig::builder().service("shop.Catalog", config)
}

pub(crate) fn hedged(attempts: u32, delay: Duration, codes: &[Code]) -> ServiceConfigBuilder {
    let codes: Codes = codes.iter().copied().collect();
    let plan = HedgePlan::new(attempts, delay, codes).unwrap();
    let config = MethodConfig::new().hedged(plan);
    ServiceConfig::builder().service("shop.Catalog", config)
}

/// When the peer was called, in milliseconds after the first call.
pub(crate) fn sends(peer: &Peer) -> Vec<u128> {
    let starts = peer.starts();
    let since = |start: &clock::Instant| (*start - starts[0]).as_millis();
    starts.iter().map(since).collect()
}

/// What `grpc-previous-rpc-attempts` said, request by request.
pub(crate) fn previous_attempts(peer: &Peer) -> Vec<Option<String>> {
    let header = |note: Note| {
        let value = note.headers.get(GRPC_PREVIOUS_RPC_ATTEMPTS)?;
        Some(value.to_str().unwrap().to_owned())
    };
    peer.requests().into_iter().map(header).collect()
}

pub(crate) fn causes(peer: &Peer) -> Vec<(u32, Cause)> {
    let notes = peer.requests().into_iter();
    notes.map(|note| (note.attempt, note.cause)).collect()
}
