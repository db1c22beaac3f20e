//! What we refused or cut ourselves.

use std::error::Error;
use std::fmt::{self, Display};
use std::time::Duration;

use http::{HeaderMap, StatusCode};

use crate::http::Quota;
#[cfg(feature = "tonic")]
use crate::status::LazyStatus;
use crate::{Dependency, chain};

/// A call that a layer refused to send, or cut before its answer was there.
///
/// Every layer's rejection is this one type, found in any error with [`Rejection::of`]. [`Rejection::sent`]
/// tells a cut from a refusal: whether the dependency may have seen the request.
///
/// ```
/// use mamparo_core::{BoxError, Dependency, Reason, Rejection};
/// use std::time::Duration;
///
/// let rejection = Rejection::cut(Reason::AttemptTimedOut, Dependency::named("catalog"))
///     .with_limit(Duration::from_millis(500));
/// let error: BoxError = rejection.into();
/// let found = Rejection::of(&*error).unwrap();
/// assert!(found.is_attempt_timeout() && found.sent());
/// assert_eq!(error.to_string(), "catalog: attempt timed out: no answer within 500ms");
/// ```
///
/// With feature `tonic` its `source()` is a `tonic::Status`, made when it is asked for: a client of tonic's gets the code
/// that [`Code::of_rejection`](crate::grpc::Code::of_rejection) says, and `grpc-retry-pushback-ms` where
/// [`retry_after`](Self::retry_after) is known.
#[derive(Clone)]
pub struct Rejection {
    reason: Reason,
    dependency: Dependency,
    sent: bool,
    limit: Option<Duration>,
    retry_after: Option<Duration>,
    more: Option<Box<More>>,
    #[cfg(feature = "tonic")]
    status: LazyStatus,
}

/// What few rejections have, kept apart so that the others stay small.
#[derive(Clone, Default)]
struct More {
    last_response: Option<ResponseHead>,
    quota: Option<Quota>,
}

/// Why a layer refused or cut a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The operation's deadline passed.
    DeadlineExceeded,
    /// One attempt took longer than its timeout.
    AttemptTimedOut,
    /// No connection was made within the connect timeout: the request was not sent.
    ConnectTimedOut,
    /// The response body made no progress within the idle timeout.
    BodyIdle,
    /// The caller's deadline could not be read, and the server is strict about it.
    MalformedDeadline,
    /// The circuit breaker is open, or half-open with all its probes out.
    BreakerOpen,
    /// The bulkhead is full, and so is its queue or the time for waiting in it.
    BulkheadFull,
    /// The rate limit is used up.
    RateLimited,
    /// The call costs more than the rate limit's whole burst: it would never pass.
    AboveBurst,
    /// The load is too high: what is refused now would only have waited.
    Overloaded,
}

impl Reason {
    /// Returns the name used in metrics and logs: lower case, stable.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DeadlineExceeded => "deadline_exceeded",
            Self::AttemptTimedOut => "attempt_timed_out",
            Self::ConnectTimedOut => "connect_timed_out",
            Self::BodyIdle => "body_idle",
            Self::MalformedDeadline => "malformed_deadline",
            Self::BreakerOpen => "breaker_open",
            Self::BulkheadFull => "bulkhead_full",
            Self::RateLimited => "rate_limited",
            Self::AboveBurst => "above_burst",
            Self::Overloaded => "overloaded",
        }
    }

    const fn says(self) -> &'static str {
        match self {
            Self::DeadlineExceeded => "deadline exceeded",
            Self::AttemptTimedOut => "attempt timed out",
            Self::ConnectTimedOut => "connect timed out",
            Self::BodyIdle => "response body stalled",
            Self::MalformedDeadline => "deadline header is malformed",
            Self::BreakerOpen => "circuit breaker is open",
            Self::BulkheadFull => "bulkhead is full",
            Self::RateLimited => "rate limit is used up",
            Self::AboveBurst => "costs more than the rate limit ever lets pass at once",
            Self::Overloaded => "overloaded",
        }
    }

    const fn limit_says(self) -> &'static str {
        match self {
            Self::ConnectTimedOut => "no connection within",
            Self::BodyIdle => "no frame within",
            Self::BulkheadFull => "no place within",
            _ => "no answer within",
        }
    }
}

/// Status and headers of a response whose body is gone.
///
/// Its `Debug` form names no header: errors are logged, and a header may hold a cookie or a token.
#[derive(Clone)]
#[non_exhaustive]
pub struct ResponseHead {
    /// The response's status.
    pub status: StatusCode,
    /// The response's headers.
    pub headers: HeaderMap,
}

impl ResponseHead {
    /// Keeps status and headers of a response.
    #[must_use]
    pub const fn new(status: StatusCode, headers: HeaderMap) -> Self {
        Self { status, headers }
    }
}

impl fmt::Debug for ResponseHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseHead")
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

impl Rejection {
    /// Says that the request was refused: the dependency has not seen it.
    #[must_use]
    pub const fn refused(reason: Reason, dependency: Dependency) -> Self {
        Self::new(reason, dependency, false)
    }

    /// Says that the call was cut: the dependency may have seen the request.
    #[must_use]
    pub const fn cut(reason: Reason, dependency: Dependency) -> Self {
        Self::new(reason, dependency, true)
    }

    const fn new(reason: Reason, dependency: Dependency, sent: bool) -> Self {
        Self {
            reason,
            dependency,
            sent,
            limit: None,
            retry_after: None,
            more: None,
            #[cfg(feature = "tonic")]
            status: LazyStatus::new(),
        }
    }

