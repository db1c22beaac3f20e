//! What goes wrong between us and the broker.

use std::error::Error;
use std::fmt::{self, Display};
use std::time::Duration;

use lapin::ErrorKind;
use lapin::protocol::{AMQPErrorKind, AMQPHardError, AMQPSoftError};
use mamparo_core::BoxError;
use tokio::time::timeout;

/// The broker could not do what it was asked, or did not say that it has.
#[derive(Debug)]
pub struct RabbitError {
    trouble: Trouble,
    message: String,
    source: Option<BoxError>,
}

/// What kind of trouble it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Trouble {
    /// It does not answer, or has closed the connection. Asked again, it may.
    Unavailable,
    /// It has not confirmed a message in time; it may have it all the same.
    Unconfirmed,
    /// It does not let us in, or not do that.
    Refused,
    /// A queue or an exchange exists, but not as it is wanted.
    Mismatch,
    /// A message has no queue to go to.
    Unroutable,
    /// What it said can't be read.
    Unreadable,
}

impl Trouble {
    /// Returns the name that logs and spans have: lower case, stable.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unavailable => "unavailable",
            Self::Unconfirmed => "unconfirmed",
            Self::Refused => "refused",
            Self::Mismatch => "mismatch",
            Self::Unroutable => "unroutable",
            Self::Unreadable => "unreadable",
        }
    }
}

impl RabbitError {
    pub(crate) fn new(trouble: Trouble, message: impl Into<String>) -> Self {
        Self {
            trouble,
            message: message.into(),
            source: None,
        }
    }

    pub(crate) fn lost() -> Self {
        Self::new(Trouble::Unavailable, "the connection to RabbitMQ is lost")
    }

    pub(crate) const fn with_trouble(mut self, trouble: Trouble) -> Self {
        self.trouble = trouble;
        self
    }

    fn because(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Returns what kind of trouble it is.
    #[must_use]
    pub const fn trouble(&self) -> Trouble {
        self.trouble
    }

    /// Tells whether the same may succeed later, with nobody doing anything about it.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(
            self.trouble,
            Trouble::Unavailable | Trouble::Unconfirmed | Trouble::Unreadable
        )
    }
}

impl Display for RabbitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for RabbitError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// As long as the broker may take for one answer.
pub(crate) const ANSWER: Duration = Duration::from_secs(10);

/// Waits for one answer of the broker's, to what is done there, such as `declaring the queue shop`.
pub(crate) async fn answered<T>(
    doing: &str,
    answer: impl Future<Output = Result<T, lapin::Error>>,
) -> Result<T, RabbitError> {
    let Ok(answer) = timeout(ANSWER, answer).await else {
        let message = format!("{doing}: RabbitMQ does not answer within {ANSWER:?}");
        return Err(RabbitError::new(Trouble::Unavailable, message));
    };
    answer.map_err(|error| trouble(error, doing))
}

/// Says in one line what an error means for what was just done, such as `declaring the queue shop`.
pub(crate) fn trouble(error: lapin::Error, doing: &str) -> RabbitError {
    let (trouble, said) = match error.kind() {
        ErrorKind::ProtocolError(refusal) => {
            refused(refusal.kind(), refusal.get_message().as_str())
        }
        ErrorKind::ParsingError(_) => {
            (Trouble::Unreadable, "it sent what can't be read".to_owned())
        }
        ErrorKind::IOError(error) => (Trouble::Unavailable, error.to_string()),
        _ => (Trouble::Unavailable, error.to_string()),
    };
    RabbitError::new(trouble, format!("{doing}: {said}")).because(error)
}

fn refused(kind: &AMQPErrorKind, said: &str) -> (Trouble, String) {
    use AMQPErrorKind::{Hard, Soft};
    let trouble = match kind {
        Soft(AMQPSoftError::ACCESSREFUSED) | Hard(AMQPHardError::NOTALLOWED) => Trouble::Refused,
        Soft(AMQPSoftError::NOTFOUND) => Trouble::Unroutable,
        Soft(AMQPSoftError::PRECONDITIONFAILED) => Trouble::Mismatch,
        _ => Trouble::Unavailable,
    };
    (trouble, said.to_owned())
}
