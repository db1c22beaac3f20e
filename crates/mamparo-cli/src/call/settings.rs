//! What was meant by a call of HTTP: the typed words, checked against each other.

use std::fmt::Display;

use bytes::Bytes;
use http::{HeaderMap, Method, Uri};
use mamparo::idempotency_key::KeyPolicy;
use mamparo::stack::Stack;
use mamparo_core::http::IDEMPOTENCY_KEY;

use super::about::{About, Form, Refused};
use super::deliver::MAX_KEPT;
use super::stack::stack;
use super::target;
use crate::args::{CallArgs, Data};

/// A call that can be made.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) about: About,
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,
    pub(super) stack: Stack,
    /// What stands in where the operation fails.
    pub(super) fallback: Option<Bytes>,
}

impl Settings {
    pub(super) fn new(args: &CallArgs) -> Result<Self, Refused> {
        let method = match &args.method {
            Some(typed) => method_of(typed)?,
            None if args.data.is_some() => Method::POST,
            None => Method::GET,
        };
        let url = target::url(&args.url)?;
        let uri: Uri = url
            .as_str()
            .parse()
            .map_err(|error| Refused(format!("`{url}` can't be called: {error}")))?;
        let mut headers = target::headers(args);
        let key = key(args, &method, &mut headers)?;
        let keyed = key.is_some() || headers.contains_key(IDEMPOTENCY_KEY);
        let stack = stack(args, Stack::http(target::name(args, &uri)?))?;
        let about = About {
            dependency: stack.dependency(),
            method: method.to_string(),
            url: uri.to_string(),
            safe: keyed || method.is_idempotent() || method.as_str() == "QUERY",
            output: Form::of(args),
        };
        Ok(Self {
            about,
            stack: match key {
                Some(policy) => stack.idempotency_key(policy),
                None => stack,
            },
            fallback: args.fallback.as_ref().map(fallback).transpose()?,
            method,
            uri,
            headers,
        })
    }
}

/// Methods are case-sensitive, and nobody means `get`.
fn method_of(typed: &str) -> Result<Method, Refused> {
    let method = Method::from_bytes(typed.to_ascii_uppercase().as_bytes());
    method.map_err(|_| Refused(format!("`{typed}` is no method: write GET, POST, …")))
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
