//! Which settings make sense.

use std::time::Duration;

use http::{HeaderName, StatusCode};
use mamparo_core::InvalidSetting;

use super::IdempotencyBuilder;

/// The most methods that can be named.
pub(super) const MAX_METHODS: usize = 16;

/// The most headers that can be compared, and that can be kept besides the usual ones.
pub(super) const MAX_HEADERS: usize = 32;

/// The largest body that is ever held.
const MAX_BODY: usize = 16 << 20;

/// The longest key that can be allowed: what every reader of structured fields takes (RFC 9651 §3.3.3).
const LONGEST_KEY: usize = 1024;

/// The longest that anything is kept.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 86_400);

/// The shortest lease: it is renewed three times in its time.
const SHORTEST_LEASE: Duration = Duration::from_millis(30);

/// The most runs that can be finished at once without their callers.
const MOST_LEFT_BEHIND: usize = 1 << 20;

/// What differs from one attempt to the next, and from one proxy to the next.
const PER_ATTEMPT: &[&str] = &[
    "age",
    "baggage",
    "connect-timeout-ms",
    "connection",
    "date",
    "grpc-previous-rpc-attempts",
    "grpc-timeout",
    "request-timeout",
    "traceparent",
    "tracestate",
    "via",
    "x-b3-spanid",
    "x-envoy-attempt-count",
    "x-envoy-expected-rq-timeout-ms",
    "x-forwarded-for",
    "x-request-deadline",
    "x-request-id",
    "x-request-timeout-ms",
];

pub(super) fn check(settings: &IdempotencyBuilder) -> Result<(), InvalidSetting> {
    durations(settings)?;
    bounds(settings)?;
    compared(&settings.compared)?;
    let status = settings.indeterminate_status;
    if status != StatusCode::INTERNAL_SERVER_ERROR && status != StatusCode::CONFLICT {
        return Err(InvalidSetting::new(
            "indeterminate_status",
            status,
            "must be 500 or 409",
        ));
    }
    let fits = |url: &String| {
        url.bytes()
            .all(|byte| matches!(byte, b'!'..=b'~') && !matches!(byte, b'"' | b'\\' | b'<' | b'>'))
    };
    match settings.documentation.as_ref().filter(|url| !fits(url)) {
        Some(url) => Err(InvalidSetting::new("documentation", url, "must be a URL")),
        None => Ok(()),
    }
}

fn durations(settings: &IdempotencyBuilder) -> Result<(), InvalidSetting> {
    let refuse = |setting, value: Duration, reason| {
        Err(InvalidSetting::new(setting, format!("{value:?}"), reason))
    };
    let IdempotencyBuilder {
        lease,
        retention,
        horizon,
        store_timeout,
        retry_after,
        ..
    } = *settings;
    if lease < SHORTEST_LEASE {
        return refuse("lease", lease, "must be at least 30 ms");
    }
    if retention > LONGEST {
        return refuse("retention", retention, "must be at most ten years");
    }
    if retention < horizon {
        return refuse(
            "retention",
            retention,
            "must be at least the retry horizon: a later attempt would be run again",
        );
    }
    if retention < lease {
        return refuse("retention", retention, "must be at least the lease");
    }
    if store_timeout.is_zero() {
        return refuse("store_timeout", store_timeout, "must be above 0");
    }
    if retry_after.is_zero() || retry_after > LONGEST {
        return refuse(
            "retry_after",
            retry_after,
            "must be above 0 and at most ten years",
        );
    }
    Ok(())
}

fn bounds(settings: &IdempotencyBuilder) -> Result<(), InvalidSetting> {
    let count = settings.methods.len();
    if count == 0 || count > MAX_METHODS {
        let reason = "must name from 1 to 16 methods";
        return Err(InvalidSetting::new("methods", count, reason));
    }
    if settings.longest_key == 0 || settings.longest_key > LONGEST_KEY {
        let reason = "must be from 1 to 1024 characters";
        return Err(InvalidSetting::new(
            "longest_key",
            settings.longest_key,
            reason,
        ));
    }
    if settings.left_behind > MOST_LEFT_BEHIND {
        let reason = "must be at most 1048576";
        return Err(InvalidSetting::new(
            "left_behind",
            settings.left_behind,
            reason,
        ));
    }
    let limits = [
        ("request_limit", settings.request_limit),
        ("answer_limit", settings.answer_limit),
    ];
    for (setting, limit) in limits {
        if limit > MAX_BODY {
            return Err(InvalidSetting::new(
                setting,
                limit,
                "must be at most 16 MiB",
            ));
        }
    }
    let kept = settings.kept.len();
    if kept > super::kept::KEPT_HEADERS.len() + MAX_HEADERS {
        let reason = "must be at most 32 besides the usual ones";
        return Err(InvalidSetting::new("keep_header", kept, reason));
    }
    Ok(())
}

fn compared(names: &[HeaderName]) -> Result<(), InvalidSetting> {
    if names.len() > MAX_HEADERS {
        let reason = "must name at most 32 headers";
        return Err(InvalidSetting::new("compare_headers", names.len(), reason));
    }
    match names
        .iter()
        .find(|name| PER_ATTEMPT.contains(&name.as_str()))
    {
        Some(name) => Err(InvalidSetting::new(
            "compare_headers",
            name,
            "differs from one attempt to the next: every repetition would be refused",
        )),
        None => Ok(()),
    }
}
