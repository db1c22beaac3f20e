//! A problem: what the caller is told, and what only the log is.

use std::borrow::Cow;
use std::error::Error;
use std::fmt::{self, Display};
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use mamparo_core::grpc::{Code, Pushback};
use mamparo_core::http::Quota;
use mamparo_core::{BoxError, Dependency};

use super::{Member, ProblemType};

/// What a caller of HTTP's is told to wait who may find next time what it did not, where nobody knows when.
const GUESS: Duration = Duration::from_secs(1);

/// As many members as a problem keeps besides those of RFC 9457; more are dropped.
pub const MAX_MEMBERS: usize = 16;

/// Says what went wrong with a request; see the [module](super).
///
/// Its texts are told to the caller: put nothing of the inside into them. What is for the log goes into
/// [`because`](Self::because).
#[derive(Clone)]
pub struct Problem {
    inner: Box<Inner>,
}

#[derive(Clone)]
struct Inner {
    /// None: `about:blank`.
    kind: Option<ProblemType>,
    status: StatusCode,
    code: Code,
    detail: Cow<'static, str>,
    members: Vec<(&'static str, Member)>,
    dependency: Dependency,
    wait: Wait,
    exhausted: bool,
    quota: Option<Quota>,
    cause: Option<Arc<BoxError>>,
}

/// What the caller is told of coming back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    Unsaid,
    /// A later request may find what this one did not; nobody knows when.
    Guess,
    After(Duration),
    /// No later request will.
    Never,
}

impl Problem {
    /// Begins with a type, and the status that goes with it.
    #[must_use]
    pub fn new(kind: ProblemType) -> Self {
        Self::of(kind.status(), Some(kind))
    }

    /// Begins with a status that says all (`about:blank`); what is no status of an error becomes 500.
    ///
    /// ```
    /// use http::StatusCode;
    /// use mamparo::problem::Problem;
    ///
    /// let problem = Problem::blank(StatusCode::NOT_FOUND).with_detail("there is no such book");
    /// assert_eq!(
    ///     problem.json(),
    ///     r#"{"type":"about:blank","title":"Not Found","status":404,"detail":"there is no such book"}"#,
    /// );
    /// ```
    #[must_use]
    pub fn blank(status: StatusCode) -> Self {
        let is_error = status.is_client_error() || status.is_server_error();
        let status = if is_error {
            status
        } else {
            StatusCode::INTERNAL_SERVER_ERROR
        };
        Self::of(status, None)
    }

    fn of(status: StatusCode, kind: Option<ProblemType>) -> Self {
        Self {
            inner: Box::new(Inner {
                kind,
                status,
                code: code(status),
                detail: Cow::Borrowed(""),
                members: Vec::new(),
                dependency: Dependency::UNNAMED,
                wait: Wait::Unsaid,
                exhausted: false,
                quota: None,
                cause: None,
            }),
        }
    }

