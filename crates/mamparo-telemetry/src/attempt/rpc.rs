//! A physical attempt of an RPC.

use std::borrow::Cow;

use http::{Request, Uri};
use mamparo_core::{BoxError, CallContext, Cause, Dependency};
use opentelemetry::KeyValue;
use opentelemetry::trace::SpanKind;

use crate::exchange::{Before, Kept, Passes, Role};
use crate::noted::{NOTED, noted};
use crate::outcome::{Ended, Measured, Outcome};
use crate::rpc::{Described, Method, Target, as_sent, code};
use crate::semconv::{PREVIOUS_RPC_ATTEMPTS, TRANSPARENT_RETRY};

/// Records attempts of RPCs: an `INTERNAL` span each, below the `CLIENT` span of the call that they belong to.
#[derive(Clone, Debug, Default)]
pub struct GrpcSend {
    pub(super) target: Target,
}

/// A request, before it is sent.
#[derive(Debug)]
pub struct Sending<'a> {
    uri: &'a Uri,
    headers: &'a http::HeaderMap,
    target: &'a Target,
    dependency: Dependency,
}

/// What is kept of an attempt: it is counted, and the call that it belongs to is measured.
#[derive(Debug)]
pub struct Sent;

impl Role for GrpcSend {
    const KIND: SpanKind = SpanKind::Internal;
    const SERVES: bool = false;

    type Before<'a> = Sending<'a>;
    type Kept = Sent;

    fn before<'a, A>(&'a self, request: &'a Request<A>, dependency: Dependency) -> Sending<'a> {
        // Counted whether or not anybody listens: what is further out relies on it.
        CallContext::count_send(dependency);
        Sending {
            uri: request.uri(),
            headers: request.headers(),
            target: &self.target,
            dependency,
        }
    }
}

impl<E: Into<BoxError>> Passes<E> for GrpcSend {
    type Error = BoxError;

    fn pass(error: E) -> BoxError {
        error.into()
    }
}

impl Before<Sent> for Sending<'_> {
    fn name(&self) -> Cow<'static, str> {
        Cow::Borrowed(Method::called(self.uri.path()).attempt_name())
    }

    fn attributes(&self) -> Vec<KeyValue> {
        let context = CallContext::current();
        let previous = i64::from(context.attempt().saturating_sub(1));
        let transparent = context.cause() == Cause::Transparent;
        Described::with_place_for(2 + NOTED)
            .method(Method::called(self.uri.path()), as_sent(self.uri.path()))
            .server(self.target.find(self.uri, self.headers))
            .dependency(self.dependency)
            .and([
                KeyValue::new(PREVIOUS_RPC_ATTEMPTS, previous),
                KeyValue::new(TRANSPARENT_RETRY, transparent),
            ])
            .and(noted(&context))
            .list()
    }

    fn kept(&self) -> Sent {
        Sent
    }
}

impl Kept for Sent {
    fn outcome(&mut self, ended: Ended<'_>) -> Outcome {
        Outcome::rpc(ended)
    }

    fn attributes(&self, outcome: &Outcome) -> impl Iterator<Item = KeyValue> {
        code(outcome).into_iter()
    }

    fn measure(&self, measured: Measured<'_>) {
        let Measured {
            instruments,
            dependency,
            outcome,
            ..
        } = measured;
        instruments.count_attempt(dependency, outcome.name);
    }
}
