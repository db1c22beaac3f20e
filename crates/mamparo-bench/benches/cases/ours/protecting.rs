//! The protecting layers, each alone.

use std::future::{Pending, pending};
use std::mem;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

use http::{Request, Response};
use mamparo::breaker::{Breaker, BreakerLayer, BreakerPolicy, By, One, Window};
use mamparo::bulkhead::{Bulkhead, BulkheadLayer, BulkheadPolicy};
use mamparo::fallback::{self, Fallback, FallbackLayer, FallbackPolicy, Value};
use mamparo::hedge::{HedgeLayer, HedgePolicy};
use mamparo::load_shed::{AllEqual, LoadShed, LoadShedLayer, LoadShedPolicy};
use mamparo::rate_limit::{NoLimits, OneLimit, RateLimit, RateLimitLayer, RateLimitPolicy};
use mamparo_core::{BoxError, Plain};
use tower::util::service_fn;
use tower::{Layer, Service};

use super::plane::NAME;
use crate::cases::traffic::{Body, Failure, small};

/// More calls than a case makes in that time.
const A_LOT: u32 = 1_000_000_000;

const AN_HOUR: Duration = Duration::from_secs(3600);

const PLAIN: Plain = Plain::idempotent();

/// Opens after five failures in a row, as by default.
pub(crate) fn breaker<S>(inner: S) -> Breaker<S, Plain, One> {
    breakers(BreakerPolicy::default()).layer(inner)
}

/// Opens by the share of failures in the last 100 calls, too.
pub(crate) fn breaker_counting<S>(inner: S) -> Result<Breaker<S, Plain, One>, BoxError> {
    Ok(breakers(counting()?).layer(inner))
}

/// Opens by the share of failures in the last `length`, too.
pub(crate) fn breaker_timing<S>(
    length: Duration,
    inner: S,
) -> Result<Breaker<S, Plain, One>, BoxError> {
    let policy = BreakerPolicy::builder().no_consecutive_failures();
    let policy = policy.failure_rate(0.5).window(Window::time(length));
    Ok(breakers(policy.build()?).layer(inner))
}

type ByKey = By<fn(&Request<Body>) -> Option<&'static str>>;

/// One for each key; each request has a key that has no breaker, or none any more.
pub(crate) fn breakers_by_key<S>(inner: S) -> Result<Breaker<S, Plain, ByKey>, BoxError> {
    const KEPT: usize = 1024;
    static KEYS: LazyLock<Vec<String>> = LazyLock::new(|| {
        let keys = 0..4 * KEPT;
        keys.map(|key| format!("{key:06}.catalog.internal:443"))
            .collect()
    });
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let other: fn(&Request<Body>) -> Option<&'static str> = |_| {
        let next = NEXT.fetch_add(1, Ordering::Relaxed) % KEYS.len();
        Some(&KEYS[next])
    };
    let policy = BreakerPolicy::builder().failure_rate(0.5).max_keys(KEPT);
    let layer = BreakerLayer::keyed(policy.build()?, PLAIN, other);
    Ok(layer.dependency(NAME).layer(inner))
}

pub(crate) fn breaker_open<S>(inner: S) -> Breaker<S, Plain, One> {
    let layer = breakers(BreakerPolicy::default());
    layer.handle().force_open();
    layer.layer(inner)
}

pub(super) fn counting() -> Result<BreakerPolicy, BoxError> {
    let policy = BreakerPolicy::builder().failure_rate(0.5);
    Ok(policy.window(Window::calls(100)).build()?)
}

pub(super) fn breakers(policy: BreakerPolicy) -> BreakerLayer<Plain> {
    BreakerLayer::new(policy, PLAIN).dependency(NAME)
}

pub(crate) fn bulkhead<S>(inner: S) -> Result<Bulkhead<S, Plain>, BoxError> {
    Ok(bulkheads(100_000)?.layer(inner))
}

pub(crate) fn bulkhead_full<S>(inner: S) -> Result<Bulkhead<S, Plain>, BoxError> {
    Ok(full()?.layer(inner))
}

/// A bulkhead without a queue.
pub(super) fn bulkheads(limit: usize) -> Result<BulkheadLayer<Plain>, BoxError> {
    let policy = BulkheadPolicy::builder().limit(limit).max_waiting(0);
    Ok(BulkheadLayer::new(policy.build()?, PLAIN).dependency(NAME))
}

/// One place, which a call keeps that never ends.
pub(super) fn full() -> Result<BulkheadLayer<Plain>, BoxError> {
    let layer = bulkheads(1)?;
    let mut endless = layer.layer(service_fn(never));
    let mut call = Box::pin(endless.call(small()));
    let polled = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_pending(), "it has the only place");
    mem::forget(call);
    Ok(layer)
}

fn never(_: Request<Body>) -> Pending<Result<Response<Body>, Failure>> {
    pending()
}

pub(crate) fn rate_limit<S>(inner: S) -> Result<RateLimit<S, OneLimit, NoLimits>, BoxError> {
    let policy = RateLimitPolicy::per(Duration::from_secs(1), A_LOT).build()?;
    Ok(RateLimitLayer::new(policy).dependency(NAME).layer(inner))
}

/// One call an hour, which has been made.
pub(crate) fn rate_limit_used_up<S>(
    inner: S,
) -> Result<RateLimit<S, OneLimit, NoLimits>, BoxError> {
    let policy = RateLimitPolicy::per(AN_HOUR, 1).build()?;
    let layer = RateLimitLayer::new(policy).dependency(NAME);
    drop(layer.layer(service_fn(never)).call(small()));
    Ok(layer.layer(inner))
}

/// Hedges what is not answered within a second.
pub(crate) fn hedge<S: Clone>(
    inner: S,
) -> Result<<HedgeLayer<Plain> as Layer<S>>::Service, BoxError> {
    let policy = HedgePolicy::builder().fixed(Duration::from_secs(1));
    let layer = HedgeLayer::new(policy.build()?, PLAIN);
    Ok(layer.dependency(NAME).layer(inner))
}

pub(crate) fn fallback<S>(inner: S) -> Fallback<S, Plain, Value<Response<Body>>> {
    let value = fallback::value(Response::new(Body::default()));
    let layer = FallbackLayer::new(FallbackPolicy::default(), PLAIN, value);
    layer.dependency(NAME).layer(inner)
}

pub(crate) fn load_shed<S>(inner: S) -> Result<LoadShed<S, Plain, AllEqual>, BoxError> {
    Ok(shedding(100_000)?.layer(inner))
}

/// Sheds each call: the only place is taken by one that never ends.
pub(crate) fn overloaded<S>(inner: S) -> Result<LoadShed<S, Plain, AllEqual>, BoxError> {
    let layer = shedding(1)?;
    let mut endless = layer.layer(service_fn(never));
    mem::forget(endless.call(small()));
    Ok(layer.layer(inner))
}

fn shedding(most: usize) -> Result<LoadShedLayer<Plain>, BoxError> {
    let policy = LoadShedPolicy::builder().max_in_flight(most).build()?;
    Ok(LoadShedLayer::new(policy, PLAIN).dependency(NAME))
}
