//! How long a server asks to wait.

use std::time::{Duration, SystemTime};

use http::HeaderMap;
use http::header::{AGE, DATE, HeaderName, RETRY_AFTER};

use crate::clock::WallClock;

/// The longest wait that is ever read from a header; what may be waited for is a setting of the retry.
pub const MAX_HINT: Duration = Duration::from_secs(366 * 86_400);

/// The longest `RateLimit` field that is parsed, in bytes.
pub const MAX_RATE_LIMIT_LEN: usize = 4096;

const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");

/// Returns the wait that an answer asks for: `Retry-After`, or else `RateLimit` when nothing is left.
///
/// `Retry-After` takes precedence (draft-ietf-httpapi-ratelimit-headers-10 §5).
#[must_use]
pub fn server_wait(headers: &HeaderMap, wall_clock: &dyn WallClock) -> Option<Duration> {
    retry_after(headers, wall_clock).or_else(|| rate_limit(headers))
}

/// Reads `Retry-After` (RFC 9110 §10.2.3): seconds, or any of the three HTTP dates.
///
/// A date is taken relative to the answer's own `Date`, so that a skewed clock still waits right, unless
/// `Age` says that the answer was stored somewhere. A date in the past is a wait of zero. What can't be read
/// is ignored; of several fields the longest counts, so that nobody comes earlier than told.
///
/// ```
/// use http::{HeaderMap, header::RETRY_AFTER};
/// use mamparo_core::{clock::SystemClock, http::hint::retry_after};
/// use std::time::Duration;
///
/// let mut headers = HeaderMap::new();
/// headers.insert(RETRY_AFTER, "120".parse()?);
/// assert_eq!(retry_after(&headers, &SystemClock), Some(Duration::from_secs(120)));
/// headers.insert(RETRY_AFTER, "-1".parse()?);
/// assert_eq!(retry_after(&headers, &SystemClock), None);
/// # Ok::<(), http::header::InvalidHeaderValue>(())
/// ```
#[must_use]
pub fn retry_after(headers: &HeaderMap, wall_clock: &dyn WallClock) -> Option<Duration> {
    let waits = headers.get_all(RETRY_AFTER).iter().filter_map(|value| {
        let text = value.to_str().ok()?.trim_matches([' ', '\t']);
        seconds(text).or_else(|| until(text, headers, wall_clock))
    });
    waits.max().map(|wait| wait.min(MAX_HINT))
}

/// Digits only: `u64::from_str` would take a sign.
fn seconds(text: &str) -> Option<Duration> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // Only an overflow can fail here.
    Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)))
}

fn until(text: &str, headers: &HeaderMap, wall_clock: &dyn WallClock) -> Option<Duration> {
    let instant = httpdate::parse_http_date(text).ok()?;
    let now = server_now(headers).unwrap_or_else(|| wall_clock.now());
    Some(instant.duration_since(now).unwrap_or(Duration::ZERO))
}

fn server_now(headers: &HeaderMap) -> Option<SystemTime> {
    if headers.contains_key(AGE) {
        return None;
    }
    let date = headers.get(DATE)?.to_str().ok()?;
    httpdate::parse_http_date(date.trim_matches([' ', '\t'])).ok()
}

/// Reads `RateLimit` (draft-ietf-httpapi-ratelimit-headers-10 §4): the longest `t` among the policies that have
/// nothing left.
///
/// Malformed fields, and those of a stored answer, are ignored.
#[must_use]
pub fn rate_limit(headers: &HeaderMap) -> Option<Duration> {
    if !headers.contains_key(RATE_LIMIT) || headers.contains_key(AGE) {
        return None;
    }
    let mut field = String::new();
    for value in headers.get_all(RATE_LIMIT) {
        let text = value.to_str().ok()?;
        if field.len() + text.len() > MAX_RATE_LIMIT_LEN {
            return None;
        }
        if !field.is_empty() {
            field.push_str(", ");
        }
        field.push_str(text);
    }
    let list: sfv::List = sfv::Parser::new(&field).parse().ok()?;
    let mut longest = None;
    for entry in &list {
        let sfv::ListEntry::Item(item) = entry else {
            return None;
        };
        item.bare_item.as_string()?;
        let number = |name: &str| {
            let value = item.params.get(sfv::KeyRef::from_str(name).ok()?)?;
            u64::try_from(i64::from(value.as_integer()?)).ok()
        };
        if number("r")? == 0 {
            longest = longest.max(number("t").map(Duration::from_secs));
        }
    }
    longest.map(|wait| wait.min(MAX_HINT))
}
