//! A dependency's settings as the policies of its layers.

use std::time::Duration;

use http::{HeaderName, Method};
use mamparo_core::http::Http;
use mamparo_core::{Backoff, Budget, InvalidSetting, Jitter, Reserve};
use tower_layer::Identity;

use super::Problem;
use super::live::Live;
use super::view::View;
use crate::attempt_timeout::AttemptPolicy;
use crate::breaker::{BreakerPolicy, Window};
use crate::bulkhead::BulkheadPolicy;
use crate::connect_timeout::ConnectTimeoutLayer;
use crate::deadline::DeadlinePolicy;
use crate::hedge::HedgePolicy;
use crate::idempotency_key::{KeyForm, KeyPolicy};
use crate::load_shed::LoadShedPolicy;
use crate::rate_limit::RateLimitPolicy;
use crate::retry::RetryPolicy;
use crate::stack::{Protocol, Stack};

/// The defaults that a file's arithmetic needs; the layers have the same, and a test holds them to it.
pub(super) const DEADLINE: Duration = Duration::from_secs(10);
pub(super) const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(2);
pub(super) const MAX_ATTEMPTS: u32 = 3;
pub(super) const MAX_HINT: Duration = Duration::from_secs(30);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
const BODY_IDLE: Duration = Duration::from_secs(10);

/// Builds the stack of a dependency whose table was checked; what a layer refuses is told with its place.
pub(super) fn build(view: &View) -> Result<Live, Box<Problem>> {
    let name = view.name.as_str();
    let built = match view.text("protocol") {
        Some("grpc") => policies(view, Stack::grpc(name)).map(Live::grpc),
        _ => policies(view, Stack::http(name)).and_then(|stack| {
            let http = classifier(view).map_err(|error| (error, "retry"))?;
            Ok(Live::http(stack.classifier(http)))
        }),
    };
    built.map_err(|(error, part)| refused(view, &error, part))
}

type Refused = (InvalidSetting, &'static str);

fn policies<P: Protocol>(
    view: &View,
    stack: Stack<Identity, Identity, Identity, P>,
) -> Result<Stack<Identity, Identity, Identity, P>, Refused> {
    let of = |part| move |error| (error, part);
    let mut stack = stack
        .deadline(deadline(view).map_err(of(""))?)
        .load_shed(load_shed(view).map_err(of("load_shed"))?)
        .idempotency_key(key(view).map_err(of("idempotency_key"))?)
        .bulkhead(bulkhead(view).map_err(of("bulkhead"))?)
        .rate_limit(rate_limit(view).map_err(of("rate_limit"))?)
        .attempt(attempt(view).map_err(of("retry"))?)
        .connect_timeout(connect(view).map_err(of(""))?);
    let breaker = breaker(view).map_err(of("breaker"))?;
    stack = match view.text("breaker.observes") {
        Some("operations") => stack
            .breaker(BreakerPolicy::off())
            .operation_breaker(breaker),
        _ => stack.breaker(breaker),
    };
    Ok(if view.is_on("hedge", false) {
        stack.hedge(hedge(view).map_err(of("hedge"))?)
    } else {
        stack.retry(retry(view).map_err(of("retry"))?)
    })
}

/// A builder's words for a setting are the file's, behind the part's name.
#[cold]
fn refused(view: &View, error: &InvalidSetting, part: &str) -> Box<Problem> {
    let setting = error.setting();
    let inner = super::schema::join(part, setting);
    let path = [inner.as_str(), setting, part]
        .into_iter()
        .find(|path| view.is_written(path))
        .unwrap_or(part);
    let origin = match view.is_written(path) {
        true => view.origin(path),
        false => view.origin.clone(),
    };
    let message = match view.table.at(path) {
        Some(node) => format!("{} {}", node.value, error.reason()),
        None => error.to_string(),
    };
    let remedy = match super::schema::find(path) {
        Some(field) => format!(
            "write another value, or leave it out: the default is {}. {}",
            field.default, field.says
        ),
        None => "mend it, or leave it out".to_owned(),
    };
    let path = view.path(path);
    Box::new(Problem::error(
        "refused-value",
        &origin,
        path,
        message,
        remedy,
    ))
}

fn deadline(view: &View) -> Result<DeadlinePolicy, InvalidSetting> {
    let policy = match view.limit_or("deadline", DEADLINE) {
        Some(limit) => DeadlinePolicy::within(limit)?,
        None => DeadlinePolicy::none(),
    };
    match view.duration("reserve") {
        Some(reserve) => policy.reserve(Reserve::fixed(reserve)),
        None => Ok(policy),
    }
}

fn attempt(view: &View) -> Result<AttemptPolicy, InvalidSetting> {
    let builder = match attempt_timeout(view) {
        Some(timeout) => AttemptPolicy::builder().timeout(timeout),
        None => AttemptPolicy::builder().no_timeout(),
    };
    match view.limit_or("body_idle", BODY_IDLE) {
        Some(idle) => builder.body_idle(idle),
        None => builder.no_body_idle(),
    }
    .build()
}

/// How long one attempt may take: it stands with whatever owns the resends.
pub(super) fn attempt_timeout(view: &View) -> Option<Duration> {
    view.limit_or(attempt_timeout_path(view), ATTEMPT_TIMEOUT)
}

pub(super) fn attempt_timeout_path(view: &View) -> &'static str {
    if view.is_on("hedge", false) {
        "hedge.attempt_timeout"
    } else {
        "retry.attempt_timeout"
    }
}

