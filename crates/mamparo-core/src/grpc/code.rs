//! The status codes.

use std::fmt::{self, Display};

use http::{HeaderMap, HeaderValue, StatusCode};

use super::{GRPC_STATUS, field};
use crate::{BoxError, Kind, Reason, Rejection, TransportError};

/// A status code of gRPC.
///
/// ```
/// use http::HeaderValue;
/// use mamparo_core::grpc::Code;
///
/// assert_eq!(Code::from_value(&HeaderValue::from_static("14")), Code::Unavailable);
/// assert_eq!(Code::from_value(&HeaderValue::from_static("014")), Code::Unknown);
/// assert_eq!(Code::Unavailable.as_str(), "UNAVAILABLE");
/// assert_eq!(Code::named("unavailable"), Some(Code::Unavailable));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[expect(
    clippy::exhaustive_enums,
    reason = "the protocol has these, and reads any other as UNKNOWN"
)]
pub enum Code {
    /// It was done.
    Ok = 0,
    /// It was cancelled, as a rule by the caller.
    Cancelled = 1,
    /// It failed, and no more is known.
    Unknown = 2,
    /// The request makes no sense, whatever the state of the system.
    InvalidArgument = 3,
    /// It was not done in time; it may have been done all the same.
    DeadlineExceeded = 4,
    /// What was asked for is not there.
    NotFound = 5,
    /// What was to be made is there.
    AlreadyExists = 6,
    /// The caller may not do this.
    PermissionDenied = 7,
    /// A quota or a capacity is used up.
    ResourceExhausted = 8,
    /// The system is not in the state that this needs.
    FailedPrecondition = 9,
    /// Something concurrent got in the way.
    Aborted = 10,
    /// Past the end of what there is.
    OutOfRange = 11,
    /// The server doesn't know this method.
    Unimplemented = 12,
    /// An invariant of the server is broken.
    Internal = 13,
    /// The service can't be reached now.
    Unavailable = 14,
    /// Data was lost, or is corrupt.
    DataLoss = 15,
    /// The caller didn't say who it is.
    Unauthenticated = 16,
}

impl Code {
    /// All codes, by number.
    pub const ALL: [Self; 17] = [
        Self::Ok,
        Self::Cancelled,
        Self::Unknown,
        Self::InvalidArgument,
        Self::DeadlineExceeded,
        Self::NotFound,
        Self::AlreadyExists,
        Self::PermissionDenied,
        Self::ResourceExhausted,
        Self::FailedPrecondition,
        Self::Aborted,
        Self::OutOfRange,
        Self::Unimplemented,
        Self::Internal,
        Self::Unavailable,
        Self::DataLoss,
        Self::Unauthenticated,
    ];

    /// Returns the code's number.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Returns the code of a number; any that the protocol doesn't have is [`Code::Unknown`].
    #[must_use]
    pub fn from_number(number: i32) -> Self {
        let number = usize::try_from(number).ok();
        let code = number.and_then(|number| Self::ALL.get(number));
        code.copied().unwrap_or(Self::Unknown)
    }

