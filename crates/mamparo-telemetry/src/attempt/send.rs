//! A physical send over HTTP.

use std::borrow::Cow;
use std::cell::OnceCell;

use http::{HeaderMap, Method, Request, StatusCode, Uri, Version};
use mamparo_core::{BoxError, CallContext, Dependency};
use opentelemetry::KeyValue;
use opentelemetry::trace::SpanKind;

use crate::exchange::{Before, Heard, Kept, Passes, Role};
use crate::http::{Server, Servers, full_url, known_method, method_attributes, protocol_version};
use crate::metrics::AttemptLabels;
use crate::noted::{NOTED, noted};
use crate::outcome::{Ended, Measured, Outcome};
use crate::semconv::{
    DEPENDENCY, HTTP_REQUEST_RESEND_COUNT, HTTP_RESPONSE_STATUS_CODE, METHOD_OTHER,
    NETWORK_PROTOCOL_VERSION, SERVER_ADDRESS, SERVER_PORT, URL_FULL,
};

/// As many attributes as a span of ours gets, from its start to its end.
const SPAN_ATTRIBUTES: usize = 10 + NOTED;

/// Records sends over HTTP: a `CLIENT` span each.
#[derive(Clone, Debug, Default)]
pub struct HttpSend {
    servers: Servers,
}

/// A request, before it is sent.
#[derive(Debug)]
pub struct Sending<'a> {
    method: &'a Method,
    uri: &'a Uri,
    headers: &'a HeaderMap,
    servers: &'a Servers,
    dependency: Dependency,
    resend_count: u32,
    /// Read when it is first asked for.
    server: OnceCell<Option<Server>>,
}

/// What is kept of a send until its answer is over.
#[derive(Debug)]
pub struct Sent {
    /// None where nothing is measured.
    request: Option<Measurable>,
    answered: Option<(StatusCode, Version)>,
}

/// What a measurement says of its request.
#[derive(Debug)]
struct Measurable {
    method: &'static str,
    server: Option<Server>,
}

impl Role for HttpSend {
    const KIND: SpanKind = SpanKind::Client;
    const SERVES: bool = false;

    type Before<'a> = Sending<'a>;
    type Kept = Sent;

    fn before<'a, A>(&'a self, request: &'a Request<A>, dependency: Dependency) -> Sending<'a> {
        Sending {
            method: request.method(),
            uri: request.uri(),
            headers: request.headers(),
            servers: &self.servers,
            dependency,
            // Counted whether or not anybody listens: what is further out relies on it.
            resend_count: CallContext::count_send(dependency),
            server: OnceCell::new(),
        }
    }
}

impl Sending<'_> {
    fn server(&self) -> Option<Server> {
        let server = || self.servers.find(self.uri, self.headers);
        self.server.get_or_init(server).clone()
    }
}

impl<E: Into<BoxError>> Passes<E> for HttpSend {
    type Error = BoxError;

    fn pass(error: E) -> BoxError {
        error.into()
    }
}

impl Before<Sent> for Sending<'_> {
    /// The method alone: a path would be a name per item.
    fn name(&self) -> Cow<'static, str> {
        Cow::Borrowed(known_method(self.method).unwrap_or("HTTP"))
    }

    fn attributes(&self) -> Vec<KeyValue> {
        let mut list = Vec::with_capacity(SPAN_ATTRIBUTES);
        method_attributes(self.method, &mut list);
        if let Some(server) = self.server() {
            list.push(KeyValue::new(SERVER_ADDRESS, server.address));
            let port = server.port.map(i64::from);
            list.extend(port.map(|port| KeyValue::new(SERVER_PORT, port)));
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

    fn kept(&self, measured: bool) -> Sent {
        let request = || Measurable {
            method: known_method(self.method).unwrap_or(METHOD_OTHER),
            server: self.server(),
        };
        Sent {
            request: measured.then(request),
            answered: None,
        }
    }
}

impl Sent {
    fn status(&self) -> Option<i64> {
        let (status, _) = self.answered?;
        Some(i64::from(status.as_u16()))
    }

    fn version(&self) -> Option<&'static str> {
        let (_, version) = self.answered?;
        protocol_version(version)
    }
}

impl Kept for Sent {
    fn hear(&mut self, head: Heard<'_>) {
        self.answered = Some((head.status, head.version));
    }

    fn outcome(&mut self, ended: Ended<'_>) -> Outcome {
        Outcome::of(ended, self.answered.map(|(status, _)| status))
    }

    /// Made when they are asked for: attributes are big, and an iterator is moved around.
    fn attributes(&self, _: &Outcome) -> impl Iterator<Item = KeyValue> {
        let status = |status| KeyValue::new(HTTP_RESPONSE_STATUS_CODE, status);
        let version = |version| KeyValue::new(NETWORK_PROTOCOL_VERSION, version);
        let statuses = self.status().into_iter().map(status);
        statuses.chain(self.version().into_iter().map(version))
    }

    fn measure(&self, measured: Measured<'_>) {
        let Some(request) = &self.request else {
            return;
        };
        let labels = AttemptLabels {
            dependency: measured.dependency,
            verdict: measured.outcome.name,
            method: request.method,
            server: request.server.clone(),
            error: measured.outcome.error.clone(),
            status: self.status(),
            version: self.version(),
        };
        let seconds = measured.elapsed.as_secs_f64();
        measured.instruments.attempts.record(&labels, seconds);
    }
}
