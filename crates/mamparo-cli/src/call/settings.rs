//! What was meant: the typed words, checked against each other.

use std::fmt::Display;

use http::{HeaderMap, Method, Uri};
use mamparo::attempt_timeout::AttemptPolicy;
use mamparo::connect_timeout::ConnectTimeoutLayer;
use mamparo::deadline::DeadlinePolicy;
use mamparo::idempotency_key::KeyPolicy;
use mamparo::retry::RetryPolicy;
use mamparo::stack::Stack;
use mamparo_core::http::IDEMPOTENCY_KEY;
use mamparo_core::{Budget, InvalidSetting};
use reqwest::Url;

use crate::args::{CallArgs, Field, Limit};

/// A call that can be made.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,

    pub(super) stack: Stack,
    pub(super) budget: Budget,
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
        let budget = Budget::default();
        let stack = stack(args, &budget, dependency)?;
        Ok(Self {
            safe: keyed || method.is_idempotent() || method.as_str() == "QUERY",
            stack: match key {
                Some(policy) => stack.idempotency_key(policy),
                None => stack,
            },
            budget,
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

fn stack(args: &CallArgs, budget: &Budget, dependency: &str) -> Result<Stack, Refused> {
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
    let retry = RetryPolicy::builder()
        .max_attempts(args.attempts)
        .budget(budget.clone())
        .build()?;
    Ok(Stack::http(dependency)
        .deadline(deadline)
        .attempt(attempt.build()?)
        .connect_timeout(connect)
        .retry(retry))
}

impl From<InvalidSetting> for Refused {
    fn from(error: InvalidSetting) -> Self {
        Self(error.to_string())
    }
}
