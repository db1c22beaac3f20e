//! What operations and attempts are broken down by.

use std::borrow::Cow;

use mamparo_core::Dependency;
use mamparo_core::grpc::Code;
use opentelemetry::KeyValue;

use super::Attributes;
use super::pairs::Labels;
use crate::http::Server;
use crate::semconv::{
    ATTEMPT_VERDICT, DEPENDENCY, ERROR_TYPE, HTTP_REQUEST_METHOD, HTTP_RESPONSE_STATUS_CODE,
    HTTP_ROUTE, NETWORK_PROTOCOL_VERSION, OPERATION_OUTCOME, RPC_METHOD, RPC_STATUS_CODE,
    RPC_SYSTEM_GRPC, RPC_SYSTEM_NAME, SERVER_ADDRESS, SERVER_PORT, URL_SCHEME,
};

/// An operation: how it ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct OperationLabels {
    pub(crate) dependency: Dependency,
    pub(crate) outcome: &'static str,
}

/// A physical send: what was sent, and how it ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AttemptLabels {
    pub(crate) dependency: Dependency,
    pub(crate) verdict: &'static str,
    pub(crate) method: &'static str,
    pub(crate) server: Option<Server>,
    pub(crate) error: Option<Cow<'static, str>>,
    pub(crate) status: Option<i64>,
    pub(crate) version: Option<&'static str>,
}

/// A request that was served: what it was, and how it ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ServedLabels {
    pub(crate) method: &'static str,
    pub(crate) scheme: &'static str,
    pub(crate) route: Option<&'static str>,
    pub(crate) version: Option<&'static str>,
    pub(crate) status: Option<i64>,
    pub(crate) error: Option<Cow<'static, str>>,
}

/// An RPC, on either side: what was called, and how it ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RpcLabels {
    pub(crate) method: &'static str,
    pub(crate) code: Code,
    pub(crate) error: Option<Cow<'static, str>>,
    /// The client's only.
    pub(crate) server: Option<Server>,
}

impl Labels for OperationLabels {
    fn with<R>(&self, f: impl FnOnce(&[KeyValue], &[KeyValue]) -> R) -> R {
        let list = [
            KeyValue::new(DEPENDENCY, self.dependency.as_str()),
            KeyValue::new(OPERATION_OUTCOME, self.outcome),
        ];
        f(&list, &list)
    }
}

impl Labels for AttemptLabels {
    fn with<R>(&self, f: impl FnOnce(&[KeyValue], &[KeyValue]) -> R) -> R {
        let by_verdict = [
            KeyValue::new(DEPENDENCY, self.dependency.as_str()),
            KeyValue::new(ATTEMPT_VERDICT, self.verdict),
        ];
        f(self.of_request().as_slice(), &by_verdict)
    }
}

impl AttemptLabels {
    fn of_request(&self) -> Attributes<6> {
        let mut list = Attributes::new().with(HTTP_REQUEST_METHOD, self.method);
        push_server(&mut list, self.server.as_ref());
        if let Some(error) = &self.error {
            list.push(ERROR_TYPE, error.clone());
        }
        if let Some(status) = self.status {
            list.push(HTTP_RESPONSE_STATUS_CODE, status);
        }
        if let Some(version) = self.version {
            list.push(NETWORK_PROTOCOL_VERSION, version);
        }
        list
    }
}

impl Labels for ServedLabels {
    fn with<R>(&self, f: impl FnOnce(&[KeyValue], &[KeyValue]) -> R) -> R {
        let mut list = Attributes::<6>::new()
            .with(HTTP_REQUEST_METHOD, self.method)
            .with(URL_SCHEME, self.scheme);
        if let Some(route) = self.route {
            list.push(HTTP_ROUTE, route);
        }
        if let Some(error) = &self.error {
            list.push(ERROR_TYPE, error.clone());
        }
        if let Some(status) = self.status {
            list.push(HTTP_RESPONSE_STATUS_CODE, status);
        }
        if let Some(version) = self.version {
            list.push(NETWORK_PROTOCOL_VERSION, version);
        }
        f(list.as_slice(), &[])
    }
}

impl Labels for RpcLabels {
    fn with<R>(&self, f: impl FnOnce(&[KeyValue], &[KeyValue]) -> R) -> R {
        let mut list = Attributes::<6>::new()
            .with(RPC_SYSTEM_NAME, RPC_SYSTEM_GRPC)
            .with(RPC_METHOD, self.method)
            .with(RPC_STATUS_CODE, self.code.as_str());
        push_server(&mut list, self.server.as_ref());
        if let Some(error) = &self.error {
            list.push(ERROR_TYPE, error.clone());
        }
        f(list.as_slice(), &[])
    }
}

fn push_server<const N: usize>(list: &mut Attributes<N>, server: Option<&Server>) {
    let Some(server) = server else {
        return;
    };
    list.push(SERVER_ADDRESS, server.address.clone());
    if let Some(port) = server.port {
        list.push(SERVER_PORT, i64::from(port));
    }
}
