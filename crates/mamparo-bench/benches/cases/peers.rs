//! Breakers and a limiter that are no layers of tower, as services.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use failsafe::backoff::{Constant, constant};
use failsafe::failure_policy::{ConsecutiveFailures, consecutive_failures};
use failsafe::futures::CircuitBreaker;
use failsafe::{Config, StateMachine};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use http::Request;
use recloser::{AsyncRecloser, Recloser};
use seatbelt::breaker::Breaker;
use seatbelt::{RecoveryInfo, ResilienceContext};
use tick::Clock;
use tower::util::service_fn;
use tower::{Layer, Service};

use super::traffic::{Answer, Body, Failure, Inner};

const AN_HOUR: Duration = Duration::from_secs(3600);

/// Opens after five failures in a row; it has no window.
pub(crate) fn failsafe<S: Inner<Request<Body>>>(
    inner: S,
) -> impl Service<Request<Body>, Future: Send> + Clone + Send {
    within(failures_in_a_row(5), inner)
}

pub(crate) fn failsafe_open<S: Inner<Request<Body>>>(inner: S) -> impl Service<Request<Body>> {
    let breaker = failures_in_a_row(1);
    breaker.on_error();
    within(breaker, inner)
}

type InARow = StateMachine<ConsecutiveFailures<Constant>, ()>;

fn failures_in_a_row(failures: u32) -> InARow {
    let policy = consecutive_failures(failures, constant(AN_HOUR));
    Config::new().failure_policy(policy).build()
}

fn within<S: Inner<Request<Body>>>(
    breaker: InARow,
    mut inner: S,
) -> impl Service<Request<Body>, Future: Send> + Clone + Send {
    service_fn(move |request| CircuitBreaker::call(&breaker, inner.call(request)))
}

/// Opens by the share of failures in the last 100 calls.
pub(crate) fn recloser<S: Inner<Request<Body>>>(
    inner: S,
) -> impl Service<Request<Body>, Future: Send> + Clone + Send {
    reclosing(Recloser::custom().closed_len(100).build().into(), inner)
}

pub(crate) fn recloser_open<S: Inner<Request<Body>>>(inner: S) -> impl Service<Request<Body>> {
    let breaker = Recloser::custom().closed_len(1).open_wait(AN_HOUR).build();
    for _ in 0..3 {
        drop(breaker.call(|| Err::<(), _>(Failure)));
    }
    reclosing(breaker.into(), inner)
}

fn reclosing<S: Inner<Request<Body>>>(
    breaker: AsyncRecloser,
    mut inner: S,
) -> impl Service<Request<Body>, Future: Send> + Clone + Send {
    service_fn(move |request| breaker.call(inner.call(request)))
}

/// Opens by the share of failures in the last 30 s. To be made in a runtime, for its clock.
pub(crate) fn seatbelt<S: Inner<Request<Body>>>(inner: S) -> Breaker<Request<Body>, Answer, S> {
    let context = ResilienceContext::new(Clock::new_tokio());
    let layer = Breaker::layer("catalog", &context)
        .recovery_with(|answer: &Answer, _| match answer {
            Ok(_) => RecoveryInfo::never(),
            Err(_) => RecoveryInfo::retry(),
        })
        .rejected_input_error(|_: Request<Body>, _| Failure);
    layer.layer(inner)
}

pub(crate) fn governor<S: Inner<Request<Body>>>(
    inner: S,
) -> impl Service<Request<Body>, Future: Send> + Clone + Send {
    const A_LOT: NonZeroU32 = NonZeroU32::new(1_000_000_000).unwrap();
    limited(Quota::per_second(A_LOT), inner)
}

pub(crate) fn governor_used_up<S: Inner<Request<Body>>>(inner: S) -> impl Service<Request<Body>> {
    limited(Quota::per_hour(NonZeroU32::MIN), inner)
}

fn limited<S: Inner<Request<Body>>>(
    quota: Quota,
    mut inner: S,
) -> impl Service<Request<Body>, Future: Send> + Clone + Send {
    let limiter: Arc<DefaultDirectRateLimiter> = Arc::new(RateLimiter::direct(quota));
    service_fn(move |request| {
        let passes = limiter.check().is_ok();
        let call = passes.then(|| inner.call(request));
        async {
            match call {
                Some(call) => call.await,
                None => Err(Failure),
            }
        }
    })
}
