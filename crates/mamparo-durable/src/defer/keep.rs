//! What is kept of a request before it is sent.

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue};
use mamparo_core::BoxError;
use mamparo_core::http::IDEMPOTENCY_KEY;
use uuid::{NoContext, Timestamp, Uuid};

use super::layer::Shared;
use super::{DeferAs, DeferError, DeferKeys, Undeferred};
use crate::engine::Transaction;
use crate::machine::{Answer, Label, TransactionId, idempotency_key};
use crate::web::{StoredRequest, written_key};

/// As many bytes of address and headers are kept; twice as many, as they are stored, leave room for the largest body.
pub const MAX_HEAD_BYTES: usize = 32 * 1024;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// A request, should it be deferred.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) id: TransactionId,
    /// The id is the caller's, and so may be known.
    pub(super) named: bool,
    /// Sent again under the same key, it takes effect once, whatever became of it.
    pub(super) repeatable: bool,
    kind: Label,
    customer: Option<Label>,
    trace: Option<Label>,
    dependency: Option<Label>,
    stored: StoredRequest,
}

impl Shared {
    /// Keeps what is stored of a request, and gives it a key if it needs one.
    pub(super) fn keep(&self, head: &mut Parts, body: Bytes) -> Result<Kept, BoxError> {
        let tag = head
            .extensions
            .get::<DeferAs>()
            .cloned()
            .unwrap_or_default();
        let kind = tag.kind.unwrap_or_else(|| self.settings.kind.clone());
        let own = head.headers.get(IDEMPOTENCY_KEY).cloned();
        let id = match (tag.id, &own) {
            (Some(id), _) => Some(id),
            (None, Some(key)) => Some(self.id_of(key, &kind)?),
            (None, None) => None,
        };
        let named = id.is_some();
        let id = id.map_or_else(|| self.fresh_id(), Ok)?;
        let key = match own {
            Some(own) => Some(own),
            None => self.make_key(&id)?,
        };
        if let Some(key) = &key {
            head.headers.insert(IDEMPOTENCY_KEY, key.clone());
        }
        let trace = head.headers.get(TRACEPARENT);
        let trace = tag.trace.or_else(|| Some(trace?.to_str().ok()?.into()));
        let headers = self.kept_headers(head)?;
        let repeatable = key.is_some() || head.method.is_idempotent();
        Ok(Kept {
            id,
            named,
            repeatable,
            kind,
            customer: tag.customer,
            trace,
            dependency: self.dependency.clone(),
            stored: StoredRequest::of(&head.method, &head.uri, &headers, body).with_key(key),
        })
    }

    /// The same key may go to several dependencies, and means another request to each.
    fn id_of(&self, key: &HeaderValue, kind: &Label) -> Result<TransactionId, DeferError> {
        let refuse = |why: String| {
            let says = format!(
                "the idempotency key can't be a transaction's id: {why}; name one with DeferAs"
            );
            DeferError::new(Undeferred::UnusableKey, says)
        };
        let text = key
            .to_str()
            .map_err(|_| refuse("it is no visible ASCII".to_owned()))?;
        let text = text.trim();
        let bare = text
            .strip_prefix('"')
            .and_then(|text| text.strip_suffix('"'));
        let scope = self.dependency.as_ref().unwrap_or(kind).as_str();
        TransactionId::new(format!("{scope}:{}", bare.unwrap_or(text)))
            .map_err(|error| refuse(error.reason().to_owned()))
    }

    /// Time-ordered, so that a store's index of ids stays compact (RFC 9562 §5.7).
    fn fresh_id(&self) -> Result<TransactionId, BoxError> {
        let millis = self.engine.runner().now().millis().unsigned_abs();
        let (seconds, nanos) = (millis / 1_000, (millis % 1_000) * 1_000_000);
        let time = Timestamp::from_unix(NoContext, seconds, u32::try_from(nanos)?);
        Ok(TransactionId::new(Uuid::new_v7(time).to_string())?)
    }

    fn make_key(&self, id: &TransactionId) -> Result<Option<HeaderValue>, BoxError> {
        let bare = match self.settings.keys {
            DeferKeys::Quoted => false,
            DeferKeys::Bare => true,
            DeferKeys::Callers => return Ok(None),
        };
        let mut key = written_key(&idempotency_key(id, 1), bare)?;
        // Whoever prints the headers does not print the key, and HTTP/2 does not index it.
        key.set_sensitive(true);
        Ok(Some(key))
    }

    fn kept_headers(&self, head: &Parts) -> Result<HeaderMap, DeferError> {
        let mut kept = HeaderMap::new();
        let authority = head.uri.authority().map_or(0, |it| it.as_str().len());
        let query = head.uri.query().map_or(0, str::len);
        let mut bytes = authority + head.uri.path().len() + query;
        for name in &self.settings.headers {
            for value in head.headers.get_all(name) {
                bytes += name.as_str().len() + value.len();
                kept.append(name.clone(), value.clone());
            }
        }
        if bytes > MAX_HEAD_BYTES {
            let says = format!(
                "the request can't be deferred, and is not sent: address and headers have {bytes} bytes, \
                 and {MAX_HEAD_BYTES} are kept"
            );
            return Err(DeferError::new(Undeferred::TooLarge, says));
        }
        Ok(kept)
    }
}

impl Kept {
    /// Tells whether what is stored is this very request: what else its headers say may change from one caller's try to the next.
    pub(super) fn is(&self, stored: &Bytes) -> bool {
        StoredRequest::decode(stored).is_ok_and(|stored| stored.asks_the_same(&self.stored))
    }

    /// Makes the transaction of a request whose original was answered.
    pub(super) fn transaction(&self, answer: Answer) -> Transaction {
        let mut transaction =
            Transaction::new(self.id.clone(), self.kind.clone(), self.stored.encode());
        if let Some(customer) = &self.customer {
            transaction = transaction.customer(customer.clone());
        }
        if let Some(dependency) = &self.dependency {
            transaction = transaction.dependency(dependency.clone());
        }
        if let Some(trace) = &self.trace {
            transaction = transaction.trace(trace.clone());
        }
        transaction.answered(answer)
    }
}
