//! What goes wrong between us and a backend.

use std::error::Error;
use std::fmt::{self, Display};

use mamparo_core::BoxError;

/// A boxed future: these traits are used as objects, and a call's I/O costs a thousand times what its box does.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A backend could not do what it was asked. Whether it did it all the same may be unknown: ask again.
///
/// ```
/// use mamparo_durable::backend::{BackendError, Trouble};
/// let error = BackendError::new(Trouble::Unavailable, "the database does not answer");
/// assert!(error.is_transient());
/// assert_eq!(error.to_string(), "the database does not answer");
/// ```
#[derive(Debug)]
pub struct BackendError {
    trouble: Trouble,
    message: String,
    source: Option<BoxError>,
}

/// What kind of trouble it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Trouble {
    /// It does not answer, is busy or was restarted. Asked again, it may.
    Unavailable,
    /// It has no room: the disk is full, or a quota is used up. Asked again, it may have.
    Full,
    /// What is stored is of another program or of a newer version of this one.
    Incompatible,
    /// What is stored can't be read.
    Corrupt,
    /// What was asked is beyond a bound.
    Refused,
}

impl BackendError {
    /// Makes an error that says what was refused and what to do: lower case, no full stop.
    pub fn new(trouble: Trouble, message: impl Into<String>) -> Self {
        Self {
            trouble,
            message: message.into(),
            source: None,
        }
    }

    /// Adds what it comes from.
    #[must_use]
    pub fn from_source(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Returns what kind of trouble it is.
    #[must_use]
    pub const fn trouble(&self) -> Trouble {
        self.trouble
    }

    /// Tells whether the same may succeed later.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(self.trouble, Trouble::Unavailable | Trouble::Full)
    }
}

impl Display for BackendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for BackendError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
