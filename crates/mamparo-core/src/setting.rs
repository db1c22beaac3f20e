//! The error of a setting that makes no sense.

use std::error::Error;
use std::fmt::{self, Display};

/// A setting that was refused when a policy was built: which one, its value, and what is allowed.
///
/// ```
/// use mamparo_core::InvalidSetting;
/// let error = InvalidSetting::new("max_attempts", 0, "must be at least 1: it counts the original");
/// assert_eq!(error.setting(), "max_attempts");
/// assert_eq!(
///     error.to_string(),
///     "max_attempts = 0 is refused: must be at least 1: it counts the original"
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidSetting {
    setting: &'static str,
    value: String,
    reason: &'static str,
}

impl InvalidSetting {
    /// Makes the error from the setting's name, the value that was given, and what is allowed.
    pub fn new(setting: &'static str, value: impl Display, reason: &'static str) -> Self {
        Self {
            setting,
            value: value.to_string(),
            reason,
        }
    }

    /// Returns the name of the setting that was refused.
    #[must_use]
    pub fn setting(&self) -> &'static str {
        self.setting
    }

    /// Returns what is allowed.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        self.reason
    }

    /// Returns the refused value, as text.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }
}

impl Display for InvalidSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            setting,
            value,
            reason,
        } = self;
        write!(f, "{setting} = {value} is refused: {reason}")
    }
}

impl Error for InvalidSetting {}
