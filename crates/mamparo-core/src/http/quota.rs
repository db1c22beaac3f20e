//! What a server says of its own rate limit.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use sfv::{KeyRef, ListSerializer, StringRef};

use crate::InvalidSetting;

/// The longest name of a limit, in bytes.
pub const MAX_QUOTA_NAME_LEN: usize = 64;

const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const LEGACY_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const LEGACY_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const LEGACY_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// A limit, as the fields `RateLimit-Policy` and `RateLimit` describe it (draft-ietf-httpapi-ratelimit-headers-10 §3, §4).
///
/// Made once, when a limit is built. [`at`](Self::at) says what is left of it.
///
/// ```
/// use http::HeaderMap;
/// use mamparo_core::http::QuotaPolicy;
/// use std::time::Duration;
///
/// let policy = QuotaPolicy::new("burst", 100, Duration::from_secs(60))?;
/// let mut headers = HeaderMap::new();
/// policy.at(42, Some(Duration::from_millis(600))).write(&mut headers);
/// assert_eq!(headers["ratelimit-policy"], r#""burst";q=100;w=60"#);
/// assert_eq!(headers["ratelimit"], r#""burst";r=42;t=1"#);
/// # Ok::<(), mamparo_core::InvalidSetting>(())
/// ```
#[derive(Clone, Debug)]
pub struct QuotaPolicy {
    told: Arc<Told>,
}

#[derive(Clone, Debug)]
struct Told {
    name: sfv::String,
    quota: u64,
    policy: HeaderValue,
    is_drafts: bool,
    is_legacy: bool,
}

/// A limit, and what is left of it.
#[derive(Clone, Debug)]
pub struct Quota {
    told: Arc<Told>,
    remaining: u64,
    /// In whole seconds, until there is more; none where there can't be.
    reset: Option<u64>,
}

impl QuotaPolicy {
    /// Describes a limit of so much in each window.
    ///
    /// The field counts whole seconds: a shorter or broken window is told as the least that is as long, with as much more.
    ///
    /// # Errors
    ///
    /// Refuses a name that is empty, longer than [`MAX_QUOTA_NAME_LEN`], or has other characters than ASCII's letters, digits,
    /// `-`, `_` and `.`, since it also stands in the body of a refusal.
    pub fn new(name: &str, quota: u64, window: Duration) -> Result<Self, InvalidSetting> {
        let refused = || {
            let reason = "must be 1 to 64 of ASCII's letters, digits, '-', '_' and '.'";
            InvalidSetting::new("name", name, reason)
        };
        let plain = |c: u8| c.is_ascii_alphanumeric() || b"-_.".contains(&c);
        if name.is_empty() || name.len() > MAX_QUOTA_NAME_LEN || !name.bytes().all(plain) {
            return Err(refused());
        }
        let name = sfv::String::from_string(name.to_owned()).map_err(|_| refused())?;
        let seconds = whole_seconds(window).max(1);
        let share = seconds as f64 / window.as_secs_f64().max(f64::MIN_POSITIVE);
        // Rounded down: no more is promised than passes.
        let quota = (quota as f64 * share) as u64;
        let policy = field(&name, [("q", quota), ("w", seconds)]);
        Ok(Self {
            told: Arc::new(Told {
                name,
                quota,
                policy: policy.ok_or_else(refused)?,
                is_drafts: true,
                is_legacy: false,
            }),
        })
    }

    /// Writes `X-RateLimit-Limit`, `-Remaining` and `-Reset` besides, the last in seconds from now.
    ///
    /// Other servers mean other things by these names: an instant, milliseconds. They are for clients that know no better.
    #[must_use]
    pub fn with_legacy(mut self) -> Self {
        Arc::make_mut(&mut self.told).is_legacy = true;
        self
    }

    /// Writes `X-RateLimit-Limit` and so on, see [`Self::with_legacy`], and not the draft's fields.
    #[must_use]
    pub fn legacy_only(self) -> Self {
        let mut legacy = self.with_legacy();
        Arc::make_mut(&mut legacy.told).is_drafts = false;
        legacy
    }

    /// Returns the limit's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.told.name.as_str()
    }

    /// Says what is left of the limit, and when there is more.
    #[must_use]
    pub fn at(&self, remaining: u64, more_in: Option<Duration>) -> Quota {
        Quota {
            told: Arc::clone(&self.told),
            remaining,
            reset: more_in.map(whole_seconds),
        }
    }
}

impl Quota {
    /// Returns the limit's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.told.name.as_str()
    }

    /// Returns what is left.
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        self.remaining
    }

    /// Adds the fields to an answer's headers; where several limits hold, each adds its own item.
    ///
    /// A full header map goes without. Of the legacy names, which have no place for several, the limit of which least is left
    /// keeps its own.
    pub fn write(&self, headers: &mut HeaderMap) {
        if self.told.is_drafts {
            // A header map is full at 32 768 fields.
            let _full = headers.try_append(RATE_LIMIT_POLICY, self.told.policy.clone());
            let reset = self.reset.map(|seconds| ("t", seconds));
            let items = [("r", self.remaining)].into_iter().chain(reset);
            if let Some(value) = field(&self.told.name, items) {
                let _full = headers.try_append(RATE_LIMIT, value);
            }
        }
        if self.told.is_legacy && !has_less(headers, self.remaining) {
            let fields = [
                (LEGACY_LIMIT, self.told.quota),
                (LEGACY_REMAINING, self.remaining),
                (LEGACY_RESET, self.reset.unwrap_or(0)),
            ];
            for (name, value) in fields {
                let _full = headers.try_insert(name, value.into());
            }
        }
    }
}

fn has_less(headers: &HeaderMap, remaining: u64) -> bool {
    let there = headers.get(LEGACY_REMAINING).map(|value| value.to_str());
    let there = there.and_then(|text| text.ok()?.parse::<u64>().ok());
    there.is_some_and(|there| there < remaining)
}

/// One item of a list (RFC 9651 §3.1): the name, and its parameters.
fn field(
    name: &StringRef,
    parameters: impl IntoIterator<Item = (&'static str, u64)>,
) -> Option<HeaderValue> {
    let mut list = ListSerializer::new();
    let mut item = list.bare_item(name);
    for (key, value) in parameters {
        // As much as an integer of structured fields can be.
        let value = value.min(999_999_999_999_999);
        let value = sfv::Integer::try_from(value).ok()?;
        item = item.parameter(KeyRef::from_str(key).ok()?, value);
    }
    let _buffer = item.finish();
    HeaderValue::try_from(list.finish()?).ok()
}

/// Rounded up: whoever is told to wait must not come early.
fn whole_seconds(wait: Duration) -> u64 {
    let begun = u64::from(wait.subsec_nanos() > 0);
    wait.as_secs().saturating_add(begun)
}
