//! What was meant: the typed words, checked against each other.

use std::fmt::Display;

use bytes::Bytes;
use http::{HeaderMap, Method, Uri};
use mamparo::attempt_timeout::AttemptPolicy;
use mamparo::breaker::BreakerPolicy;
use mamparo::bulkhead::BulkheadPolicy;
use mamparo::connect_timeout::ConnectTimeoutLayer;
use mamparo::deadline::DeadlinePolicy;
use mamparo::hedge::HedgePolicy;
use mamparo::idempotency_key::KeyPolicy;
use mamparo::rate_limit::RateLimitPolicy;
use mamparo::retry::RetryPolicy;
use mamparo::stack::Stack;
use mamparo_core::InvalidSetting;
use mamparo_core::http::IDEMPOTENCY_KEY;
use reqwest::Url;

use super::deliver::MAX_KEPT;
use crate::args::{CallArgs, Data, Delay, Field, Limit};

/// A call that can be made.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,

    pub(super) stack: Stack,
    /// What stands in where the operation fails.
    pub(super) fallback: Option<Bytes>,
    /// Whether the request may take effect twice without harm.
    pub(super) safe: bool,
    pub(super) output: Form,
}

/// What stdout gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Body,
    HeadAndBody,
    Json,
}

/// Why what was typed makes no call.
#[derive(Debug)]
pub(super) struct Refused(pub(super) String);

impl Settings {
    pub(super) fn new(args: &CallArgs) -> Result<Self, Refused> {
        let method = match &args.method {
            Some(typed) => method_of(typed)?,
            None if args.data.is_some() => Method::POST,
            None => Method::GET,
        };
        let url = url(&args.url)?;
        let uri: Uri = url
            .as_str()
            .parse()
            .map_err(|error| Refused(format!("`{url}` can't be called: {error}")))?;
        let mut headers = HeaderMap::new();
        for Field { name, value } in &args.headers {
            headers.append(name, value.clone());
        }
        let key = key(args, &method, &mut headers)?;
        let keyed = key.is_some() || headers.contains_key(IDEMPOTENCY_KEY);
        let dependency = match &args.dependency {
            Some(name) if name.trim().is_empty() => {
                return Err(Refused(
                    "--dependency is empty: leave it out, or name it".to_owned(),
                ));
            }
            Some(name) => name.as_str(),
            None => uri.authority().map_or("", |authority| authority.as_str()),
        };
        let stack = stack(args, dependency)?;
        Ok(Self {
            safe: keyed || method.is_idempotent() || method.as_str() == "QUERY",
            stack: match key {
                Some(policy) => stack.idempotency_key(policy),
                None => stack,
            },
            fallback: args.fallback.as_ref().map(fallback).transpose()?,
            method,
            uri,
            headers,

            output: match (args.json, args.include) {
                (true, _) => Form::Json,
                (false, true) => Form::HeadAndBody,
                (false, false) => Form::Body,
            },
        })
    }
}

/// Methods are case-sensitive, and nobody means `get`.
fn method_of(typed: &str) -> Result<Method, Refused> {
    let method = Method::from_bytes(typed.to_ascii_uppercase().as_bytes());
    method.map_err(|_| Refused(format!("`{typed}` is no method: write GET, POST, …")))
}

fn url(typed: &str) -> Result<Url, Refused> {
    let no_url = |why: &dyn Display| Refused(format!("`{typed}` is no URL: {why}"));
    if !typed.contains("://") {
        return Err(no_url(&format_args!(
            "it has no scheme, write http://{typed}"
        )));
    }
    let mut url = Url::parse(typed).map_err(|error| no_url(&error))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Refused(format!(
            "scheme `{}` can't be called: use http or https",
            url.scheme()
        )));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Refused(
            "a name and password in a URL are not sent: use -H 'authorization: …'".to_owned(),
        ));
    }
    // It is not part of a request (RFC 9110 §7.1).
    url.set_fragment(None);
    Ok(url)
}

/// The policy that makes a key, where one was asked for without saying which.
fn key(
    args: &CallArgs,
    method: &Method,
    headers: &mut HeaderMap,
) -> Result<Option<KeyPolicy>, Refused> {
    let Some(key) = &args.idempotency_key else {
        return Ok(None);
    };
    if headers.contains_key(IDEMPOTENCY_KEY) {
        return Err(Refused(
            "the idempotency key is there twice: leave the header or --idempotency-key out"
                .to_owned(),
        ));
    }
    if let Some(key) = key {
        let value = key.parse().map_err(|_| {
            Refused("the idempotency key holds a character that no header field may".to_owned())
        })?;
        headers.insert(IDEMPOTENCY_KEY, value);
    }
    let policy = KeyPolicy::builder().methods([method.clone()]).build()?;
    Ok(Some(policy))
}

/// Reads the answer that stands in.
fn fallback(data: &Data) -> Result<Bytes, Refused> {
    let path = match data {
        Data::Text(text) => return Ok(text.clone()),
        Data::Stdin => {
            let why = "--fallback can't be read from stdin: write it out, or name a file";
            return Err(Refused(why.to_owned()));
        }
        Data::File(path) => path,
    };
    let unreadable =
        |why: &dyn Display| Refused(format!("{} can't be read: {why}", path.display()));
    let about = std::fs::metadata(path).map_err(|error| unreadable(&error))?;
    if about.len() > MAX_KEPT as u64 {
        return Err(unreadable(&"it is larger than 16 MiB"));
    }
    std::fs::read(path)
        .map(Bytes::from)
        .map_err(|error| unreadable(&error))
}

/// The recommended stack, without what one call can't show: a breaker and a bulkhead protect from many.
fn stack(args: &CallArgs, dependency: &str) -> Result<Stack, Refused> {
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
    let stack = Stack::http(dependency)
        .deadline(deadline)
        .attempt(attempt.build()?)
        .connect_timeout(connect)
        .breaker(BreakerPolicy::off())
        .bulkhead(BulkheadPolicy::off());
    Ok(rated(args, resending(args, stack)?)?)
}

fn resending(args: &CallArgs, stack: Stack) -> Result<Stack, InvalidSetting> {
    let Some(Delay(delay)) = args.hedge else {
        let retry = RetryPolicy::builder().max_attempts(args.attempts.unwrap_or(3));
        return Ok(stack.retry(retry.build()?));
    };
    // It was asked for, and there is no other load that it could add to.
    let hedge = HedgePolicy::builder().fixed(delay).without_extra_load_cap();
    let hedge = hedge.max_attempts(args.attempts.unwrap_or(2));
    Ok(stack.hedge(hedge.build()?))
}

fn rated(args: &CallArgs, stack: Stack) -> Result<Stack, InvalidSetting> {
    let Some(rate) = args.rate else {
        return Ok(stack);
    };
    let mut policy = RateLimitPolicy::per(rate.period, rate.count);
    if let Some(Delay(wait)) = args.rate_wait {
        policy = policy.max_wait(wait);
    }
    Ok(stack.rate_limit(policy.build()?))
}

impl From<InvalidSetting> for Refused {
    fn from(error: InvalidSetting) -> Self {
        Self(error.to_string())
    }
}