fn connect(view: &View) -> Result<ConnectTimeoutLayer, InvalidSetting> {
    match view.limit_or("connect_timeout", CONNECT_TIMEOUT) {
        Some(limit) => ConnectTimeoutLayer::new(limit),
        None => Ok(ConnectTimeoutLayer::none()),
    }
}

pub(super) fn load_shed(view: &View) -> Result<LoadShedPolicy, InvalidSetting> {
    if !view.is_on("load_shed", false) {
        return Ok(LoadShedPolicy::off());
    }
    let mut builder = LoadShedPolicy::builder();
    if let Some(most) = view.count("load_shed.max_in_flight") {
        builder = builder.max_in_flight(most.try_into().unwrap_or(usize::MAX));
    }
    if let Some(wait) = view.duration("load_shed.retry_after") {
        builder = builder.retry_after(wait);
    }
    builder.build()
}

fn key(view: &View) -> Result<KeyPolicy, InvalidSetting> {
    if !view.is_on("idempotency_key", false) {
        return Ok(KeyPolicy::off());
    }
    let mut builder = KeyPolicy::builder();
    if let Some(text) = view.text("idempotency_key.header") {
        let name = text
            .parse::<HeaderName>()
            .map_err(|_| InvalidSetting::new("header", text, "must be the name of a header"))?;
        builder = builder.header(name);
    }
    if view.text("idempotency_key.form") == Some("bare") {
        builder = builder.form(KeyForm::Bare);
    }
    builder.build()
}

pub(super) fn bulkhead(view: &View) -> Result<BulkheadPolicy, InvalidSetting> {
    if !view.is_on("bulkhead", true) {
        return Ok(BulkheadPolicy::off());
    }
    let size = |path| view.count(path).and_then(|number| number.try_into().ok());
    let mut builder = BulkheadPolicy::builder();
    if let Some(limit) = size("bulkhead.max_concurrent") {
        builder = builder.limit(limit);
    }
    if let Some(waiting) = size("bulkhead.max_waiting") {
        builder = builder.max_waiting(waiting);
    }
    match view.text("bulkhead.max_wait") {
        Some("deadline") => builder = builder.wait_until_deadline(),
        _ => {
            if let Some(wait) = view.duration("bulkhead.max_wait") {
                builder = builder.max_wait(wait);
            }
        }
    }
    builder.build()
}

fn rate_limit(view: &View) -> Result<RateLimitPolicy, InvalidSetting> {
    if !view.is_on("rate_limit", false) {
        return Ok(RateLimitPolicy::off());
    }
    let period = view.duration_or("rate_limit.period", Duration::from_secs(1));
    let count = view.count_u32("rate_limit.count").unwrap_or_default();
    let mut builder = RateLimitPolicy::per(period, count);
    if let Some(burst) = view.count_u32("rate_limit.burst") {
        builder = builder.burst(burst);
    }
    if let Some(wait) = view.duration("rate_limit.max_wait") {
        builder = builder.max_wait(wait);
    }
    builder.build()
}

fn budget(view: &View) -> Result<Budget, InvalidSetting> {
    let mut builder = Budget::builder();
    if let Some(ratio) = view.number("budget.ratio") {
        builder = builder.ratio(ratio);
    }
    if let Some(least) = view.count_u32("budget.min_per_second") {
        builder = builder.min_per_second(least);
    }
    if let Some(most) = view.count_u32("budget.max_concurrent") {
        builder = builder.max_concurrent(most);
    }
    builder.build()
}

