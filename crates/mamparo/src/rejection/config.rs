//! How errors are answered.

use std::error::Error;

use http::{HeaderName, Response, StatusCode};
use mamparo_core::InvalidSetting;
use mamparo_core::http::EXHAUSTED_HEADER;

use super::answer::write;
use super::state::tell;

/// How errors are answered.
///
/// ```
/// use http::StatusCode;
/// use mamparo::rejection::RejectionPolicy;
///
/// let policy = RejectionPolicy::builder().timeout_status(StatusCode::REQUEST_TIMEOUT).build()?;
/// # let _ = policy;
/// let error = RejectionPolicy::builder().timeout_status(StatusCode::OK).build().unwrap_err();
/// assert_eq!(error.to_string(), "timeout_status = 200 OK is refused: must be a status of an error, 400 to 599");
/// # Ok::<(), mamparo_core::InvalidSetting>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectionPolicy {
    settings: RejectionBuilder,
}

/// Settings of a [`RejectionPolicy`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectionBuilder {
    timeout_status: StatusCode,
    exhausted: Option<HeaderName>,
}

impl RejectionPolicy {
    /// Starts from the defaults.
    #[must_use]
    pub const fn builder() -> RejectionBuilder {
        RejectionBuilder {
            timeout_status: StatusCode::GATEWAY_TIMEOUT,
            exhausted: Some(EXHAUSTED_HEADER),
        }
    }

    /// Answers one error as the layer would, for a handler that turns its errors into responses itself.
    ///
    /// The response is HTTP's; its body implements axum's and hyper's `Body`.
    ///
    /// ```
    /// use mamparo::rejection::RejectionPolicy;
    /// use mamparo_core::{BoxError, Dependency, Reason, Rejection};
    ///
    /// let error: BoxError = Rejection::cut(Reason::AttemptTimedOut, Dependency::named("psp")).into();
    /// let response = RejectionPolicy::default().answer(&*error);
    /// assert_eq!(response.status(), 504);
    /// assert!(!response.body().contains("psp"));
    /// ```
    #[must_use]
    pub fn answer(&self, error: &(dyn Error + 'static)) -> Response<String> {
        write(self, &tell(self, error))
    }

    pub(super) const fn timeout_status(&self) -> StatusCode {
        self.settings.timeout_status
    }

    pub(super) const fn exhausted(&self) -> Option<&HeaderName> {
        self.settings.exhausted.as_ref()
    }
}

impl Default for RejectionPolicy {
    fn default() -> Self {
        Self {
            settings: Self::builder(),
        }
    }
}

impl RejectionBuilder {
    /// Sets the status that says "not in time", 504 by default.
    ///
    /// 504 says that a service behind this one was slow, and is what clients retry by; 408, which some prefer, says
    /// that the request itself came too slowly.
    #[must_use]
    pub const fn timeout_status(mut self, status: StatusCode) -> Self {
        self.timeout_status = status;
        self
    }

    /// Names the header whose value `exhausted` says that all attempts are spent; none turns it off.
    ///
    /// By default `x-mamparo-retry`.
    #[must_use]
    pub fn exhausted_header(mut self, name: impl Into<Option<HeaderName>>) -> Self {
        self.exhausted = name.into();
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// Refuses a status that is no error's.
    pub fn build(self) -> Result<RejectionPolicy, InvalidSetting> {
        let status = self.timeout_status;
        if !status.is_client_error() && !status.is_server_error() {
            return Err(InvalidSetting::new(
                "timeout_status",
                status,
                "must be a status of an error, 400 to 599",
            ));
        }
        Ok(RejectionPolicy { settings: self })
    }
}