    /// Returns the code's name, as gRPC and OpenTelemetry write it: `DEADLINE_EXCEEDED`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Cancelled => "CANCELLED",
            Self::Unknown => "UNKNOWN",
            Self::InvalidArgument => "INVALID_ARGUMENT",
            Self::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Self::NotFound => "NOT_FOUND",
            Self::AlreadyExists => "ALREADY_EXISTS",
            Self::PermissionDenied => "PERMISSION_DENIED",
            Self::ResourceExhausted => "RESOURCE_EXHAUSTED",
            Self::FailedPrecondition => "FAILED_PRECONDITION",
            Self::Aborted => "ABORTED",
            Self::OutOfRange => "OUT_OF_RANGE",
            Self::Unimplemented => "UNIMPLEMENTED",
            Self::Internal => "INTERNAL",
            Self::Unavailable => "UNAVAILABLE",
            Self::DataLoss => "DATA_LOSS",
            Self::Unauthenticated => "UNAUTHENTICATED",
        }
    }

    /// Returns the code of a name, in any case.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let all = Self::ALL.into_iter();
        all.into_iter()
            .find(|code| code.as_str().eq_ignore_ascii_case(name))
    }

    /// Reads a `grpc-status`: decimal, without a sign or leading zeros. What can't be read is [`Code::Unknown`].
    #[must_use]
    pub fn from_value(value: &HeaderValue) -> Self {
        let digit = |byte: u8| i32::from(byte) - i32::from(b'0');
        match *value.as_bytes() {
            [one @ b'0'..=b'9'] => Self::from_number(digit(one)),
            [ten @ b'1'..=b'9', one @ b'0'..=b'9'] => {
                Self::from_number(10 * digit(ten) + digit(one))
            }
            _ => Self::Unknown,
        }
    }

    /// Reads the status that headers or trailers carry, if they carry one.
    #[must_use]
    pub fn of_headers(headers: &HeaderMap) -> Option<Self> {
        field(headers, &GRPC_STATUS).map(Self::from_value)
    }

    /// Returns what an HTTP status stands for in an answer that carries no `grpc-status`, as a proxy's does.
    #[must_use]
    pub const fn from_http(status: StatusCode) -> Self {
        match status.as_u16() {
            400 | 431 => Self::Internal,
            401 => Self::Unauthenticated,
            403 => Self::PermissionDenied,
            404 => Self::Unimplemented,
            429 | 502 | 503 | 504 => Self::Unavailable,
            _ => Self::Unknown,
        }
    }

    /// Returns the code that an error stands for: what we refused or cut, then what a transport proves, then
    /// tonic's own status, with the feature `tonic`.
    #[must_use]
    pub fn of_error(error: &BoxError) -> Self {
        if let Some(rejection) = Rejection::of(&**error) {
            return Self::of_rejection(rejection);
        }
        if let Some(error) = TransportError::of(&**error) {
            return error.code();
        }
        #[cfg(feature = "tonic")]
        if let Some(status) = crate::chain::find::<tonic::Status>(&**error) {
            return Self::from_number(status.code().into());
        }
        Self::Unknown
    }

    /// Returns the code that says what was refused or cut.
    ///
    /// gRPC keeps `INVALID_ARGUMENT` and its like to applications: no library may send them.
    #[must_use]
    pub const fn of_rejection(rejection: &Rejection) -> Self {
        match rejection.reason() {
            Reason::DeadlineExceeded | Reason::AttemptTimedOut | Reason::BodyIdle => {
                Self::DeadlineExceeded
            }
            Reason::MalformedDeadline => Self::Internal,
            Reason::BulkheadFull | Reason::RateLimited | Reason::AboveBurst => {
                Self::ResourceExhausted
            }
            // Never sent, and another instance may have room: what gRPC's clients send again.
            Reason::ConnectTimedOut | Reason::BreakerOpen | Reason::Overloaded => Self::Unavailable,
        }
    }

    /// Returns how an attempt with this status failed; none if it did not.
    ///
    /// `CANCELLED` by a server is its failure: what its caller cancels, the caller does not hear of.
    #[must_use]
    pub const fn kind(self) -> Option<Kind> {
        Some(match self {
            Self::Ok => return None,
            Self::Cancelled => Kind::Other,
            Self::Unknown | Self::Internal | Self::DataLoss => Kind::Server,
            Self::DeadlineExceeded => Kind::Timeout,
            Self::ResourceExhausted => Kind::Throttled,
            Self::Unavailable => Kind::Unavailable,
            Self::InvalidArgument
            | Self::NotFound
            | Self::AlreadyExists
            | Self::PermissionDenied
            | Self::FailedPrecondition
            | Self::Aborted
            | Self::OutOfRange
            | Self::Unimplemented
            | Self::Unauthenticated => Kind::Client,
        })
    }
}

impl Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
