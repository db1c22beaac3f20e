//! The attributes of an RPC.

use mamparo_core::Dependency;
use opentelemetry::KeyValue;

use super::method::Method;
use crate::http::Server;
use crate::outcome::Outcome;
use crate::semconv::{
    DEPENDENCY, RPC_METHOD, RPC_METHOD_ORIGINAL, RPC_STATUS_CODE, RPC_SYSTEM_GRPC, RPC_SYSTEM_NAME,
    SERVER_ADDRESS, SERVER_PORT,
};

/// As many attributes as any span of an RPC gets, from its start to its end; some get more.
const SPAN_ATTRIBUTES: usize = 8;

/// The attributes of a span, as they are put together.
#[derive(Debug)]
pub(crate) struct Described(Vec<KeyValue>);

impl Described {
    pub(crate) fn with_place_for(more: usize) -> Self {
        let mut list = Vec::with_capacity(SPAN_ATTRIBUTES + more);
        list.push(KeyValue::new(RPC_SYSTEM_NAME, RPC_SYSTEM_GRPC));
        Self(list)
    }

    /// `sent` is what the request said.
    pub(crate) fn method(self, method: Method, sent: &str) -> Self {
        let original = match method {
            Method::Known(_) => None,
            Method::Other => Some(KeyValue::new(RPC_METHOD_ORIGINAL, sent.to_owned())),
        };
        let method = KeyValue::new(RPC_METHOD, method.as_str());
        self.and([method]).and(original)
    }

    pub(crate) fn server(mut self, server: Option<Server>) -> Self {
        if let Some(server) = server {
            self.0.push(KeyValue::new(SERVER_ADDRESS, server.address));
            let port = server.port.map(i64::from);
            self.0
                .extend(port.map(|port| KeyValue::new(SERVER_PORT, port)));
        }
        self
    }

    pub(crate) fn dependency(mut self, dependency: Dependency) -> Self {
        if !dependency.is_unnamed() {
            self.0.push(KeyValue::new(DEPENDENCY, dependency.as_str()));
        }
        self
    }

    pub(crate) fn and(mut self, more: impl IntoIterator<Item = KeyValue>) -> Self {
        self.0.extend(more);
        self
    }

    pub(crate) fn list(self) -> Vec<KeyValue> {
        self.0
    }
}

/// The status that a span is told at its end.
pub(crate) fn code(outcome: &Outcome) -> Option<KeyValue> {
    let code = outcome.code?;
    Some(KeyValue::new(RPC_STATUS_CODE, code.as_str()))
}
