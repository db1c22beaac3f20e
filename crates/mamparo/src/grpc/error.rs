//! The error of a service config that can't be obeyed.

use std::error::Error;
use std::fmt::{self, Display};

use mamparo_core::InvalidSetting;

/// As much of a refused value as an error shows, in characters.
const MAX_SHOWN: usize = 80;

/// A service config in JSON that was refused: where, what stands there, and what is allowed.
///
/// ```
/// use mamparo::grpc::ServiceConfig;
///
/// let json = r#"{"retryThrottling": {"maxTokens": 10, "tokenRatio": -1}}"#;
/// let error = ServiceConfig::from_json(json).unwrap_err();
/// assert_eq!(error.path(), "retryThrottling.tokenRatio");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceConfigError {
    path: String,
    value: String,
    reason: String,
}

impl ServiceConfigError {
    pub(super) fn new(path: &str, value: impl Display, reason: impl Into<String>) -> Self {
        let value = value.to_string();
        let end = value.char_indices().nth(MAX_SHOWN);
        let value = match end {
            Some((end, _)) => format!("{}…", &value[..end]),
            None => value,
        };
        Self {
            path: path.to_owned(),
            value,
            reason: reason.into(),
        }
    }

    /// The refusal of a setting of the object at that place.
    pub(super) fn inside(path: &str, refused: &InvalidSetting) -> Self {
        let place = join(path, refused.setting());
        Self::new(&place, refused.value(), refused.reason())
    }

    /// Returns the place in the document: `methodConfig[0].retryPolicy.maxAttempts`; empty for the document itself.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns what stands there, shortened.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Returns what is allowed.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

/// The place of a field inside the object at that place.
pub(super) fn join(path: &str, field: &str) -> String {
    if path.is_empty() {
        field.to_owned()
    } else {
        format!("{path}.{field}")
    }
}

impl Display for ServiceConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            path,
            value,
            reason,
        } = self;
        if path.is_empty() {
            return write!(f, "the service config is refused: {reason}");
        }
        write!(
            f,
            "{path} = {value} in the service config is refused: {reason}"
        )
    }
}

impl Error for ServiceConfigError {}
