//! What a request is to be deferred as.

use crate::machine::{Label, TransactionId};

/// Says as what a request is deferred; put it into the request's extensions.
///
/// ```
/// use mamparo_durable::defer::DeferAs;
/// use mamparo_durable::machine::TransactionId;
///
/// let named = DeferAs::new().id(TransactionId::new("payment-1")?).customer("ACME");
/// let request = http::Request::post("http://psp/charges").extension(named).body(())?;
/// # let _ = request;
/// # Ok::<(), mamparo_core::BoxError>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "it says nothing until it is in a request's extensions"]
pub struct DeferAs {
    pub(super) id: Option<TransactionId>,
    pub(super) kind: Option<Label>,
    pub(super) customer: Option<Label>,
    pub(super) trace: Option<Label>,
}

impl DeferAs {
    /// Says nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Names the transaction; by default the dependency and the caller's own key, or a new UUID.
    pub fn id(mut self, id: TransactionId) -> Self {
        self.id = Some(id);
        self
    }

    /// Says what kind it is, if not the layer's.
    pub fn kind(mut self, kind: impl Into<Label>) -> Self {
        self.kind = Some(kind.into());
        self
    }

    /// Says whom it is for.
    pub fn customer(mut self, customer: impl Into<Label>) -> Self {
        self.customer = Some(customer.into());
        self
    }

    /// Keeps a trace context, as a `traceparent` (W3C Trace Context) spells it, for later spans to link to; by default the request's own
    /// header, if it has one.
    pub fn trace(mut self, traceparent: impl Into<Label>) -> Self {
        self.trace = Some(traceparent.into());
        self
    }
}
