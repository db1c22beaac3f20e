//! What operations and attempts are broken down by.

use std::borrow::Cow;

use mamparo_core::Dependency;
use opentelemetry::KeyValue;

use super::Attributes;
use super::pairs::Labels;
use crate::http::Server;
use crate::semconv::{
    ATTEMPT_VERDICT, DEPENDENCY, ERROR_TYPE, HTTP_REQUEST_METHOD, HTTP_RESPONSE_STATUS_CODE,
    NETWORK_PROTOCOL_VERSION, OPERATION_OUTCOME, SERVER_ADDRESS, SERVER_PORT,
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
        if let Some(server) = &self.server {
            list.push(SERVER_ADDRESS, server.address.clone());
            if let Some(port) = server.port {
                list.push(SERVER_PORT, i64::from(port));
            }
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
        list
    }
}
