//! What a request asks for, in 32 bytes.

use std::fmt;

use http::request::Parts;
use http::{HeaderName, Method, Uri};
use sha2::{Digest, Sha256};

/// Tells one request from another that carries the same key: a SHA-256 of method, path, query, chosen headers and body.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Makes one from bytes that a store kept.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns its bytes, for a store to keep.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({:02x}{:02x}…)", self.0[0], self.0[1])
    }
}

/// A fingerprint that is being taken, while the body streams by.
pub(super) struct Taking(Sha256);

impl Taking {
    pub(super) fn of(head: &Parts, headers: &[HeaderName]) -> Self {
        let mut taking = Self(Sha256::new());
        taking.put(b"mamparo fingerprint 1");
        taking.request(&head.method, &head.uri);
        for name in headers {
            let values = head.headers.get_all(name);
            taking.count(values.iter().count());
            for value in values {
                taking.put(value.as_bytes());
            }
        }
        taking
    }

    fn request(&mut self, method: &Method, uri: &Uri) {
        self.put(method.as_str().as_bytes());
        self.put(uri.path().as_bytes());
        // `/a?` and `/a` are two.
        self.count(usize::from(uri.query().is_some()));
        self.put(uri.query().unwrap_or_default().as_bytes());
    }

    /// What stands alone has its length before it, so that nothing runs together with what follows.
    fn put(&mut self, part: &[u8]) {
        self.count(part.len());
        self.0.update(part);
    }

    fn count(&mut self, count: usize) {
        self.0.update((count as u64).to_be_bytes());
    }

    /// The body's next bytes; it comes last, so that how it was cut into frames makes no difference.
    pub(super) fn body(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    pub(super) fn end(self) -> Fingerprint {
        Fingerprint(self.0.finalize().into())
    }
}
