//! What could not be deferred, and why.

use std::error::Error;
use std::fmt::{self, Display};

use bytes::Bytes;
use http::Response;
use mamparo_core::{BoxError, chain};

use crate::backend::{BackendError, Trouble};
use crate::machine::TransactionId;

/// A request can't be deferred, or could not be.
///
/// Before it was sent, the request itself is why. After that, what came of it is inside: the [answer](Self::answer), whole, or else the
/// stack's error as the [source](Error::source), where a [`Rejection`](mamparo_core::Rejection) is found as anywhere.
pub struct DeferError {
    why: Undeferred,
    says: String,
    id: Option<TransactionId>,
    trouble: Option<Trouble>,
    answer: Option<Box<Response<Bytes>>>,
    source: Option<BoxError>,
}

/// Why a request is not deferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Undeferred {
    /// Its body or head is larger than what is kept. Nothing was sent.
    TooLarge,
    /// Its body broke off, took too long, or has trailers, which can't be kept. Nothing was sent.
    Unreplayable,
    /// Its key can't be an id. Nothing was sent.
    UnusableKey,
    /// Another request is stored under its id. Nothing was sent, unless both were at the same time.
    OtherRequest,
    /// Whether its id is known could not be read. Nothing was sent.
    NotRead,
    /// It could not be stored: [`DeferError::trouble`] says of what kind that is.
    NotStored,
    /// It was not stored in time. It may be yet: repeat it under the same id.
    StoreTooSlow,
}

impl DeferError {
    pub(super) fn new(why: Undeferred, says: impl Into<String>) -> Self {
        Self {
            why,
            says: says.into(),
            id: None,
            trouble: None,
            answer: None,
            source: None,
        }
    }

    pub(super) fn not_stored(error: BackendError) -> Self {
        let says = format!("the request could not be stored for later: {error}");
        Self {
            trouble: Some(error.trouble()),
            source: Some(error.into()),
            ..Self::new(Undeferred::NotStored, says)
        }
    }

    pub(super) fn not_read(error: BackendError) -> Self {
        let says =
            format!("the request is not sent: whether its id is known can't be read: {error}");
        Self {
            trouble: Some(error.trouble()),
            source: Some(error.into()),
            ..Self::new(Undeferred::NotRead, says)
        }
    }

    pub(super) fn other_request(id: &TransactionId, what: &str) -> Self {
        let says = format!(
            "the request is not {what}: another one has the id {id}; use a new key for each request"
        );
        Self::new(Undeferred::OtherRequest, says)
    }

    pub(super) fn of_transaction(mut self, id: TransactionId) -> Self {
        self.id = Some(id);
        self
    }

    pub(super) fn with_answer(mut self, answer: Response<Bytes>) -> Self {
        self.answer = Some(Box::new(answer));
        self
    }

    pub(super) fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Finds one in an error or its causes.
    #[must_use]
    pub fn of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        chain::find(error)
    }

    /// Returns why.
    #[must_use]
    pub const fn why(&self) -> Undeferred {
        self.why
    }

    /// Tells whether the dependency, or the stack, was asked.
    #[must_use]
    pub const fn sent(&self) -> bool {
        self.id.is_some()
    }

    /// Returns the transaction that it would be; `None` where nothing was sent.
    #[must_use]
    pub const fn id(&self) -> Option<&TransactionId> {
        self.id.as_ref()
    }

    /// Returns the store's kind of trouble, if that is why.
    #[must_use]
    pub const fn trouble(&self) -> Option<Trouble> {
        self.trouble
    }

    /// Returns the dependency's answer, if it gave one. Of a body longer than [`MAX_ANSWER_BYTES`](crate::web::MAX_ANSWER_BYTES), or one
    /// that broke off, it has what was read.
    #[must_use]
    pub fn answer(&self) -> Option<&Response<Bytes>> {
        self.answer.as_deref()
    }

    /// Takes the dependency's answer.
    #[must_use]
    pub fn into_answer(self) -> Option<Response<Bytes>> {
        self.answer.map(|answer| *answer)
    }
}

impl Display for DeferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.says)?;
        match &self.answer {
            Some(answer) => write!(f, " (the answer was {})", answer.status()),
            None => Ok(()),
        }
    }
}

// Without headers and body, which may be secret.
impl fmt::Debug for DeferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeferError")
            .field("why", &self.why)
            .field("says", &self.says)
            .field("id", &self.id)
            .field("answer", &self.answer().map(Response::status))
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

impl Error for DeferError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
