//! What a transport's error proves.

use std::error::Error;
use std::fmt::{self, Display};

use crate::grpc::Code;
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
    code: Code,
    source: BoxError,
}

impl TransportError {
    /// Says how a transport failed, and what must be true for the request to be sent again.
    pub fn new(kind: Kind, resend: Resend, source: impl Into<BoxError>) -> Self {
        Self {
            kind,
            resend,
            code: code(kind),
            source: source.into(),
        }
    }

    /// Says which status of gRPC it stands for, where the transport knows better than by its kind.
    #[must_use]
    pub const fn with_code(mut self, code: Code) -> Self {
        self.code = code;
        self
    }

    /// Returns the status of gRPC that it stands for.
    #[must_use]
    pub const fn code(&self) -> Code {
        self.code
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

const fn code(kind: Kind) -> Code {
    match kind {
        Kind::Connect | Kind::Reset | Kind::Unavailable => Code::Unavailable,
        Kind::Timeout => Code::DeadlineExceeded,
        Kind::Throttled => Code::ResourceExhausted,
        Kind::Server | Kind::Client => Code::Internal,
        Kind::Other => Code::Unknown,
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
