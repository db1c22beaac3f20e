//! The settings of a server's deadline.

use std::time::Duration;

use mamparo_core::InvalidSetting;

/// The longest that a request may take, by default.
const MAXIMUM: Duration = Duration::from_secs(60);

/// How long a server works on a request, whatever its caller asks for.
///
/// ```
/// use mamparo::server_deadline::ServerDeadlinePolicy;
/// use std::time::Duration;
///
/// let policy = ServerDeadlinePolicy::builder()
///     .maximum(Duration::from_secs(30))
///     .default_limit(Duration::from_secs(5))
///     .build()?;
/// assert_eq!(policy.default_limit(), Duration::from_secs(5));
/// assert_eq!(ServerDeadlinePolicy::default().maximum(), Duration::from_secs(60));
/// # Ok::<(), mamparo_core::InvalidSetting>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerDeadlinePolicy {
    settings: ServerDeadlineBuilder,
}

/// Settings of a [`ServerDeadlinePolicy`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerDeadlineBuilder {
    maximum: Duration,
    default_limit: Option<Duration>,
    refuses_malformed: bool,
    keeps_headers: bool,
}

impl ServerDeadlinePolicy {
    /// Starts from the defaults.
    #[must_use]
    pub const fn builder() -> ServerDeadlineBuilder {
        ServerDeadlineBuilder {
            maximum: MAXIMUM,
            default_limit: None,
            refuses_malformed: false,
            keeps_headers: false,
        }
    }

    /// Returns the longest that any request may take.
    #[must_use]
    pub const fn maximum(self) -> Duration {
        self.settings.maximum
    }

    /// Returns how long a request may take whose caller sets no deadline.
    #[must_use]
    pub fn default_limit(self) -> Duration {
        self.settings.default_limit.unwrap_or(self.maximum())
    }

    /// Tells whether a request with a malformed deadline is refused.
    #[must_use]
    pub const fn refuses_malformed(self) -> bool {
        self.settings.refuses_malformed
    }

    /// Tells whether the handler sees the deadline headers.
    #[must_use]
    pub const fn keeps_headers(self) -> bool {
        self.settings.keeps_headers
    }
}

impl Default for ServerDeadlinePolicy {
    fn default() -> Self {
        Self {
            settings: Self::builder(),
        }
    }
}

impl ServerDeadlineBuilder {
    /// Sets the longest that any request may take, 60 s by default.
    ///
    /// What a caller asks for beyond it is clamped, since a caller costs the server nothing by asking.
    #[must_use]
    pub const fn maximum(mut self, maximum: Duration) -> Self {
        self.maximum = maximum;
        self
    }

    /// Sets how long a request may take whose caller sets no deadline, by default as long as the maximum.
    #[must_use]
    pub const fn default_limit(mut self, limit: Duration) -> Self {
        self.default_limit = Some(limit);
        self
    }

    /// Refuses a request with a malformed deadline, instead of giving it what its other headers or the default say.
    #[must_use]
    pub const fn refuse_malformed(mut self) -> Self {
        self.refuses_malformed = true;
        self
    }

    /// Leaves the deadline headers on the request; a handler that hands them on then sends a stale value.
    #[must_use]
    pub const fn keep_headers(mut self) -> Self {
        self.keeps_headers = true;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// Refuses zero, and a default limit beyond the maximum.
    pub fn build(self) -> Result<ServerDeadlinePolicy, InvalidSetting> {
        let zero = "must be longer than zero: nothing could be done in it";
        if self.maximum.is_zero() {
            return Err(InvalidSetting::new("maximum", "0s", zero));
        }
        match self.default_limit {
            Some(Duration::ZERO) => Err(InvalidSetting::new("default_limit", "0s", zero)),
            Some(limit) if limit > self.maximum => Err(InvalidSetting::new(
                "default_limit",
                format_args!("{limit:?}"),
                "must not be longer than the maximum: raise that first",
            )),
            _ => Ok(ServerDeadlinePolicy { settings: self }),
        }
    }
}
