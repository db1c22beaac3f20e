//! How errors are answered.

use std::error::Error;

use http::{HeaderName, Response, StatusCode};
use mamparo_core::InvalidSetting;
use mamparo_core::http::EXHAUSTED_HEADER;

use super::answer::write;
use crate::problem::{RETRY_AFTER_JITTER, tell};

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
#[derive(Clone, Debug, PartialEq)]
pub struct RejectionPolicy {
    settings: RejectionBuilder,
}

/// Settings of a [`RejectionPolicy`].
#[derive(Clone, Debug, PartialEq)]
pub struct RejectionBuilder {
    timeout_status: StatusCode,
    exhausted: Option<HeaderName>,
    jitter: f64,
    names_dependencies: bool,
}

impl RejectionPolicy {
    /// Starts from the defaults.
    #[must_use]
    pub const fn builder() -> RejectionBuilder {
        RejectionBuilder {
            timeout_status: StatusCode::GATEWAY_TIMEOUT,
            exhausted: Some(EXHAUSTED_HEADER),
            jitter: RETRY_AFTER_JITTER,
            names_dependencies: true,
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
    /// assert_eq!(response.status(), 503);
    /// assert!(response.body().contains(r#""dependency":"psp""#));
    /// ```
    #[must_use]
    pub fn answer(&self, error: &(dyn Error + 'static)) -> Response<String> {
        write(self, &tell(error, self.timeout_status()))
    }

    pub(super) const fn timeout_status(&self) -> StatusCode {
        self.settings.timeout_status
    }

    pub(super) const fn jitter(&self) -> f64 {
        self.settings.jitter
    }

    pub(super) const fn names_dependencies(&self) -> bool {
        self.settings.names_dependencies
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
    /// Sets the status that says that this server's own deadline has passed, 504 by default.
    ///
    /// 504 is what clients retry by; 408, which some prefer, says that the request itself came too slowly.
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

    /// Sets by which share of it a wait is lengthened at most that a caller is told, 0.5 by default; 0 tells it as it is.
    ///
    /// `Retry-After` has whole seconds, so that what is told is one second longer at least for some; gRPC's pushback has
    /// milliseconds. It is never shortened.
    #[must_use]
    pub const fn retry_after_jitter(mut self, share: f64) -> Self {
        self.jitter = share;
        self
    }

    /// Tells callers nothing of the names of dependencies.
    ///
    /// What a handler makes of an error itself, see [`Problem`](crate::problem::Problem), is not changed by it.
    #[must_use]
    pub const fn hide_dependencies(mut self) -> Self {
        self.names_dependencies = false;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// Refuses a status that is no error's, and a share that is not from 0 to 10.
    pub fn build(self) -> Result<RejectionPolicy, InvalidSetting> {
        let status = self.timeout_status;
        if !status.is_client_error() && !status.is_server_error() {
            return Err(InvalidSetting::new(
                "timeout_status",
                status,
                "must be a status of an error, 400 to 599",
            ));
        }
        if !(0.0..=10.0).contains(&self.jitter) {
            let reason = "must be from 0 to 10";
            return Err(InvalidSetting::new(
                "retry_after_jitter",
                self.jitter,
                reason,
            ));
        }
        Ok(RejectionPolicy { settings: self })
    }
}
