//! What begins.

use bytes::Bytes;

use crate::machine::{Answer, Label, TransactionId};

/// A transaction that is to begin.
///
/// Unless it is said that its original [was sent](Self::sent) or [answered](Self::answered), the engine sends that too.
#[derive(Clone, Debug)]
#[must_use = "nothing begins until an engine is given it"]
pub struct Transaction {
    pub(super) id: TransactionId,
    pub(super) kind: Label,
    pub(super) customer: Option<Label>,
    pub(super) dependency: Option<Label>,
    pub(super) trace: Option<Label>,
    pub(super) request: Bytes,
    pub(super) original: Original,
}

/// Who sends the original.
#[derive(Clone, Debug)]
pub(super) enum Original {
    /// The engine does.
    Engine,
    /// The caller does; its answer comes by itself.
    Caller,
    /// The caller did, and was answered.
    Answered(Answer),
}

impl Transaction {
    /// Names it, says what kind it is, and what every attempt sends.
    pub fn new(id: TransactionId, kind: impl Into<Label>, request: impl Into<Bytes>) -> Self {
        Self {
            id,
            kind: kind.into(),
            customer: None,
            dependency: None,
            trace: None,
            request: request.into(),
            original: Original::Engine,
        }
    }

    /// Says whom it is for.
    pub fn customer(mut self, customer: impl Into<Label>) -> Self {
        self.customer = Some(customer.into());
        self
    }

    /// Says what its requests go to: what a breaker that is open postpones.
    pub fn dependency(mut self, dependency: impl Into<Label>) -> Self {
        self.dependency = Some(dependency.into());
        self
    }

    /// Keeps a trace context, as a `traceparent` (W3C Trace Context) spells it, for later spans to link to.
    pub fn trace(mut self, traceparent: impl Into<Label>) -> Self {
        self.trace = Some(traceparent.into());
        self
    }

    /// Says that the caller sends the original itself, under the key `{id}#1`, and tells the answer later.
    ///
    /// Begin it before it is sent: a process that dies in between then has a transaction whose answer is lost, which the reconciler
    /// sends again, instead of a request that nobody knows of.
    pub fn sent(mut self) -> Self {
        self.original = Original::Caller;
        self
    }

    /// Says that the caller sent the original and got this answer, which is handled in the write that begins it.
    pub fn answered(mut self, answer: Answer) -> Self {
        self.original = Original::Answered(answer);
        self
    }
}
