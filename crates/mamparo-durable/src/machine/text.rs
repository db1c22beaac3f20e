//! Bounded names and words.

use std::fmt::{self, Display};
use std::sync::Arc;

use mamparo_core::InvalidSetting;

use crate::limits::{MAX_ID_BYTES, MAX_LABEL_BYTES};

/// A transaction's id, chosen by the caller: 1 to [`MAX_ID_BYTES`] bytes without control characters.
///
/// ```
/// use mamparo_durable::machine::TransactionId;
/// assert_eq!(TransactionId::new("payment-1")?.as_str(), "payment-1");
/// assert!(TransactionId::new("").is_err());
/// # Ok::<(), mamparo_core::InvalidSetting>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransactionId(Arc<str>);

impl TransactionId {
    /// Checks an id.
    ///
    /// # Errors
    ///
    /// [`InvalidSetting`] when it is empty, longer than [`MAX_ID_BYTES`] or has a control character.
    pub fn new(id: impl AsRef<str>) -> Result<Self, InvalidSetting> {
        let id = id.as_ref();
        let refuse = |value, reason| Err(InvalidSetting::new("transaction_id", value, reason));
        if id.is_empty() {
            return refuse("\"\"".to_owned(), "must not be empty");
        }
        if id.len() > MAX_ID_BYTES {
            return refuse(format!("{} bytes", id.len()), "must have at most 256 bytes");
        }
        if id.chars().any(char::is_control) {
            return refuse(format!("{id:?}"), "must have no control characters");
        }
        Ok(Self(id.into()))
    }

    /// Returns it as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Display for TransactionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A few words kept with a transaction: its kind, a customer, why it was refused. Cut at [`MAX_LABEL_BYTES`]; a NUL is
/// a space.
///
/// ```
/// use mamparo_durable::machine::Label;
/// let long = "x".repeat(10_000);
/// assert_eq!(Label::from(long.as_str()).as_str().len(), mamparo_durable::limits::MAX_LABEL_BYTES);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(Arc<str>);

impl Label {
    /// Returns it as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Label {
    fn from(text: &str) -> Self {
        let cut = &text[..text.floor_char_boundary(MAX_LABEL_BYTES)];
        // PostgreSQL's text holds every character but this one.
        if cut.contains('\0') {
            Self(cut.replace('\0', " ").into())
        } else {
            Self(cut.into())
        }
    }
}

impl From<String> for Label {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
