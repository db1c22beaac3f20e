//! What differs between the protocols, and between the two sides of a call.

use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt;

use http::{HeaderMap, Request, StatusCode, Version};
use mamparo_core::{BoxError, Dependency};
use opentelemetry::KeyValue;
use opentelemetry::trace::SpanKind;

use crate::outcome::{Ended, Measured, Outcome};

/// What a protocol says of a request and its answer, on one side of the call.
pub trait Role: Clone + fmt::Debug + Send + Sync + 'static {
    /// The kind of its spans.
    const KIND: SpanKind;
    /// Whether it answers calls: then a span continues its caller's, and is current wherever the answer is made.
    const SERVES: bool;

    /// A request, before it is handed on.
    type Before<'a>: Before<Self::Kept>;
    /// What is kept of it until its answer is over.
    type Kept: Kept;

    /// Looks at a request.
    fn before<'a, A>(&'a self, request: &'a Request<A>, dependency: Dependency)
    -> Self::Before<'a>;
}

/// Which error a caller gets for one of the service inside.
pub trait Passes<E>: Role {
    /// That error.
    type Error: Fault;

    /// Makes it.
    fn pass(error: E) -> Self::Error;
}

/// An error that can be looked at and handed on.
pub trait Fault {
    /// Looks at it.
    #[must_use]
    fn look(self, look: impl FnOnce(&BoxError)) -> Self;
}

impl Fault for BoxError {
    fn look(self, look: impl FnOnce(&Self)) -> Self {
        look(&self);
        self
    }
}

/// What answers every error with a response is served as it is.
impl Fault for Infallible {
    fn look(self, _: impl FnOnce(&BoxError)) -> Self {
        self
    }
}

/// What is said of a request before it is handed on.
pub trait Before<K> {
    /// The span's name.
    fn name(&self) -> Cow<'static, str>;

    /// The span's attributes.
    fn attributes(&self) -> Vec<KeyValue>;

    /// What the end must know; `measured` says whether anything is measured.
    fn kept(&self, measured: bool) -> K;
}

/// What is known of a call until it is over, and said of it then.
pub trait Kept: Send + 'static {
    /// Looks at the head of the answer.
    fn hear(&mut self, _: Heard<'_>) {}

    /// Says how it ended. Called once, before the others.
    fn outcome(&mut self, ended: Ended<'_>) -> Outcome;

    /// A better name for the span, if there is one by now.
    fn name(&self) -> Option<&'static str> {
        None
    }

    /// What the span is told at its end, besides the error.
    fn attributes(&self, outcome: &Outcome) -> impl Iterator<Item = KeyValue>;

    /// Writes what is measured.
    fn measure(&self, measured: Measured<'_>);
}

/// The head of an answer.
#[derive(Clone, Copy, Debug)]
pub struct Heard<'a> {
    pub(crate) status: StatusCode,
    pub(crate) version: Version,
    pub(crate) headers: &'a HeaderMap,
}
