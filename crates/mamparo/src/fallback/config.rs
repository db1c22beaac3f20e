//! The settings of a fallback.

use http::{HeaderName, HeaderValue};
use mamparo_core::{InvalidSetting, Kind};

/// When an operation that failed gets another answer, and how that is marked.
///
/// ```
/// use mamparo::fallback::FallbackPolicy;
/// use mamparo_core::Kind;
///
/// let policy = FallbackPolicy::builder().on([Kind::Unavailable, Kind::Server]).build()?;
/// let error = FallbackPolicy::builder().on([Kind::Client]).build().unwrap_err();
/// assert_eq!(error.setting(), "on");
/// # let _ = policy;
/// # Ok::<(), mamparo_core::InvalidSetting>(())
/// ```
#[derive(Clone, Debug)]
pub struct FallbackPolicy {
    pub(super) settings: FallbackBuilder,
}

/// Settings of a [`FallbackPolicy`].
#[derive(Clone, Debug)]
pub struct FallbackBuilder {
    /// A bit for each kind of failure.
    pub(super) kinds: u16,
    pub(super) rejections: bool,
    pub(super) max_concurrent: Option<u32>,
    pub(super) header: Option<(HeaderName, HeaderValue)>,
    pub(super) max_body: usize,
}

impl FallbackPolicy {
    /// Starts from the defaults.
    #[must_use]
    pub fn builder() -> FallbackBuilder {
        FallbackBuilder {
            kinds: bits([Kind::Connect, Kind::Timeout, Kind::Unavailable]),
            rejections: true,
            max_concurrent: None,
            header: None,
            max_body: 64 << 10,
        }
    }
}

impl Default for FallbackPolicy {
    fn default() -> Self {
        Self {
            settings: Self::builder(),
        }
    }
}

impl FallbackBuilder {
    /// Sets the kinds of failure that are fallen back from: no connection, no answer in time, and unavailable by default.
    #[must_use]
    pub fn on(mut self, kinds: impl IntoIterator<Item = Kind>) -> Self {
        self.kinds = bits(kinds);
        self
    }

    /// Sets whether our own rejections are fallen back from, such as an open breaker's; true by default.
    ///
    /// Never from those for which the request is at fault: it costs more than a rate limit's burst, or its deadline can't be read.
    #[must_use]
    pub const fn rejections(mut self, fall_back: bool) -> Self {
        self.rejections = fall_back;
        self
    }

    /// Sets how many fallbacks may be under way at once; no such cap by default.
    ///
    /// When a dependency is down, all of its load goes to what stands in for it. One too many gets the operation's own
    /// failure.
    #[must_use]
    pub const fn max_concurrent(mut self, most: u32) -> Self {
        self.max_concurrent = Some(most);
        self
    }

    /// Marks a response that comes from the fallback with a header; without, it carries the extension only.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.header = Some((name, value));
        self
    }

    /// Sets how many bytes of a request's body are kept for a service that stands in, 64 KiB by default.
    ///
    /// A request with a larger one is not fallen back from; other fallbacks need no request.
    #[must_use]
    pub const fn max_body(mut self, bytes: usize) -> Self {
        self.max_body = bytes;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// Refuses to fall back from requests that are at fault themselves, from nothing at all, and with 0 at once.
    pub fn build(self) -> Result<FallbackPolicy, InvalidSetting> {
        if self.kinds & bits([Kind::Client]) != 0 {
            return Err(InvalidSetting::new(
                "on",
                Kind::Client.as_str(),
                "is the request's own fault, which a fallback would hide: the caller must hear of it",
            ));
        }
        if self.kinds == 0 && !self.rejections {
            return Err(InvalidSetting::new(
                "on",
                "nothing",
                "must name a failure to fall back from, or leave the layer out",
            ));
        }
        if self.max_concurrent == Some(0) {
            return Err(InvalidSetting::new(
                "max_concurrent",
                0,
                "must be at least 1: to fall back from nothing, leave the layer out",
            ));
        }
        Ok(FallbackPolicy { settings: self })
    }
}

/// The bit of each kind.
pub(super) fn bits(kinds: impl IntoIterator<Item = Kind>) -> u16 {
    kinds
        .into_iter()
        .fold(0, |bits, kind| bits | 1 << kind as u16)
}