    /// Says what is wrong with this request, in words for its caller.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<Cow<'static, str>>) -> Self {
        self.inner.detail = detail.into();
        self
    }

    /// Adds a member of the problem's type (RFC 9457 §3.2); of one name the last holds.
    ///
    /// A name should have three characters or more, ASCII's letters, digits and `_`. The names of RFC 9457 and `dependency` are
    /// ours to write: a member of that name is dropped, and so is one past [`MAX_MEMBERS`].
    #[must_use]
    pub fn with_member(mut self, name: &'static str, value: impl Into<Member>) -> Self {
        const TAKEN: [&str; 6] = [
            "type",
            "title",
            "status",
            "detail",
            "instance",
            "dependency",
        ];
        let members = &mut self.inner.members;
        members.retain(|(there, _)| *there != name);
        if !TAKEN.contains(&name) && members.len() < MAX_MEMBERS {
            members.push((name, value.into()));
        }
        self
    }

    /// Says when the caller may come back; it is told a little later, so that not all come at once.
    #[must_use]
    pub const fn with_retry_after(self, wait: Duration) -> Self {
        self.with_wait(Wait::After(wait))
    }

    /// Says that a later request may find what this one did not, and that nobody knows when.
    ///
    /// HTTP is told 1 s, and gRPC nothing: its clients come at exactly the moment that they are told.
    #[must_use]
    pub const fn with_retry_later(self) -> Self {
        self.with_wait(Wait::Guess)
    }

    /// Says that the same request will never be served.
    #[must_use]
    pub const fn with_no_retry(self) -> Self {
        self.with_wait(Wait::Never)
    }

    const fn with_wait(mut self, wait: Wait) -> Self {
        self.inner.wait = wait;
        self
    }

    /// Names the dependency whose fault it is, as the member `dependency`.
    #[must_use]
    pub fn with_dependency(mut self, dependency: impl Into<Dependency>) -> Self {
        self.inner.dependency = dependency.into();
        self
    }

    /// Says another status of gRPC than the one that goes with the HTTP status.
    #[must_use]
    pub const fn with_code(mut self, code: Code) -> Self {
        self.inner.code = code;
        self
    }

    /// Says that all attempts at it were spent here: the caller's retry must not multiply them.
    #[must_use]
    pub const fn with_attempts_spent(mut self) -> Self {
        self.inner.exhausted = true;
        self
    }

    /// Adds what is left of the limit that was used up.
    #[must_use]
    pub fn with_quota(mut self, quota: Quota) -> Self {
        self.inner.quota = Some(quota);
        self
    }

    /// Adds the cause, which is reported and never told.
    #[must_use]
    pub fn because(mut self, cause: impl Into<BoxError>) -> Self {
        self.inner.cause = Some(Arc::new(cause.into()));
        self
    }

    /// Returns the status.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        self.inner.status
    }

    /// Returns the status that gRPC is told.
    #[must_use]
    pub const fn code(&self) -> Code {
        self.inner.code
    }

    /// Returns the type; none where the status says all.
    #[must_use]
    pub const fn kind(&self) -> Option<ProblemType> {
        self.inner.kind
    }

    /// Returns what is said of this request; empty where nothing is.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.inner.detail
    }

    /// Returns the dependency whose fault it is.
    #[must_use]
    pub const fn dependency(&self) -> Dependency {
        self.inner.dependency
    }

    /// Tells whether all attempts at it were spent here.
    #[must_use]
    pub const fn are_attempts_spent(&self) -> bool {
        self.inner.exhausted
    }

    pub(crate) fn members(&self) -> &[(&'static str, Member)] {
        &self.inner.members
    }

    pub(crate) const fn quota(&self) -> Option<&Quota> {
        self.inner.quota.as_ref()
    }

    /// What HTTP is told: a guess where nobody knows, since its clients wait at least that long.
    pub(crate) const fn retry_after(&self) -> Option<Duration> {
        match self.inner.wait {
            Wait::After(wait) => Some(wait),
            Wait::Guess => Some(GUESS),
            Wait::Unsaid | Wait::Never => None,
        }
    }

    /// What gRPC is told: what is known and nothing else, since its clients all come at exactly that moment (gRFC A6).
    pub(crate) fn pushback(&self, tells_exhausted: bool) -> Option<Pushback> {
        match self.inner.wait {
            Wait::After(wait) => Some(Pushback::After(wait)),
            Wait::Never => Some(Pushback::Stop),
            _ => (self.inner.exhausted && tells_exhausted).then_some(Pushback::Stop),
        }
    }
}

/// The status of gRPC that says the same to a client, where nobody knows better.
const fn code(status: StatusCode) -> Code {
    match status.as_u16() {
        400 | 422 => Code::InvalidArgument,
        401 => Code::Unauthenticated,
        403 => Code::PermissionDenied,
        404 => Code::NotFound,
        408 | 504 => Code::DeadlineExceeded,
        409 => Code::Aborted,
        412 | 428 => Code::FailedPrecondition,
        413 | 429 => Code::ResourceExhausted,
        501 => Code::Unimplemented,
        502 | 503 => Code::Unavailable,
        500..600 => Code::Internal,
        _ => Code::Unknown,
    }
}

impl Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner {
            kind,
            status,
            detail,
            ..
        } = &*self.inner;
        let title = kind.map_or_else(|| phrase(*status), ProblemType::title);
        write!(f, "{}: {}", status.as_u16(), title.to_lowercase())?;
        if !self.inner.dependency.is_unnamed() {
            write!(f, ": {}", self.inner.dependency)?;
        }
        if detail.is_empty() {
            return Ok(());
        }
        write!(f, ": {detail}")
    }
}

/// What a status is called.
pub(super) fn phrase(status: StatusCode) -> &'static str {
    status.canonical_reason().unwrap_or("Error")
}

impl fmt::Debug for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Problem")
            .field("status", &self.inner.status)
            .field("kind", &self.inner.kind.map(ProblemType::uri))
            .field("detail", &self.inner.detail)
            .field("dependency", &self.inner.dependency)
            .finish_non_exhaustive()
    }
}

/// Its source is the cause, which is not told.
impl Error for Problem {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        let cause: &BoxError = self.inner.cause.as_deref()?;
        Some(&**cause)
    }
}
