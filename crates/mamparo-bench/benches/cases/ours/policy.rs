//! The stack of a policy file, and the same put together by hand.

use std::time::Duration;

use mamparo::breaker::BreakerPolicy;
use mamparo::bulkhead::BulkheadPolicy;
use mamparo::deadline::DeadlinePolicy;
use mamparo::policy::{Format, Policies};
use mamparo::retry::RetryPolicy;
use mamparo::stack::Stack;
use mamparo_core::{Backoff, BoxError};

use super::plane::NAME;

const DOCUMENT: &str = r#"
[dependency.catalog]
deadline = "30s"
retry = { max_attempts = 3, backoff = { base = "100ms" } }
breaker = { failure_rate = 0.5 }
bulkhead = { max_concurrent = 1000 }
"#;

pub(crate) fn by_hand() -> Result<Stack, BoxError> {
    let backoff = Backoff::builder().base(Duration::from_millis(100));
    let retry = RetryPolicy::builder().backoff(backoff.build()?);
    Ok(Stack::http(NAME)
        .deadline(DeadlinePolicy::within(Duration::from_secs(30))?)
        .retry(retry.max_attempts(3).build()?)
        .breaker(BreakerPolicy::builder().failure_rate(0.5).build()?)
        .bulkhead(BulkheadPolicy::builder().limit(1000).build()?))
}

pub(crate) fn from_a_file() -> Result<Stack, BoxError> {
    let loader = Policies::loader().text("policies.toml", DOCUMENT, Format::Toml);
    Ok(loader.load()?.dependency(NAME)?.http()?)
}
