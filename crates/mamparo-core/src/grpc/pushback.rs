//! What a server says of sending its request again.

use std::time::Duration;

use http::{HeaderMap, HeaderValue};

use super::GRPC_RETRY_PUSHBACK_MS;

/// What a server says of sending the request again, in `grpc-retry-pushback-ms` (gRFC A6, "Pushback").
///
/// It is a signed 32-bit integer; one that is negative or can't be read, and more than one, is a no.
///
/// ```
/// use http::HeaderMap;
/// use mamparo_core::grpc::Pushback;
/// use std::time::Duration;
///
/// let mut trailers = HeaderMap::new();
/// assert_eq!(Pushback::of(&trailers), None);
/// trailers.insert("grpc-retry-pushback-ms", "250".parse()?);
/// assert_eq!(Pushback::of(&trailers), Some(Pushback::After(Duration::from_millis(250))));
/// trailers.insert("grpc-retry-pushback-ms", "-1".parse()?);
/// assert_eq!(Pushback::of(&trailers), Some(Pushback::Stop));
/// # Ok::<(), http::header::InvalidHeaderValue>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "gRPC knows these two, and whoever resends must obey both"
)]
pub enum Pushback {
    /// Again after exactly this long.
    After(Duration),
    /// Not again.
    Stop,
}

impl Pushback {
    /// Reads it from headers or trailers, if they carry it.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(GRPC_RETRY_PUSHBACK_MS).iter();
        let first = values.next()?;
        if values.next().is_some() {
            return Some(Self::Stop);
        }
        Some(match millis(first.as_bytes()) {
            Some(millis) => Self::After(Duration::from_millis(millis)),
            None => Self::Stop,
        })
    }

    /// Returns the header's value: a wait in milliseconds, rounded up, since whoever is told to wait must not come early.
    #[must_use]
    pub fn value(self) -> HeaderValue {
        match self {
            Self::After(wait) => {
                let millis = wait.as_nanos().div_ceil(1_000_000);
                HeaderValue::from(i32::try_from(millis).unwrap_or(i32::MAX))
            }
            Self::Stop => HeaderValue::from_static("-1"),
        }
    }
}

/// Digits only, since `parse` takes a sign too; leading zeros are let pass.
fn millis(value: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(value).ok()?;
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse::<i32>().ok()?.try_into().ok()
}