/// The waits between attempts.
pub(super) fn backoff(view: &View) -> Result<Backoff, InvalidSetting> {
    let mut builder = Backoff::builder();
    if let Some(base) = view.duration("retry.backoff.base") {
        builder = builder.base(base);
    }
    if let Some(cap) = view.duration("retry.backoff.cap") {
        builder = builder.cap(cap);
    }
    if let Some(factor) = view.number("retry.backoff.factor") {
        builder = builder.factor(factor);
    }
    let jitter = match view.text("retry.backoff.jitter") {
        Some("equal") => Jitter::Equal,
        Some("decorrelated") => Jitter::Decorrelated,
        Some("none") => Jitter::None,
        _ => Jitter::Full,
    };
    builder.jitter(jitter).build()
}

/// How many attempts an operation makes at most.
pub(super) fn max_attempts(view: &View) -> u32 {
    if view.is_on("hedge", false) {
        return view.count_u32("hedge.max_attempts").unwrap_or(2);
    }
    if !view.is_on("retry", true) {
        return 1;
    }
    view.count_u32("retry.max_attempts").unwrap_or(MAX_ATTEMPTS)
}

fn retry(view: &View) -> Result<RetryPolicy, InvalidSetting> {
    let mut builder = RetryPolicy::builder()
        .max_attempts(max_attempts(view))
        .backoff(backoff(view)?)
        .budget(budget(view)?);
    if let Some(longest) = view.duration("retry.max_hint") {
        builder = builder.max_hint(longest);
    }
    if let Some(least) = view.duration("retry.min_attempt_time") {
        builder = builder.min_attempt_time(least);
    }
    if let Some(bytes) = view.count("retry.max_body") {
        builder = builder.max_body(bytes.try_into().unwrap_or(usize::MAX));
    }
    builder.build()
}

fn hedge(view: &View) -> Result<HedgePolicy, InvalidSetting> {
    let mut builder = HedgePolicy::builder()
        .max_attempts(max_attempts(view))
        .budget(budget(view)?);
    if let Some(delay) = view.duration("hedge.delay") {
        builder = builder.delay(delay);
    }
    if let Some(share) = view.number("hedge.percentile") {
        builder = builder.percentile(share);
    }
    if let Some(share) = view.number("hedge.max_extra_load") {
        builder = builder.max_extra_load(share);
    }
    if let Some(only) = view.flag("hedge.idempotent_only") {
        builder = builder.idempotent_only(only);
    }
    builder.build()
}

fn breaker(view: &View) -> Result<BreakerPolicy, InvalidSetting> {
    if !view.is_on("breaker", true) {
        return Ok(BreakerPolicy::off());
    }
    let mut builder = BreakerPolicy::builder();
    if let Some(failures) = view.count_u32("breaker.consecutive_failures") {
        builder = builder.consecutive_failures(failures);
    }
    if let Some(rate) = view.number("breaker.failure_rate") {
        builder = builder.failure_rate(rate);
    }
    if let Some(threshold) = view.duration("breaker.slow_call") {
        let rate = view.number("breaker.slow_call_rate").unwrap_or(0.5);
        builder = builder.slow_calls(threshold, rate);
    }
    if let Some(calls) = view.count("breaker.minimum_calls") {
        builder = builder.minimum_calls(calls.try_into().unwrap_or(u64::MAX));
    }
    if let Some(length) = view.duration("breaker.window") {
        builder = builder.window(Window::time(length));
    }
    if view.is_written("breaker.open_wait") || view.is_written("breaker.open_wait_cap") {
        let first = view.duration_or("breaker.open_wait", Duration::from_secs(5));
        let longest = view.duration_or("breaker.open_wait_cap", Duration::from_secs(60));
        builder = builder.open_wait(first, longest.max(first));
    }
    if let Some(probes) = view.count_u32("breaker.probes") {
        builder = builder.probes(probes);
    }
    if let Some(successes) = view.count_u32("breaker.successes_to_close") {
        builder = builder.successes_to_close(successes);
    }
    builder
        .shadow(view.flag("breaker.shadow").unwrap_or(false))
        .build()
}

fn classifier(view: &View) -> Result<Http, InvalidSetting> {
    let written = ["retry.also_retry", "retry.never_retry", "retry.methods"];
    if !written.iter().any(|path| view.is_written(path)) {
        return Ok(Http::default());
    }
    let also = view
        .statuses("retry.also_retry")
        .fold(Http::builder(), |it, status| it.also_retry(status));
    let never = view.statuses("retry.never_retry");
    let mut builder = never.fold(also, |it, status| it.never_retry(status));
    if view.is_written("retry.methods") {
        let methods = view.texts("retry.methods");
        let methods = methods.filter_map(|name| Method::from_bytes(name.as_bytes()).ok());
        builder = builder.idempotent_methods(methods);
    }
    builder.build()
}
