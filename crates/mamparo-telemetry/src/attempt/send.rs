//! What is known of a send: before it, and once its head is there.

use std::cell::OnceCell;

use http::{HeaderMap, Method, Request, StatusCode, Uri, Version};
use mamparo_core::{CallContext, Dependency};
use opentelemetry::KeyValue;

use crate::http::{Server, Servers, full_url, known_method};
use crate::metrics::AttemptLabels;
use crate::noted::{NOTED, noted};
use crate::outcome::Outcome;
use crate::semconv::{
    DEPENDENCY, HTTP_REQUEST_METHOD, HTTP_REQUEST_METHOD_ORIGINAL, HTTP_REQUEST_RESEND_COUNT,
    HTTP_RESPONSE_STATUS_CODE, METHOD_OTHER, NETWORK_PROTOCOL_VERSION, SERVER_ADDRESS, SERVER_PORT,
    URL_FULL,
};

/// As many attributes as a span of ours gets, from its start to its end.
const SPAN_ATTRIBUTES: usize = 10 + NOTED;

/// A request, before it is sent.
#[derive(Debug)]
pub(super) struct Sending<'a> {
    method: &'a Method,
    uri: &'a Uri,
    headers: &'a HeaderMap,
    servers: &'a Servers,
    dependency: Dependency,
    resend_count: u32,
    /// Read when it is first asked for.
    server: OnceCell<Option<Server>>,
}

/// What a measurement says of its request.
#[derive(Debug)]
pub(super) struct Sent {
    method: &'static str,
    server: Option<Server>,
}

/// What the head says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answered {
    pub(super) status: StatusCode,
    pub(super) version: Version,
}

impl<'a> Sending<'a> {
    pub(super) fn new<A>(
        request: &'a Request<A>,
        servers: &'a Servers,
        dependency: Dependency,
        resend_count: u32,
    ) -> Self {
        Self {
            method: request.method(),
            uri: request.uri(),
            headers: request.headers(),
            servers,
            dependency,
            resend_count,
            server: OnceCell::new(),
        }
    }

    fn server(&self) -> Option<Server> {
        let server = || self.servers.find(self.uri, self.headers);
        self.server.get_or_init(server).clone()
    }

    /// The span's name is the method alone: a path would be a name per item.
    pub(super) fn span_name(&self) -> &'static str {
        known_method(self.method).unwrap_or("HTTP")
    }

    pub(super) fn span_attributes(&self) -> Vec<KeyValue> {
        let mut list = Vec::with_capacity(SPAN_ATTRIBUTES);
        match known_method(self.method) {
            Some(method) => list.push(KeyValue::new(HTTP_REQUEST_METHOD, method)),
            None => {
                let original = self.method.as_str().to_owned();
                list.push(KeyValue::new(HTTP_REQUEST_METHOD, METHOD_OTHER));
                list.push(KeyValue::new(HTTP_REQUEST_METHOD_ORIGINAL, original));
            }
        }
        if let Some(server) = self.server() {
            list.push(KeyValue::new(SERVER_ADDRESS, server.address));
            list.extend(
                server
                    .port
                    .map(|port| KeyValue::new(SERVER_PORT, i64::from(port))),
            );
        }
        list.push(KeyValue::new(URL_FULL, full_url(self.uri)));
        if self.resend_count > 0 {
            let count = i64::from(self.resend_count);
            list.push(KeyValue::new(HTTP_REQUEST_RESEND_COUNT, count));
        }
        if self.dependency != Dependency::UNNAMED {
            list.push(KeyValue::new(DEPENDENCY, self.dependency.as_str()));
        }
        list.extend(noted(&CallContext::current()));
        list
    }

    pub(super) fn sent(&self) -> Sent {
        Sent {
            method: known_method(self.method).unwrap_or(METHOD_OTHER),
            server: self.server(),
        }
    }
}

impl Sent {
    pub(super) fn labels(
        self,
        dependency: Dependency,
        answered: Option<Answered>,
        outcome: &Outcome,
    ) -> AttemptLabels {
        AttemptLabels {
            dependency,
            verdict: outcome.name,
            method: self.method,
            server: self.server,
            error: outcome.error.clone(),
            status: answered.map(Answered::status),
            version: answered.and_then(Answered::version),
        }
    }
}

impl Answered {
    /// What a span says of it. Made when they are asked for: attributes are big, and an iterator is moved around.
    pub(super) fn attributes(answered: Option<Self>) -> impl Iterator<Item = KeyValue> {
        let status = |head: Self| KeyValue::new(HTTP_RESPONSE_STATUS_CODE, head.status());
        let version = |version| KeyValue::new(NETWORK_PROTOCOL_VERSION, version);
        let statuses = answered.into_iter().map(status);
        statuses.chain(answered.and_then(Self::version).into_iter().map(version))
    }

    fn status(self) -> i64 {
        i64::from(self.status.as_u16())
    }

    /// The version as the conventions write it; none for one that they don't.
    fn version(self) -> Option<&'static str> {
        Some(match self.version {
            Version::HTTP_10 => "1.0",
            Version::HTTP_11 => "1.1",
            Version::HTTP_2 => "2",
            Version::HTTP_3 => "3",
            _ => return None,
        })
    }
}
