//! What a caller is told of an error: whose fault it is, and when to come back. Nothing of the error's own text.

use std::error::Error;
use std::sync::LazyLock;
use std::time::Duration;

use http::{HeaderMap, Response, StatusCode};
use mamparo_core::clock::{self, SystemClock};
use mamparo_core::grpc::Code;
use mamparo_core::http::hint;
use mamparo_core::{
    BoxError, CallContext, Dependency, Ending, Kind, NotResent, Reason, Rejection, RetryError,
    TransportError, chain,
};

use super::{Member, Problem, ProblemType};

/// What a client keeps back of its deadline to deliver the answer, at most, unless told otherwise.
const RESERVE: Duration = Duration::from_millis(50);

const SLOW: &str = "a service behind this one did not answer in time";
const UNREACHABLE: &str = "a service behind this one can not be reached";
const NOT_NOW: &str = "a service behind this one can not be asked now";
const FAILED: &str = "a service behind this one failed";

/// Makes of any error what the caller is told of it; the error is kept as its cause.
///
/// ```
/// use mamparo::problem::Problem;
/// use mamparo_core::{BoxError, Dependency, Reason, Rejection};
///
/// fn ask() -> Result<String, BoxError> {
///     Err(Rejection::cut(Reason::AttemptTimedOut, Dependency::named("psp")).into())
/// }
/// fn handler() -> Result<String, Problem> {
///     Ok(ask()?)
/// }
/// let problem = handler().unwrap_err();
/// assert_eq!((problem.status().as_u16(), problem.dependency().as_str()), (503, "psp"));
/// ```
impl From<BoxError> for Problem {
    fn from(error: BoxError) -> Self {
        match error.downcast::<Self>() {
            Ok(problem) => *problem,
            Err(error) => tell(&*error, StatusCode::GATEWAY_TIMEOUT).because(error),
        }
    }
}

impl Problem {
    /// Takes an answer of a dependency's that is none of success for what the dependency did not do for us.
    ///
    /// 429 and 503 become 503, with the dependency's own wait; other errors, the client's among them, 502. What a handler
    /// can make something of, a 404 say, it looks at before.
    ///
    /// # Errors
    ///
    /// The problem, if the status is one of an error.
    ///
    /// ```
    /// use http::Response;
    /// use mamparo::problem::Problem;
    ///
    /// let busy = Response::builder().status(429).header("retry-after", "7").body(())?;
    /// let problem = Problem::check("psp", busy).unwrap_err();
    /// assert_eq!((problem.status().as_u16(), problem.dependency().as_str()), (503, "psp"));
    /// assert!(Problem::check("psp", Response::new(())).is_ok());
    /// # Ok::<(), http::Error>(())
    /// ```
    pub fn check<B>(
        dependency: impl Into<Dependency>,
        answer: Response<B>,
    ) -> Result<Response<B>, Self> {
        let status = answer.status();
        if !status.is_client_error() && !status.is_server_error() {
            return Ok(answer);
        }
        let busy = [
            StatusCode::TOO_MANY_REQUESTS,
            StatusCode::SERVICE_UNAVAILABLE,
        ];
        let problem = match busy.contains(&status) {
            true => unavailable(NOT_NOW, asked(answer.headers())),
            false => Self::new(ProblemType::DEPENDENCY_FAILED).with_detail(FAILED),
        };
        let problem = match Ending::of(&answer).is_some_and(is_exhausted) {
            true => problem.with_attempts_spent(),
            false => problem,
        };
        let cause = format!("the dependency answered {status}");
        Err(problem.with_dependency(dependency).because(cause))
    }
}

