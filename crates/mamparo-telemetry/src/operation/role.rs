//! What differs between operations of any protocol, and RPCs.

use std::fmt;

use http::Request;
use mamparo_core::Dependency;
use mamparo_core::context::Resends;
use mamparo_core::grpc::Code;
use opentelemetry::KeyValue;
use opentelemetry::trace::SpanKind;

use super::guard::span_name;
use crate::http::Server;
use crate::metrics::{CallOfMethod, RpcLabels};
use crate::outcome::{Ended, Measured, Outcome};
use crate::rpc::{Called, Method, Target, code};
use crate::semconv::DEPENDENCY;

/// What is said of an operation.
pub trait Role<Req>: Clone + fmt::Debug + Send + Sync + 'static {
    /// The kind of its spans.
    const KIND: SpanKind;

    /// A request, before it is handed on.
    type Before<'a>: Before<Self::Kept>
    where
        Req: 'a;
    /// What is kept of it until its answer is over.
    type Kept: Kept;

    /// Looks at a request.
    fn before<'a>(&'a self, request: &'a Req, dependency: Dependency) -> Self::Before<'a>;
}

/// What is said of a request before it is handed on.
pub trait Before<K> {
    /// The span's name.
    fn name(&self) -> &'static str;

    /// The span's attributes, with place for as many more.
    fn attributes(&self, more: usize) -> Vec<KeyValue>;

    /// What the end must know; `measured` says whether anything is measured.
    fn kept(&self, measured: bool) -> K;
}

/// What is known of an operation until it is over, and said of it then.
pub trait Kept: Send + 'static {
    /// Says how it ended.
    fn outcome(&self, ended: Ended<'_>) -> Outcome;

    /// What the span is told at its end, besides what every operation's is.
    fn attribute(&self, outcome: &Outcome) -> Option<KeyValue>;

    /// Writes what is measured, besides what every operation counts.
    fn measure(&self, measured: Measured<'_>, resends: impl FnOnce() -> Resends);
}

/// Operations of any protocol: an `INTERNAL` span each.
#[derive(Clone, Copy, Debug)]
pub struct AnyCall {
    pub(super) span_name: &'static str,
}

/// An operation of any protocol, before it begins.
#[derive(Clone, Copy, Debug)]
pub struct AnyBefore {
    span_name: &'static str,
    dependency: Dependency,
}

/// What is kept of an operation of any protocol: nothing.
#[derive(Clone, Copy, Debug)]
pub struct AnyKept;

impl AnyCall {
    pub(super) fn to(dependency: Dependency) -> Self {
        Self {
            span_name: span_name(dependency),
        }
    }
}

impl<Req> Role<Req> for AnyCall {
    const KIND: SpanKind = SpanKind::Internal;

    type Before<'a>
        = AnyBefore
    where
        Req: 'a;
    type Kept = AnyKept;

    fn before<'a>(&'a self, _: &'a Req, dependency: Dependency) -> AnyBefore {
        AnyBefore {
            span_name: self.span_name,
            dependency,
        }
    }
}

impl Before<AnyKept> for AnyBefore {
    fn name(&self) -> &'static str {
        self.span_name
    }

    fn attributes(&self, more: usize) -> Vec<KeyValue> {
        let mut attributes = Vec::with_capacity(1 + more);
        attributes.push(KeyValue::new(DEPENDENCY, self.dependency.as_str()));
        attributes
    }

    fn kept(&self, _: bool) -> AnyKept {
        AnyKept
    }
}

impl Kept for AnyKept {
    fn outcome(&self, ended: Ended<'_>) -> Outcome {
        Outcome::of(ended, None)
    }

    fn attribute(&self, _: &Outcome) -> Option<KeyValue> {
        None
    }

    fn measure(&self, _: Measured<'_>, _: impl FnOnce() -> Resends) {}
}

/// RPCs: a `CLIENT` span each, with all of its attempts.
#[derive(Clone, Debug, Default)]
pub struct GrpcCall {
    pub(super) target: Target,
    /// Whether gRPC's own metrics of retries are written.
    pub(super) counts_retries: bool,
}

/// An RPC, before it begins.
#[derive(Debug)]
pub struct GrpcBefore<'a> {
    called: Called<'a>,
    counts_retries: bool,
    dependency: Dependency,
}

/// What is kept of an RPC until it is over, where it is measured.
#[derive(Debug)]
pub struct GrpcKept(Option<Rpc>);

#[derive(Debug)]
struct Rpc {
    method: Method,
    server: Option<Server>,
    counts_retries: bool,
}

impl<A> Role<Request<A>> for GrpcCall {
    const KIND: SpanKind = SpanKind::Client;

    type Before<'a>
        = GrpcBefore<'a>
    where
        A: 'a;
    type Kept = GrpcKept;

    fn before<'a>(&'a self, request: &'a Request<A>, dependency: Dependency) -> GrpcBefore<'a> {
        GrpcBefore {
            called: Called::new(request, &self.target),
            counts_retries: self.counts_retries,
            dependency,
        }
    }
}

impl Before<GrpcKept> for GrpcBefore<'_> {
    fn name(&self) -> &'static str {
        self.called.method().span_name()
    }

    fn attributes(&self, more: usize) -> Vec<KeyValue> {
        self.called
            .describe(more)
            .dependency(self.dependency)
            .list()
    }

    fn kept(&self, measured: bool) -> GrpcKept {
        GrpcKept(measured.then(|| Rpc {
            method: self.called.method(),
            server: self.called.server(),
            counts_retries: self.counts_retries,
        }))
    }
}

impl Kept for GrpcKept {
    fn outcome(&self, ended: Ended<'_>) -> Outcome {
        Outcome::rpc(ended)
    }

    fn attribute(&self, outcome: &Outcome) -> Option<KeyValue> {
        code(outcome)
    }

    fn measure(&self, measured: Measured<'_>, resends: impl FnOnce() -> Resends) {
        let Some(rpc) = &self.0 else {
            return;
        };
        let Measured {
            instruments,
            outcome,
            elapsed,
            ..
        } = measured;
        let labels = RpcLabels {
            method: rpc.method.as_str(),
            code: outcome.code.unwrap_or(Code::Unknown),
            error: outcome.error.clone(),
            server: rpc.server.clone(),
        };
        instruments.rpcs.record(&labels, elapsed.as_secs_f64());
        if rpc.counts_retries {
            let call = CallOfMethod {
                method: rpc.method.as_str(),
                server: rpc.server.as_ref(),
            };
            instruments.count_resends(&call, resends());
        }
    }
}
