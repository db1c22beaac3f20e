//! The key as it stands in a header, and as it is stored.

use std::fmt;
use std::num::NonZeroU64;

use http::{HeaderMap, HeaderName, HeaderValue};
use mamparo_core::fnv;
use sha2::{Digest, Sha256};

/// The longest key that is accepted by default, in characters; Stripe's limit too.
pub const MAX_KEY_LEN: usize = 255;

/// In which forms a key is accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeySyntax {
    /// A structured field string, or the bare characters, as many clients send them; `"a"` and `a` are one key.
    #[default]
    Lenient,
    /// A structured field string and nothing else (draft-ietf-httpapi-idempotency-key-header-07 §2.1).
    Strict,
}

/// A key as the caller sent it, without its quotes. It is shown to nobody.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Key(Vec<u8>);

/// Reads a request's key; none where it has none.
///
/// # Errors
///
/// Says what is wrong with one that can't be read.
pub(super) fn read(
    headers: &HeaderMap,
    name: &HeaderName,
    syntax: KeySyntax,
    longest: usize,
) -> Result<Option<Key>, &'static str> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    // Two lines are a list, which no item is (RFC 9651 §4.2).
    if values.next().is_some() {
        return Err("the key is sent more than once");
    }
    parse(value, syntax, longest).map(Some)
}

fn parse(value: &HeaderValue, syntax: KeySyntax, longest: usize) -> Result<Key, &'static str> {
    let raw = value.as_bytes().trim_ascii();
    // Before anything is copied: an attacker chooses the length. Escapes at most double it, parameters come on top.
    if raw.len() > 4 * longest + 256 {
        return Err("the key is too long");
    }
    let key = match (raw, syntax) {
        ([b'"', ..], _) => quoted(raw)?,
        ([], _) => return Err("the key is empty"),
        (bare, KeySyntax::Lenient) => visible(bare)?,
        (_, KeySyntax::Strict) => {
            return Err("the key must be a structured field string, in double quotes");
        }
    };
    match key.len() {
        0 => Err("the key is empty"),
        length if length > longest => Err("the key is too long"),
        _ => Ok(Key(key)),
    }
}

/// A structured field string (RFC 9651 §4.2.5); its parameters say nothing here.
fn quoted(raw: &[u8]) -> Result<Vec<u8>, &'static str> {
    let item = sfv::Parser::new(raw).parse::<sfv::Item>();
    match item.map(|item| item.bare_item) {
        Ok(sfv::BareItem::String(key)) => Ok(String::from(key).into_bytes()),
        _ => Err("the key begins with a double quote, and is no structured field string"),
    }
}

/// A bare key: visible ASCII without what would be quoted, and without a comma, by which a proxy joins two lines.
fn visible(bare: &[u8]) -> Result<Vec<u8>, &'static str> {
    let fits = |byte: &u8| matches!(byte, b'!'..=b'~') && !matches!(byte, b'"' | b',' | b'\\');
    if bare.iter().all(fits) {
        Ok(bare.to_vec())
    } else {
        Err("the key has characters that a bare key may not have: write it in double quotes")
    }
}

impl Key {
    /// What the key is stored under; `scope` says whose it is.
    pub(super) fn id(&self, namespace: &str, principal: &[u8]) -> KeyId {
        let mut hash = Sha256::new();
        hash.update(b"mamparo idempotency key 1");
        for part in [namespace.as_bytes(), principal, &self.0] {
            // With its length, so that no two sets of parts run together to the same bytes.
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        let mut id = [0; 16];
        id.copy_from_slice(&hash.finalize()[..16]);
        KeyId(id)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

/// What a key is stored under: a hash of it, of its principal and of the namespace, half of a SHA-256.
///
/// From it the key can't be read: a store, its logs and its backups hold no key that a caller has sent.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId([u8; 16]);

impl KeyId {
    /// Makes one from bytes that a store kept.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns its bytes, for a store to keep.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Returns the short hash by which events name the key.
    #[must_use]
    pub fn short(&self) -> NonZeroU64 {
        NonZeroU64::new(fnv::hash(&self.0)).unwrap_or(NonZeroU64::MAX)
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyId({:016x})", self.short())
    }
}