/// Says what the caller is told of an error; `late` is the status of what this server itself did not do in time.
pub(crate) fn tell(error: &(dyn Error + 'static), late: StatusCode) -> Problem {
    if let Some(problem) = chain::find::<Problem>(error) {
        return problem.clone();
    }
    let rejection = Rejection::of(error);
    let failed = RetryError::of(error);
    let transport = TransportError::of(error);
    let problem = match (rejection, transport) {
        (Some(rejection), _) => by_rejection(rejection, late),
        (None, Some(transport)) => by_transport(transport),
        (None, None) if failed.is_some() => by_kind(None, Code::Unavailable),
        (None, None) => {
            let detail = "the request could not be answered";
            Problem::blank(StatusCode::INTERNAL_SERVER_ERROR).with_detail(detail)
        }
    };
    let Some(failed) = failed else {
        return problem;
    };
    let waits = problem.kind() == Some(ProblemType::DEPENDENCY_UNAVAILABLE)
        && rejection.is_none_or(|rejection| rejection.retry_after().is_none());
    let head = failed.last_response().filter(|_| waits);
    let problem = match head.and_then(|head| asked(&head.headers)) {
        Some(wait) => problem.with_retry_after(wait),
        None => problem,
    };
    let problem = match problem.dependency().is_unnamed() {
        true => problem.with_dependency(failed.dependency()),
        false => problem,
    };
    match is_exhausted(&failed.ending()) {
        true => problem.with_attempts_spent(),
        false => problem,
    }
}

/// How long a dependency's answer asks to wait.
fn asked(headers: &HeaderMap) -> Option<Duration> {
    static CLOCK: LazyLock<SystemClock> = LazyLock::new(|| SystemClock);
    hint::server_wait(headers, &*CLOCK)
}

/// Tells whether an operation ended because all of its attempts were spent; one attempt alone leaves resends to the
/// caller.
pub(crate) fn is_exhausted(ending: &Ending) -> bool {
    ending.attempts() > 1 && ending.not_resent() == Some(NotResent::AttemptsExhausted)
}

fn unavailable(detail: &'static str, wait: Option<Duration>) -> Problem {
    let problem = Problem::new(ProblemType::DEPENDENCY_UNAVAILABLE).with_detail(detail);
    match wait {
        Some(wait) => problem.with_retry_after(wait),
        None => problem.with_retry_later(),
    }
}

fn by_transport(error: &TransportError) -> Problem {
    by_kind(error.verdict().kind(), error.code())
}

fn by_kind(kind: Option<Kind>, code: Code) -> Problem {
    match kind {
        Some(Kind::Timeout) => unavailable(SLOW, None).with_code(Code::DeadlineExceeded),
        Some(Kind::Connect) => unavailable(UNREACHABLE, None),
        Some(Kind::Throttled | Kind::Unavailable) => unavailable(NOT_NOW, None).with_code(code),
        _ => Problem::new(ProblemType::DEPENDENCY_FAILED).with_detail(FAILED),
    }
}

fn by_rejection(rejection: &Rejection, late: StatusCode) -> Problem {
    let wait = rejection.retry_after().or_else(|| {
        let head = rejection.last_response()?;
        asked(&head.headers)
    });
    // What names no dependency is the server's own.
    let own = rejection.dependency().is_unnamed();
    let problem = match rejection.reason() {
        // Where it passed because our own has, the dependency is not to blame.
        Reason::DeadlineExceeded | Reason::AttemptTimedOut | Reason::BodyIdle
            if own || is_own_deadline_over() =>
        {
            let detail = "the deadline passed before the answer was complete";
            Problem::blank(late).with_detail(detail)
        }
        Reason::DeadlineExceeded | Reason::AttemptTimedOut | Reason::BodyIdle => {
            unavailable(SLOW, wait)
        }
        Reason::ConnectTimedOut => unavailable(UNREACHABLE, wait),
        Reason::MalformedDeadline => {
            let detail = "the deadline header of the request is malformed";
            Problem::blank(StatusCode::BAD_REQUEST).with_detail(detail)
        }
        Reason::RateLimited if own => {
            let name = rejection.quota().map_or("rate-limit", |quota| quota.name());
            let problem = violated(ProblemType::QUOTA_EXCEEDED, name);
            problem.with_detail("too many requests")
        }
        Reason::BulkheadFull if own => {
            violated(ProblemType::TEMPORARY_REDUCED_CAPACITY, "bulkhead")
                .with_detail("as many requests as can be taken are under way")
        }
        Reason::Overloaded if own => violated(ProblemType::TEMPORARY_REDUCED_CAPACITY, "load-shed")
            .with_detail("the request was refused to protect the service"),
        Reason::AboveBurst => {
            let detail = "the request asks for more than is ever served at once";
            let problem = Problem::blank(StatusCode::PAYLOAD_TOO_LARGE).with_detail(detail);
            problem.with_no_retry()
        }
        _ => unavailable(NOT_NOW, wait),
    };
    let problem = match wait {
        Some(wait) => problem.with_retry_after(wait),
        None => problem,
    };
    let problem = match rejection.quota() {
        Some(quota) => problem.with_quota(quota.clone()),
        None => problem,
    };
    problem
        .with_code(Code::of_rejection(rejection))
        .with_dependency(rejection.dependency())
}

/// Tells whether the request's own deadline has passed, but for what a client keeps back of it.
fn is_own_deadline_over() -> bool {
    let deadline = CallContext::current_deadline();
    deadline.is_some_and(|deadline| deadline.remaining(clock::now()) <= RESERVE)
}

fn violated(kind: ProblemType, policy: &str) -> Problem {
    let policies = Member::Texts(vec![policy.to_owned()]);
    let problem = Problem::new(kind).with_member("violated-policies", policies);
    problem.with_retry_later()
}
