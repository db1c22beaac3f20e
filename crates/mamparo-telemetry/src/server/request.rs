//! An HTTP request that is served.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use http::header::USER_AGENT;
use http::{Extensions, HeaderMap, HeaderName, Method, Request, StatusCode, Uri, Version};
use mamparo_core::Dependency;
use opentelemetry::KeyValue;
use opentelemetry::trace::SpanKind;

use crate::exchange::{Before, Fault, Heard, Kept, Passes, Role};
use crate::http::{Servers, known_method, method_attributes, protocol_version, query};
use crate::metrics::ServedLabels;
use crate::names::Name;
use crate::outcome::{Ended, Measured, Outcome};
use crate::semconv::{
    HTTP_RESPONSE_STATUS_CODE, HTTP_ROUTE, METHOD_OTHER, NETWORK_PROTOCOL_VERSION, SERVER_ADDRESS,
    SERVER_PORT, URL_PATH, URL_QUERY, URL_SCHEME, USER_AGENT_ORIGINAL,
};

/// As many attributes as a span of ours gets, from its start to its end.
const SPAN_ATTRIBUTES: usize = 13;

const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Finds the route that a request has matched.
type FindRoute = dyn for<'a> Fn(&'a Extensions) -> Option<&'a str> + Send + Sync;

/// Records HTTP requests that are served: a `SERVER` span each.
#[derive(Clone, Default)]
pub struct HttpServed {
    servers: Servers,
    route: Option<Arc<FindRoute>>,
}

/// A request, before it is served.
#[derive(Debug)]
pub struct Serving<'a> {
    method: &'a Method,
    uri: &'a Uri,
    version: Version,
    headers: &'a HeaderMap,
    servers: &'a Servers,
    route: Option<&'static str>,
}

/// What is kept of a request until its answer is over.
#[derive(Debug)]
pub struct Served {
    method: &'static str,
    scheme: &'static str,
    route: Option<&'static str>,
    version: Option<&'static str>,
    status: Option<StatusCode>,
}

impl HttpServed {
    pub(super) fn routes(
        &mut self,
        find: impl for<'a> Fn(&'a Extensions) -> Option<&'a str> + Send + Sync + 'static,
    ) {
        self.route = Some(Arc::new(find));
    }
}

impl Role for HttpServed {
    const KIND: SpanKind = SpanKind::Server;
    const SERVES: bool = true;

    type Before<'a> = Serving<'a>;
    type Kept = Served;

    fn before<'a, A>(&'a self, request: &'a Request<A>, _: Dependency) -> Serving<'a> {
        let route = self.route.as_ref();
        let route = route.and_then(|find| find(request.extensions()));
        Serving {
            method: request.method(),
            uri: request.uri(),
            version: request.version(),
            headers: request.headers(),
            servers: &self.servers,
            route: route.and_then(Name::keep).map(Name::as_str),
        }
    }
}

impl Serving<'_> {
    fn known_method(&self) -> Option<&'static str> {
        known_method(self.method)
    }

    /// The proxy's word, where there is one that makes sense.
    fn scheme(&self) -> &'static str {
        let forwarded = self.headers.get(FORWARDED_PROTO);
        let forwarded = forwarded.map(|value| value.as_bytes());
        let scheme = forwarded.or_else(|| self.uri.scheme_str().map(str::as_bytes));
        match scheme {
            Some(scheme) if scheme.eq_ignore_ascii_case(b"https") => "https",
            _ => "http",
        }
    }
}

impl<E: Fault> Passes<E> for HttpServed {
    type Error = E;

    fn pass(error: E) -> E {
        error
    }
}

impl Before<Served> for Serving<'_> {
    fn name(&self) -> Cow<'static, str> {
        let method = self.known_method().unwrap_or("HTTP");
        match self.route {
            Some(route) => Cow::Owned(format!("{method} {route}")),
            None => Cow::Borrowed(method),
        }
    }

    fn attributes(&self) -> Vec<KeyValue> {
        let mut list = Vec::with_capacity(SPAN_ATTRIBUTES);
        method_attributes(self.method, &mut list);
        list.push(KeyValue::new(URL_PATH, self.uri.path().to_owned()));
        list.push(KeyValue::new(URL_SCHEME, self.scheme()));
        list.extend(query(self.uri).map(|query| KeyValue::new(URL_QUERY, query)));
        list.extend(self.route.map(|route| KeyValue::new(HTTP_ROUTE, route)));
        if let Some(server) = self.servers.find(self.uri, self.headers) {
            list.push(KeyValue::new(SERVER_ADDRESS, server.address));
            let port = server.port.map(i64::from);
            list.extend(port.map(|port| KeyValue::new(SERVER_PORT, port)));
        }
        let agent = self.headers.get(USER_AGENT);
        let agent = agent.and_then(|value| value.to_str().ok());
        list.extend(agent.map(|agent| KeyValue::new(USER_AGENT_ORIGINAL, agent.to_owned())));
        let version = protocol_version(self.version);
        list.extend(version.map(|version| KeyValue::new(NETWORK_PROTOCOL_VERSION, version)));
        list
    }

    fn kept(&self, _: bool) -> Served {
        Served {
            method: self.known_method().unwrap_or(METHOD_OTHER),
            scheme: self.scheme(),
            route: self.route,
            version: protocol_version(self.version),
            status: None,
        }
    }
}

impl Served {
    fn status(&self) -> Option<i64> {
        let status = self.status?;
        Some(i64::from(status.as_u16()))
    }
}

impl Kept for Served {
    fn hear(&mut self, head: Heard<'_>) {
        self.status = Some(head.status);
    }

    fn outcome(&mut self, ended: Ended<'_>) -> Outcome {
        Outcome::served(ended, self.status)
    }

    fn attributes(&self, _: &Outcome) -> impl Iterator<Item = KeyValue> {
        let status = |status| KeyValue::new(HTTP_RESPONSE_STATUS_CODE, status);
        self.status().into_iter().map(status)
    }

    fn measure(&self, measured: Measured<'_>) {
        let labels = ServedLabels {
            method: self.method,
            scheme: self.scheme,
            route: self.route,
            version: self.version,
            status: self.status(),
            error: measured.outcome.error.clone(),
        };
        let seconds = measured.elapsed.as_secs_f64();
        measured.instruments.served.record(&labels, seconds);
    }
}

impl fmt::Debug for HttpServed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpServed")
            .field("routes", &self.route.is_some())
            .finish_non_exhaustive()
    }
}
