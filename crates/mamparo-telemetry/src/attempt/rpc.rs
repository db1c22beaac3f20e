//! A physical attempt of an RPC.

use std::borrow::Cow;

use http::Request;
use mamparo_core::{BoxError, CallContext, Cause, Dependency};
use opentelemetry::KeyValue;
use opentelemetry::trace::SpanKind;

use crate::exchange::{Before, Kept, Passes, Role};
use crate::noted::{NOTED, noted};
use crate::outcome::{Ended, Measured, Outcome};
use crate::rpc::{Called, Target, code};
use crate::semconv::{PREVIOUS_RPC_ATTEMPTS, TRANSPARENT_RETRY};

/// Records attempts of RPCs: an `INTERNAL` span each, below the `CLIENT` span of the call that they belong to.
#[derive(Clone, Debug, Default)]
pub struct GrpcSend {
    pub(super) target: Target,
}

/// A request, before it is sent.
#[derive(Debug)]
pub struct Sending<'a> {
    called: Called<'a>,
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
            called: Called::new(request, &self.target),
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
        Cow::Borrowed(self.called.method().attempt_name())
    }

    fn attributes(&self) -> Vec<KeyValue> {
        let context = CallContext::current();
        let previous = i64::from(context.attempt().saturating_sub(1));
        let transparent = context.cause() == Cause::Transparent;
        self.called
            .describe(2 + NOTED)
            .dependency(self.dependency)
            .and([
                KeyValue::new(PREVIOUS_RPC_ATTEMPTS, previous),
                KeyValue::new(TRANSPARENT_RETRY, transparent),
            ])
            .and(noted(&context))
            .list()
    }

    fn kept(&self, _: bool) -> Sent {
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
