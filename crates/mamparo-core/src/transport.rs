//! What a transport's error proves.

use std::error::Error;
use std::fmt::{self, Display};

use crate::{BoxError, Kind, Resend, Verdict, chain};

/// A transport's error, together with what it proves about the request.
///
/// Only the adapter of a client knows whether its error means "never sent" or "nobody knows": it says so
/// here, and every classifier believes it.
///
/// ```
/// use mamparo_core::{BoxError, Kind, Resend, TransportError};
///
/// let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
/// let error: BoxError = TransportError::new(Kind::Connect, Resend::Always, refused).into();
/// assert_eq!(TransportError::of(&*error).unwrap().verdict().kind(), Some(Kind::Connect));
/// assert_eq!(error.to_string(), "could not connect");
/// ```
#[derive(Debug)]
pub struct TransportError {
    kind: Kind,
    resend: Resend,
    source: BoxError,
}

impl TransportError {
    /// Says how a transport failed, and what must be true for the request to be sent again.
    pub fn new(kind: Kind, resend: Resend, source: impl Into<BoxError>) -> Self {
        Self {
            kind,
            resend,
            source: source.into(),
        }
    }

    /// Finds a transport's error in an error or its causes.
    #[must_use]
    pub fn of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        chain::find(error)
    }

    /// Returns the verdict that the error proves.
    pub const fn verdict(&self) -> Verdict {
        Verdict::failure(self.kind, self.resend)
    }
}

impl Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            Kind::Connect => "could not connect",
            Kind::Reset => "connection broke before the answer was complete",
            Kind::Timeout => "no answer in time",
            Kind::Throttled | Kind::Unavailable => "refused by the peer before processing",
            Kind::Client => "request could not be sent as it is",
            Kind::Server | Kind::Other => "transport failed",
        })
    }
}

impl Error for TransportError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}
