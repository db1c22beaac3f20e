//! The key in the handler's own transaction.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Extensions, Response};

use super::{Answer, Fingerprint, IdempotencyPolicy, Kept, KeyId, Lease, kept};

/// The key of the request that a handler serves: with it, the handler completes the key in its own database transaction.
///
/// The layer puts one into the extensions of every request with a key. A store whose keys lie in a database has a function
/// that takes it, a transaction and the answer that is about to be sent: `mamparo_sqlite::complete`, say. Effect and key are
/// then committed together, or neither is. The layer sees what was committed, writes nothing again, and sends exactly the
/// answer that is stored.
///
/// A handler whose transaction does not commit just answers: its answer is then stored as any other is.
#[derive(Clone)]
pub struct IdempotencyTx(Arc<Inner>);

struct Inner {
    lease: Lease,
    fingerprint: Fingerprint,
    principal: Vec<u8>,
    policy: IdempotencyPolicy,
    request_fits: bool,
    again: bool,
    written: Mutex<Option<Answer>>,
}

/// What the layer knows of a request when its handler is about to run.
pub(super) struct Started {
    pub(super) lease: Lease,
    pub(super) fingerprint: Fingerprint,
    pub(super) principal: Vec<u8>,
    pub(super) policy: IdempotencyPolicy,
    pub(super) request_fits: bool,
    pub(super) again: bool,
}

impl IdempotencyTx {
    pub(super) fn new(started: Started) -> Self {
        let Started {
            lease,
            fingerprint,
            principal,
            policy,
            request_fits,
            again,
        } = started;
        Self(Arc::new(Inner {
            lease,
            fingerprint,
            principal,
            policy,
            request_fits,
            again,
            written: Mutex::default(),
        }))
    }

    /// Finds the handle of a request; none where the request has no key.
    #[must_use]
    pub fn of(extensions: &Extensions) -> Option<&Self> {
        extensions.get()
    }

    /// Returns what the key is stored under.
    #[must_use]
    pub fn id(&self) -> KeyId {
        self.0.lease.id
    }

    /// Returns the lease under which the handler runs.
    #[must_use]
    pub fn lease(&self) -> Lease {
        self.0.lease
    }

    /// Returns the fingerprint of the request.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.0.fingerprint
    }

    /// Returns whose key it is, as the policy's function told; empty where all callers share theirs.
    #[must_use]
    pub fn principal(&self) -> &[u8] {
        &self.0.principal
    }

    /// Returns how long the answer is kept.
    #[must_use]
    pub fn retention(&self) -> Duration {
        self.0.policy.retention()
    }

    /// Tells whether an earlier run of this request was begun and may have taken effect.
    #[must_use]
    pub fn is_again(&self) -> bool {
        self.0.again
    }

    /// Says what is kept of an answer, for a store to write.
    #[must_use]
    pub fn answer(&self, response: &Response<Bytes>) -> Answer {
        let settings = &self.0.policy.settings;
        let body = match response.body() {
            _ if !self.0.request_fits => Kept::RequestTooLarge,
            body if body.len() > settings.answer_limit => Kept::AnswerTooLarge,
            body => Kept::Body(body.clone()),
        };
        let headers = kept::only(&settings.kept, response.headers());
        Answer::new(response.status(), headers, body)
    }

    /// Says that a transaction has completed the key with this answer, for a store to call before it commits.
    pub fn wrote(&self, answer: Answer) {
        *self.written() = Some(answer);
    }

    pub(super) fn request_fits(&self) -> bool {
        self.0.request_fits
    }

    pub(super) fn take_written(&self) -> Option<Answer> {
        self.written().take()
    }

    fn written(&self) -> std::sync::MutexGuard<'_, Option<Answer>> {
        let written = self.0.written.lock();
        written.unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for IdempotencyTx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdempotencyTx")
            .field("id", &self.0.lease.id)
            .finish_non_exhaustive()
    }
}

/// What a handler, or a layer inside of this one, puts into a response's extensions when nothing was done.
///
/// Its answer is then not stored, and the request is run again when it comes again: a refusal by a rate limit, say, or by
/// an authentication that stands further in.
///
/// ```
/// use mamparo::idempotency::NotRun;
///
/// let mut refusal = http::Response::new("not now");
/// refusal.extensions_mut().insert(NotRun);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a mark: there is nothing in it")]
pub struct NotRun;
