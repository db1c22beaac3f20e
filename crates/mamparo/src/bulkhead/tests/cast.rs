//! What the tests of a bulkhead have in common.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use http::Request;
use mamparo_core::http::Http;
use mamparo_core::{
    BoxError, CallContext, Deadline, Dependency, Event, LayerKind, Observer, Plain, Rejection,
    What, clock,
};
use mamparo_testkit::service::{Script, Step};
use tower::{Service, ServiceExt};

use super::super::*;

pub(super) type Peer = Script<u32, u32>;
pub(super) type Caller = Bulkhead<Peer, Plain>;
pub(super) type Call<T> = Pin<Box<dyn Future<Output = Result<T, BoxError>> + Send>>;

pub(super) const fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// So many places, and so many in the queue.
pub(super) fn sized(limit: usize, max_waiting: usize) -> BulkheadBuilder {
    BulkheadPolicy::builder()
        .limit(limit)
        .max_waiting(max_waiting)
}

pub(super) fn plain(policy: BulkheadBuilder) -> BulkheadLayer<Plain> {
    let policy = policy.build().unwrap();
    BulkheadLayer::new(policy, Plain::idempotent()).dependency("catalog")
}

pub(super) fn http(policy: BulkheadBuilder) -> BulkheadLayer<Http> {
    BulkheadLayer::http(policy.build().unwrap()).dependency("catalog")
}

/// Answers 7 after so long, each time.
pub(super) fn slow(wait: Duration) -> Peer {
    Peer::new([]).otherwise(move || Step::answer(7).after(wait))
}

pub(super) fn hanging() -> Peer {
    Peer::new([]).otherwise(Step::hang)
}

pub(super) fn get() -> Request<()> {
    Request::new(())
}

/// A call that was made but not polled yet.
pub(super) fn called(service: &Caller) -> Call<u32> {
    let mut service = service.clone();
    Box::pin(service.call(1))
}

/// A call on a task of its own, polled once.
pub(super) async fn spawned(service: &Caller) -> tokio::task::JoinHandle<Result<u32, BoxError>> {
    let call = tokio::spawn(service.clone().oneshot(1));
    tokio::task::yield_now().await;
    call
}

pub(super) fn poll<T>(call: &mut Call<T>) -> Poll<Result<T, BoxError>> {
    call.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// Makes a call as an operation would that has so long to go.
pub(super) async fn within<T>(limit: Duration, call: impl Future<Output = T>) -> T {
    let deadline = Deadline::after(clock::now(), limit);
    let mut context =
        CallContext::join(LayerKind::Operation, Dependency::UNNAMED).with_deadline(deadline);
    let mut call = std::pin::pin!(call);
    std::future::poll_fn(|cx| context.enter(|| call.as_mut().poll(cx))).await
}

pub(super) fn rejection(error: &BoxError) -> &Rejection {
    Rejection::of(&**error).expect("a rejection")
}

#[derive(Clone, Debug, Default)]
pub(super) struct Heard(Arc<Mutex<Vec<String>>>);

impl Observer for Heard {
    fn on(&self, event: &Event<'_>) {
        let text = match event.what {
            What::Rejected(rejection) => rejection.to_string(),
            What::QueueWaited { waited, limit } => format!("waited {waited:?} for one of {limit}"),
            What::LimitChanged { from, to } => format!("{from} to {to}"),
            _ => format!("{:?}", event.what),
        };
        self.0.lock().unwrap().push(text);
    }
}

impl Heard {
    pub(super) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub(super) fn observer(&self) -> Arc<dyn Observer> {
        Arc::new(self.clone())
    }
}
