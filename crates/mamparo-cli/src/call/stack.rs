//! The layers of a call, as its options set them.

use mamparo::attempt_timeout::AttemptPolicy;
use mamparo::breaker::BreakerPolicy;
use mamparo::bulkhead::BulkheadPolicy;
use mamparo::connect_timeout::ConnectTimeoutLayer;
use mamparo::deadline::DeadlinePolicy;
use mamparo::hedge::HedgePolicy;
use mamparo::rate_limit::RateLimitPolicy;
use mamparo::retry::RetryPolicy;
use mamparo::stack::{Protocol, Stack};
use mamparo_core::InvalidSetting;
use tower::layer::util::Identity;

use super::about::Refused;
use crate::args::{CallArgs, Delay, Limit};

/// How many attempts are made at most, unless it is said: by a retry, and by a hedge.
pub(super) const ATTEMPTS: u32 = 3;
pub(super) const HEDGED_ATTEMPTS: u32 = 2;

/// A stack that has neither telemetry nor a fallback yet.
pub(super) type Bare<P> = Stack<Identity, Identity, Identity, P>;

/// Sets a stack up, without what one call can't show: a breaker and a bulkhead protect from many.
pub(super) fn stack<P: Protocol>(args: &CallArgs, stack: Bare<P>) -> Result<Bare<P>, Refused> {
    Ok(rated(args, resending(args, bounded(args, stack)?)?)?)
}

/// Sets up what bounds a call.
pub(super) fn bounded<P: Protocol>(
    args: &CallArgs,
    stack: Bare<P>,
) -> Result<Bare<P>, InvalidSetting> {
    let deadline = match args.deadline {
        Limit::Within(limit) => DeadlinePolicy::within(limit)?,
        Limit::None => DeadlinePolicy::none(),
    };
    let attempt = match args.attempt_timeout {
        Limit::Within(limit) => AttemptPolicy::builder().timeout(limit),
        Limit::None => AttemptPolicy::builder().no_timeout(),
    };
    let connect = match args.connect_timeout {
        Limit::Within(limit) => ConnectTimeoutLayer::new(limit)?,
        Limit::None => ConnectTimeoutLayer::none(),
    };
    Ok(stack
        .deadline(deadline)
        .attempt(attempt.build()?)
        .connect_timeout(connect)
        .breaker(BreakerPolicy::off())
        .bulkhead(BulkheadPolicy::off()))
}

fn resending<P: Protocol>(args: &CallArgs, stack: Bare<P>) -> Result<Bare<P>, InvalidSetting> {
    let Some(Delay(delay)) = args.hedge else {
        let retry = RetryPolicy::builder().max_attempts(args.attempts.unwrap_or(ATTEMPTS));
        return Ok(stack.retry(retry.build()?));
    };
    // It was asked for, and there is no other load that it could add to.
    let hedge = HedgePolicy::builder().fixed(delay).without_extra_load_cap();
    let hedge = hedge.max_attempts(args.attempts.unwrap_or(HEDGED_ATTEMPTS));
    Ok(stack.hedge(hedge.build()?))
}

fn rated<P: Protocol>(args: &CallArgs, stack: Bare<P>) -> Result<Bare<P>, InvalidSetting> {
    let Some(rate) = args.rate else {
        return Ok(stack);
    };
    let mut policy = RateLimitPolicy::per(rate.period, rate.count);
    if let Some(Delay(wait)) = args.rate_wait {
        policy = policy.max_wait(wait);
    }
    Ok(stack.rate_limit(policy.build()?))
}