    /// Adds the limit that was reached.
    #[must_use]
    pub const fn with_limit(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Adds how long the caller should wait before it tries again.
    #[must_use]
    pub const fn with_retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// Adds the head of the last real response, given up for a resend that was then refused.
    #[must_use]
    pub fn with_last_response(mut self, head: ResponseHead) -> Self {
        self.more.get_or_insert_default().last_response = Some(head);
        self
    }

    /// Adds what a server says of the limit that refused its caller.
    #[must_use]
    pub fn with_quota(mut self, quota: Quota) -> Self {
        self.more.get_or_insert_default().quota = Some(quota);
        self
    }

    /// Finds a rejection in an error or its causes.
    #[must_use]
    pub fn of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        chain::find(error)
    }

    /// Returns why the call was refused or cut.
    #[must_use]
    pub const fn reason(&self) -> Reason {
        self.reason
    }

    /// Returns the dependency that was to be called.
    #[must_use]
    pub const fn dependency(&self) -> Dependency {
        self.dependency
    }

    /// Tells whether the dependency may have seen the request.
    #[must_use]
    pub const fn sent(&self) -> bool {
        self.sent
    }

    /// Returns how long the caller should wait before it tries again.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Returns status and headers of the last real response, if there was one.
    #[must_use]
    pub fn last_response(&self) -> Option<&ResponseHead> {
        self.more.as_deref()?.last_response.as_ref()
    }

    /// Returns what is left of the limit that refused the call, where a server says so to its caller.
    #[must_use]
    pub fn quota(&self) -> Option<&Quota> {
        self.more.as_deref()?.quota.as_ref()
    }

    /// Tells whether the operation's deadline passed.
    #[must_use]
    pub const fn is_deadline_exceeded(&self) -> bool {
        matches!(self.reason, Reason::DeadlineExceeded)
    }

    /// Tells whether one attempt took longer than its timeout.
    #[must_use]
    pub const fn is_attempt_timeout(&self) -> bool {
        matches!(self.reason, Reason::AttemptTimedOut)
    }

    /// Tells whether a circuit breaker refused the call.
    #[must_use]
    pub const fn is_breaker_open(&self) -> bool {
        matches!(self.reason, Reason::BreakerOpen)
    }

    /// Tells whether a bulkhead had no place for the call.
    #[must_use]
    pub const fn is_bulkhead_full(&self) -> bool {
        matches!(self.reason, Reason::BulkheadFull)
    }

    /// Tells whether a rate limit was used up.
    #[must_use]
    pub const fn is_rate_limited(&self) -> bool {
        matches!(self.reason, Reason::RateLimited)
    }

    /// Tells whether the call was shed because the load is too high.
    #[must_use]
    pub const fn is_overloaded(&self) -> bool {
        matches!(self.reason, Reason::Overloaded)
    }

    /// Tells whether no connection was made in time.
    #[must_use]
    pub const fn is_connect_timeout(&self) -> bool {
        matches!(self.reason, Reason::ConnectTimedOut)
    }
}

impl Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without a name, as on a server, there is nobody to blame.
        if self.dependency != Dependency::UNNAMED {
            write!(f, "{}: ", self.dependency)?;
        }
        f.write_str(self.reason.says())?;
        if let Some(limit) = self.limit {
            write!(f, ": {} {limit:?}", self.reason.limit_says())?;
        } else if !self.sent {
            f.write_str(": not sent")?;
        }
        if let Some(head) = self.last_response() {
            write!(f, " (the last answer was {})", head.status)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rejection")
            .field("reason", &self.reason)
            .field("dependency", &self.dependency.as_str())
            .field("sent", &self.sent)
            .finish_non_exhaustive()
    }
}

impl Error for Rejection {
    /// With feature `tonic`, the status that it is to gRPC: tonic makes one of the first that it finds in an error.
    #[cfg(feature = "tonic")]
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(self.status.of(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BoxError, Ending, RetryError};
    use std::io;

    fn rejection() -> Rejection {
        Rejection::refused(Reason::DeadlineExceeded, "catalog".into())
    }

    #[test]
    fn a_rejection_is_found_inside_an_io_error() {
        let wrapped: BoxError = io::Error::other(io::Error::other(rejection())).into();
        assert!(Rejection::of(&*wrapped).is_some_and(Rejection::is_deadline_exceeded));
    }

    #[test]
    fn a_refusal_says_that_nothing_was_sent_and_what_the_last_answer_was() {
        let head = ResponseHead::new(StatusCode::SERVICE_UNAVAILABLE, HeaderMap::new());
        let text = rejection().with_last_response(head).to_string();
        assert_eq!(
            text,
            "catalog: deadline exceeded: not sent (the last answer was 503 Service Unavailable)"
        );
    }

    #[test]
    fn a_headers_value_is_in_no_text_of_an_error() {
        let mut headers = HeaderMap::new();
        headers.insert("set-cookie", "session=secret".parse().unwrap());
        let head = ResponseHead::new(StatusCode::SERVICE_UNAVAILABLE, headers);
        let ending = Ending::new(2, None, false);
        let retry = RetryError::new(
            "d".into(),
            ending,
            Some(Box::new(head.clone())),
            "no".into(),
        );
        let refused = rejection().with_last_response(head);
        let texts = format!("{retry} {retry:?} {refused} {refused:?}");
        assert!(
            texts.contains("503") && !texts.contains("secret"),
            "{texts}"
        );
    }

    #[test]
    fn a_chain_that_turns_in_a_circle_ends() {
        #[derive(Debug)]
        struct Circle;
        impl Display for Circle {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("circle")
            }
        }
        impl Error for Circle {
            fn source(&self) -> Option<&(dyn Error + 'static)> {
                Some(self)
            }
        }
        assert!(Rejection::of(&Circle).is_none());
    }
}
