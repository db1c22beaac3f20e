//! The yardstick: what deadline, permit, budget, breaker, latency histogram and a copy for a replay cost at the least.
//!
//! One service and one future do the bookkeeping of a whole stack by hand, and nothing more: no setting, no event, no
//! context, no resend. It is not a design; it says how far layers are from what can't be saved.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::Request;
use mamparo_core::BoxError;
use mamparo_core::clock::{self, Instant};
use pin_project::pin_project;
use tokio::time::Sleep;
use tower::Service;

use super::traffic::{Body, Failure, Inner};

const LIMIT: Duration = Duration::from_secs(30);
const MOST_IN_FLIGHT: u32 = 1 << 20;
const BUCKETS: usize = 32;

/// All that the calls to one dependency share; what is counted is on its own cache line, apart from what is read.
#[derive(Default)]
struct Shared {
    open: AtomicBool,
    counted: Counted,
}

#[derive(Default)]
#[repr(align(128))]
struct Counted {
    in_flight: AtomicU32,
    /// Calls in the low half, failures in the high one.
    window: AtomicU64,
    budget: AtomicU64,
    latencies: [AtomicU64; BUCKETS],
    latency_sum: AtomicU64,
}

/// The yardstick around a service.
#[derive(Clone)]
pub(crate) struct Floor<S> {
    inner: S,
    shared: Arc<Shared>,
}

impl<S> Floor<S> {
    pub(crate) fn new(inner: S) -> Self {
        Self {
            inner,
            shared: Arc::default(),
        }
    }
}

/// One call through the yardstick.
#[pin_project]
pub(crate) struct FloorFuture<S: Service<Request<Body>>> {
    /// None when the call was refused.
    #[pin]
    call: Option<S::Future>,
    #[pin]
    timer: Option<Sleep>,
    began: Instant,
    /// What a resend would need.
    kept: Option<(Request<Body>, S)>,
    shared: Arc<Shared>,
}

impl<S: Inner<Request<Body>>> Service<Request<Body>> for Floor<S> {
    type Response = S::Response;
    type Error = BoxError;
    type Future = FloorFuture<S>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    #[inline]
    fn call(&mut self, request: Request<Body>) -> FloorFuture<S> {
        let admitted = self.shared.admit();
        let began = clock::now();
        let mut kept = None;
        let call = admitted.then(|| {
            let copy = request.clone();
            let next = self.inner.clone();
            let mut ready = mem::replace(&mut self.inner, next);
            let call = ready.call(request);
            kept = Some((copy, ready));
            call
        });
        FloorFuture {
            call,
            timer: None,
            began,
            kept,
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<S: Inner<Request<Body>>> Future for FloorFuture<S> {
    type Output = Result<S::Response, BoxError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let Some(call) = this.call.as_mut().as_pin_mut() else {
            return Poll::Ready(Err(Failure.into()));
        };
        if let Poll::Ready(answer) = call.poll(cx) {
            let failed = !answer.as_ref().is_ok_and(|r| r.status().is_success());
            this.shared.record(*this.began, failed);
            return Poll::Ready(answer.map_err(Into::into));
        }
        if this.timer.is_none() {
            this.timer.set(Some(tokio::time::sleep(LIMIT)));
        }
        if let Some(timer) = this.timer.as_mut().as_pin_mut() {
            ready!(timer.poll(cx));
        }
        this.shared.record(*this.began, true);
        Poll::Ready(Err(Failure.into()))
    }
}

impl Shared {
    fn admit(&self) -> bool {
        if self.open.load(Ordering::Acquire) {
            return false;
        }
        let admitted = self.counted.in_flight.fetch_add(1, Ordering::AcqRel) < MOST_IN_FLIGHT;
        if !admitted {
            self.counted.in_flight.fetch_sub(1, Ordering::AcqRel);
        }
        admitted
    }

    fn record(&self, began: Instant, failed: bool) {
        let counted = &self.counted;
        let took = (clock::now() - began).as_nanos() as u64;
        counted.in_flight.fetch_sub(1, Ordering::AcqRel);
        let call = 1 + (u64::from(failed) << 32);
        let window = counted.window.fetch_add(call, Ordering::AcqRel) + call;
        let (calls, failures) = (window & u64::from(u32::MAX), window >> 32);
        if failed && calls > 100 && failures * 2 > calls {
            self.open.store(true, Ordering::Release);
        }
        counted.budget.fetch_add(1, Ordering::AcqRel);
        let bucket = (u64::BITS - took.leading_zeros()) as usize;
        counted.latencies[bucket.min(BUCKETS - 1)].fetch_add(1, Ordering::AcqRel);
        counted.latency_sum.fetch_add(took, Ordering::AcqRel);
    }
}
