//! A stored answer, and the bytes that it is stored as.

use std::fmt;

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use sha2::{Digest, Sha256};

use super::{StoreError, StoreErrorKind};

/// An answer as a store keeps it: opaque bytes, with a hash over them at the end.
///
/// ```
/// use bytes::Bytes;
/// use http::{HeaderMap, StatusCode};
/// use mamparo::idempotency::{Answer, Kept, SealedAnswer};
///
/// let answer = Answer::new(StatusCode::CREATED, HeaderMap::new(), Kept::Body(Bytes::from("ch_1")));
/// let sealed = answer.seal();
/// assert_eq!(sealed.open()?, answer);
///
/// let mut damaged = sealed.as_bytes().to_vec();
/// damaged[1] ^= 1;
/// assert!(SealedAnswer::from_bytes(damaged).open().is_err());
/// # Ok::<(), mamparo::idempotency::StoreError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct SealedAnswer(Bytes);

/// An answer that was stored, or will be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Those of its headers that are kept.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Kept,
    /// Those of its trailers that are kept, where there were any.
    pub trailers: Option<HeaderMap>,
}

/// What is kept of an answer's body.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kept {
    /// All of it.
    Body(Bytes),
    /// Nothing, because the answer is larger than what is kept.
    AnswerTooLarge,
    /// Nothing, because the request is larger than what is compared: another one could not be told from it.
    RequestTooLarge,
    /// Nothing, because the answer broke off.
    Broken,
}

const VERSION: u8 = 1;
const HASH_LEN: usize = 32;

impl Answer {
    /// Makes an answer without trailers.
    #[must_use]
    pub const fn new(status: StatusCode, headers: HeaderMap, body: Kept) -> Self {
        Self {
            status,
            headers,
            body,
            trailers: None,
        }
    }

    /// Writes it as a store keeps it.
    #[must_use]
    pub fn seal(&self) -> SealedAnswer {
        let (tag, body): (u8, &[u8]) = match &self.body {
            Kept::Body(body) => (0, body),
            Kept::AnswerTooLarge => (1, &[]),
            Kept::RequestTooLarge => (2, &[]),
            Kept::Broken => (3, &[]),
        };
        let mut out = BytesMut::with_capacity(body.len() + 256);
        out.put_u8(VERSION);
        out.put_u8(tag);
        out.put_u16(self.status.as_u16());
        fields(&mut out, Some(&self.headers));
        fields(&mut out, self.trailers.as_ref());
        out.put_slice(body);
        let hash = Sha256::digest(&out);
        out.put_slice(&hash);
        SealedAnswer(out.freeze())
    }
}

/// A count, one more than there are so that none is 0, and then names and values with their lengths.
fn fields(out: &mut BytesMut, map: Option<&HeaderMap>) {
    let Some(map) = map else {
        return out.put_u32(0);
    };
    out.put_u32(map.len() as u32 + 1);
    for (name, value) in map {
        for part in [name.as_str().as_bytes(), value.as_bytes()] {
            out.put_u32(part.len() as u32);
            out.put_slice(part);
        }
    }
}

impl SealedAnswer {
    /// Takes bytes that a store kept; they are checked when the answer is opened.
    #[must_use]
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Self {
        Self(bytes.into())
    }

    /// Returns the bytes, for a store to keep.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Reads the answer.
    ///
    /// # Errors
    ///
    /// Refuses bytes that are not those which were written, and those of a newer version.
    pub fn open(&self) -> Result<Answer, StoreError> {
        let corrupt = || StoreError::new(StoreErrorKind::Corrupt, "a stored answer is damaged");
        let end = self.0.len().checked_sub(HASH_LEN).ok_or_else(corrupt)?;
        if Sha256::digest(&self.0[..end]).as_slice() != &self.0[end..] {
            return Err(corrupt());
        }
        let mut rest = self.0.slice(..end);
        if rest.first() != Some(&VERSION) {
            let reason = "a stored answer has a form that this version does not know";
            return Err(StoreError::new(StoreErrorKind::Incompatible, reason));
        }
        read(&mut rest).ok_or_else(corrupt)
    }
}

/// Reads all of it; none where something does not fit.
fn read(rest: &mut Bytes) -> Option<Answer> {
    let head = take(rest, 4)?;
    let status = StatusCode::from_u16(u16::from_be_bytes([head[2], head[3]])).ok()?;
    let headers = read_fields(rest)??;
    let trailers = read_fields(rest)?;
    let body = match head[1] {
        0 => Kept::Body(std::mem::take(rest)),
        1 => Kept::AnswerTooLarge,
        2 => Kept::RequestTooLarge,
        3 => Kept::Broken,
        _ => return None,
    };
    Some(Answer {
        status,
        headers,
        body,
        trailers,
    })
}

fn read_fields(rest: &mut Bytes) -> Option<Option<HeaderMap>> {
    let Some(count) = number(rest)?.checked_sub(1) else {
        return Some(None);
    };
    let mut map = HeaderMap::new();
    for _ in 0..count {
        let length = number(rest)?;
        let name = HeaderName::from_bytes(&take(rest, length)?).ok()?;
        let length = number(rest)?;
        let value = HeaderValue::from_maybe_shared(take(rest, length)?).ok()?;
        map.try_append(name, value).ok()?;
    }
    Some(Some(map))
}

fn number(rest: &mut Bytes) -> Option<usize> {
    let bytes = take(rest, 4)?;
    usize::try_from(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])).ok()
}

fn take(rest: &mut Bytes, length: usize) -> Option<Bytes> {
    (length <= rest.len()).then(|| rest.split_to(length))
}

impl fmt::Debug for SealedAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SealedAnswer({} bytes)", self.0.len())
    }
}

/// Without the body, which may hold anything.
impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Body(body) => write!(f, "Body({} bytes)", body.len()),
            Self::AnswerTooLarge => f.write_str("AnswerTooLarge"),
            Self::RequestTooLarge => f.write_str("RequestTooLarge"),
            Self::Broken => f.write_str("Broken"),
        }
    }
}
