//! An RPC that is served.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::Arc;

use http::{HeaderMap, Request, Uri};
use mamparo_core::Dependency;
use mamparo_core::grpc::{Code, GRPC_MESSAGE};
use opentelemetry::KeyValue;
use opentelemetry::trace::SpanKind;

use crate::exchange::{Before, Fault, Heard, Kept, Passes, Role};
use crate::http::Servers;
use crate::metrics::RpcLabels;
use crate::names::Name;
use crate::outcome::{Ended, Measured, Outcome};
use crate::rpc::{Described, Method, as_sent, code, well_formed};
use crate::semconv::{METHOD_OTHER, RPC_METHOD, RPC_METHOD_ORIGINAL, RPC_SYSTEM_GRPC};

/// Records RPCs that are served: a `SERVER` span each.
#[derive(Clone, Debug, Default)]
pub struct GrpcServed {
    servers: Servers,
    /// None where methods are learned.
    methods: Option<Arc<HashMap<&'static str, &'static Name>>>,
}

/// A call, before it is served.
#[derive(Debug)]
pub struct Serving<'a> {
    uri: &'a Uri,
    headers: &'a HeaderMap,
    role: &'a GrpcServed,
    method: OnceCell<Told<'a>>,
}

impl<'a> Serving<'a> {
    /// Looked up only where anybody asks.
    fn method(&self) -> Told<'a> {
        *self
            .method
            .get_or_init(|| self.role.method(self.uri.path()))
    }
}

/// What is known of a method before the call is served.
#[derive(Clone, Copy, Debug)]
enum Told<'a> {
    Sure(Method),
    /// It may be one that the server knows, and is not known here yet.
    New(&'a str),
}

/// What is kept of a call until its answer is over.
#[derive(Debug)]
pub struct Served {
    method: Kind,
    /// Whether something but the fallback for unknown methods has answered.
    answered: bool,
}

#[derive(Debug)]
enum Kind {
    Sure(Method),
    New(Box<str>),
    /// The same, once it is known which.
    Found(Method, Box<str>),
}

impl GrpcServed {
    pub(super) fn know<'m>(&mut self, methods: impl IntoIterator<Item = &'m str>) {
        let kept = methods
            .into_iter()
            .filter_map(|method| Name::keep(as_sent(method)));
        self.methods = Some(Arc::new(kept.map(|name| (name.as_str(), name)).collect()));
    }

    fn method<'a>(&self, path: &'a str) -> Told<'a> {
        let Some(method) = well_formed(path) else {
            return Told::Sure(Method::Other);
        };
        if let Some(methods) = &self.methods {
            let known = methods.get(method).copied();
            return Told::Sure(known.map_or(Method::Other, Method::Known));
        }
        match Name::find(method) {
            Some(name) => Told::Sure(Method::Known(name)),
            None => Told::New(method),
        }
    }
}

impl Role for GrpcServed {
    const KIND: SpanKind = SpanKind::Server;
    const SERVES: bool = true;

    type Before<'a> = Serving<'a>;
    type Kept = Served;

    fn before<'a, A>(&'a self, request: &'a Request<A>, _: Dependency) -> Serving<'a> {
        Serving {
            uri: request.uri(),
            headers: request.headers(),
            role: self,
            method: OnceCell::new(),
        }
    }
}

impl<E: Fault> Passes<E> for GrpcServed {
    type Error = E;

    fn pass(error: E) -> E {
        error
    }
}

impl Before<Served> for Serving<'_> {
    fn name(&self) -> Cow<'static, str> {
        match self.method() {
            Told::Sure(method) => Cow::Borrowed(method.span_name()),
            Told::New(method) => Cow::Owned(method.to_owned()),
        }
    }

    fn attributes(&self) -> Vec<KeyValue> {
        let described =
            Described::with_place_for(0).server(self.role.servers.find(self.uri, self.headers));
        let described = match self.method() {
            Told::Sure(method) => described.method(method, as_sent(self.uri.path())),
            Told::New(_) => described,
        };
        described.list()
    }

    fn kept(&self, _: bool) -> Served {
        Served {
            method: match self.method() {
                Told::Sure(method) => Kind::Sure(method),
                Told::New(method) => Kind::New(method.into()),
            },
            answered: false,
        }
    }
}

impl Served {
    const fn method(&self) -> &'static str {
        match self.method {
            Kind::Sure(method) | Kind::Found(method, _) => method.as_str(),
            Kind::New(_) => METHOD_OTHER,
        }
    }
}

impl Kept for Served {
    fn hear(&mut self, head: Heard<'_>) {
        // What tonic says of a path that it has no method for; a handler says it with a message.
        let unknown = Code::of_headers(head.headers) == Some(Code::Unimplemented)
            && !head.headers.contains_key(GRPC_MESSAGE);
        self.answered = !unknown;
    }

    fn outcome(&mut self, ended: Ended<'_>) -> Outcome {
        if let Kind::New(method) = &mut self.method {
            let sent = std::mem::take(method);
            let name = self.answered.then(|| Name::keep(&sent)).flatten();
            let found = name.map_or(Method::Other, Method::Known);
            self.method = Kind::Found(found, sent);
        }
        Outcome::served_rpc(ended)
    }

    fn name(&self) -> Option<&'static str> {
        match self.method {
            Kind::Found(Method::Other, _) => Some(RPC_SYSTEM_GRPC),
            _ => None,
        }
    }

    fn attributes(&self, outcome: &Outcome) -> impl Iterator<Item = KeyValue> {
        let (found, sent) = match &self.method {
            Kind::Found(method, sent) => (
                Some(KeyValue::new(RPC_METHOD, method.as_str())),
                matches!(method, Method::Other).then_some(sent),
            ),
            _ => (None, None),
        };
        let original = |sent: &str| KeyValue::new(RPC_METHOD_ORIGINAL, sent.to_owned());
        let original = sent.map(|sent| original(sent));
        code(outcome).into_iter().chain(found).chain(original)
    }

    fn measure(&self, measured: Measured<'_>) {
        let labels = RpcLabels {
            method: self.method(),
            code: measured.outcome.code.unwrap_or(Code::Unknown),
            error: measured.outcome.error.clone(),
            server: None,
        };
        let seconds = measured.elapsed.as_secs_f64();
        measured.instruments.served_rpcs.record(&labels, seconds);
    }
}
