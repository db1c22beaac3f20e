//! Which methods are known.

use std::sync::LazyLock;

use http::Method;
use opentelemetry::KeyValue;

use crate::semconv::{HTTP_REQUEST_METHOD, HTTP_REQUEST_METHOD_ORIGINAL, METHOD_OTHER};

/// Replaces the standard list as a whole when it is set; read once.
const VARIABLE: &str = "OTEL_INSTRUMENTATION_HTTP_KNOWN_METHODS";

static KNOWN: LazyLock<Known> = LazyLock::new(|| Known::of(std::env::var(VARIABLE).ok()));

/// Returns the method if it is known, as a name that lives as long as the program.
pub(crate) fn known_method(method: &Method) -> Option<&'static str> {
    KNOWN.find(method)
}

/// Adds the attributes that say the method.
pub(crate) fn method_attributes(method: &Method, list: &mut Vec<KeyValue>) {
    match known_method(method) {
        Some(method) => list.push(KeyValue::new(HTTP_REQUEST_METHOD, method)),
        None => {
            let original = method.as_str().to_owned();
            list.push(KeyValue::new(HTTP_REQUEST_METHOD, METHOD_OTHER));
            list.push(KeyValue::new(HTTP_REQUEST_METHOD_ORIGINAL, original));
        }
    }
}

/// The names are kept as they were given: methods are case-sensitive.
#[derive(Debug)]
pub(super) enum Known {
    Standard,
    Listed(Vec<String>),
}

impl Known {
    pub(super) fn of(list: Option<String>) -> Self {
        let Some(list) = list.filter(|list| !list.trim().is_empty()) else {
            return Self::Standard;
        };
        let names = list
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty());
        Self::Listed(names.map(str::to_owned).collect())
    }

    pub(super) fn find(&self, method: &Method) -> Option<&str> {
        match self {
            Self::Standard => standard(method),
            Self::Listed(names) => names
                .iter()
                .map(String::as_str)
                .find(|name| *name == method.as_str()),
        }
    }
}

/// The methods of RFC 9110 §9, PATCH (RFC 5789) and QUERY (RFC 10008).
const fn standard(method: &Method) -> Option<&'static str> {
    Some(match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::CONNECT => "CONNECT",
        Method::OPTIONS => "OPTIONS",
        Method::TRACE => "TRACE",
        Method::PATCH => "PATCH",
        Method::QUERY => "QUERY",
        _ => return None,
    })
}
