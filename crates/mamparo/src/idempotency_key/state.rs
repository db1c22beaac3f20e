//! Which request gets which key.

use std::num::NonZeroU64;
use std::time::SystemTime;

use http::{HeaderMap, HeaderValue, Method};
use mamparo_core::{BoxError, fnv};
use uuid::{NoContext, Timestamp, Uuid};

use super::config::{KeyBuilder, KeyForm};

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// It carries the caller's own key.
    Own(NonZeroU64),
    /// It needs one.
    Needed,
    /// It needs none.
    None,
}

pub(super) fn key(settings: &KeyBuilder, method: &Method, headers: &HeaderMap) -> Key {
    if settings.off {
        return Key::None;
    }
    match headers.get(&settings.header) {
        Some(own) => Key::Own(short_hash(own)),
        None if settings.methods.contains(method) => Key::Needed,
        None => Key::None,
    }
}

/// Makes a key: time-ordered, so that a server's index of keys stays compact (RFC 9562 §5.7).
pub(super) fn fresh(form: KeyForm, wall: SystemTime) -> Result<HeaderValue, BoxError> {
    let since_epoch = wall
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let time = Timestamp::from_unix(NoContext, since_epoch.as_secs(), since_epoch.subsec_nanos());
    let uuid = Uuid::new_v7(time).hyphenated();
    let mut text = [b'"'; 38];
    uuid.encode_lower(&mut text[1..37]);
    let written = match form {
        KeyForm::Quoted => &text[..],
        KeyForm::Bare => &text[1..37],
    };
    Ok(HeaderValue::from_bytes(written)?)
}

/// A short hash of a key: the quoted and the bare form are the same key.
pub(super) fn short_hash(value: &HeaderValue) -> NonZeroU64 {
    let bytes = value.as_bytes().trim_ascii();
    let unquoted = bytes
        .strip_prefix(b"\"")
        .and_then(|rest| rest.strip_suffix(b"\""));
    NonZeroU64::new(fnv::hash(unquoted.unwrap_or(bytes))).unwrap_or(NonZeroU64::MAX)
}
