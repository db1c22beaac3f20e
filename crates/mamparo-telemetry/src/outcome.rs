//! How an operation, an attempt or a served call ended, in the words of spans and metrics.

use std::borrow::Cow;
use std::time::Duration;

use http::StatusCode;
use mamparo_core::grpc::Code;
use mamparo_core::{BoxError, Class, Deadline, Dependency, Kind, Rejection, Verdict, clock};

use crate::metrics::Instruments;
use crate::semconv::ERROR_TYPE_OTHER;

/// Cancelled by whoever called us: neither success nor failure.
const CANCELLED: &str = "cancelled";

/// Refused by one of our own layers before it was sent.
const REJECTED: &str = "rejected";

/// What came at the end.
#[derive(Clone, Copy, Debug)]
pub enum Ended<'a> {
    /// An answer.
    Answer(Verdict),
    /// No answer.
    Error(Verdict, &'a BoxError),
    /// We gave it up, as its time was over.
    Cut,
    /// Whoever called it gave it up.
    Cancelled,
}

impl Ended<'_> {
    /// Dropped before there was an answer: cut by us from `cut` on, cancelled before.
    pub(crate) fn dropped(cut: Option<Deadline>) -> Self {
        if cut.is_some_and(|cut| cut.has_passed(clock::now())) {
            Self::Cut
        } else {
            Self::Cancelled
        }
    }
}

/// What was measured of a call.
#[derive(Clone, Copy, Debug)]
pub struct Measured<'a> {
    pub(crate) instruments: &'a Instruments,
    pub(crate) dependency: Dependency,
    pub(crate) outcome: &'a Outcome,
    pub(crate) elapsed: Duration,
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Its name in metrics: `success`, `cancelled`, `rejected` or the failure's kind.
    pub(crate) name: &'static str,
    /// The value of `error.type`, if it is an error.
    pub(crate) error: Option<Cow<'static, str>>,
    /// The status of an RPC.
    pub(crate) code: Option<Code>,
}

impl Outcome {
    /// Of a call whose answer has that status, if it has one.
    #[inline]
    pub(crate) fn of(ended: Ended<'_>, status: Option<StatusCode>) -> Self {
        match ended {
            Ended::Answer(verdict) if matches!(verdict.class(), Class::Success) => Self {
                name: verdict.as_str(),
                error: None,
                code: None,
            },
            _ => Self::of_failure(ended, status),
        }
    }

    fn of_failure(ended: Ended<'_>, status: Option<StatusCode>) -> Self {
        let error = match (failure(ended), status) {
            (None, _) => refusal(ended).map(Cow::Borrowed),
            (Some(_), Some(status)) if status.as_u16() >= 400 => {
                Some(Cow::Owned(status.as_str().to_owned()))
            }
            (Some(kind), _) => Some(error_type(kind).into()),
        };
        Self {
            name: name(ended),
            error,
            code: None,
        }
    }

    /// Of a request that was served: one that was itself at fault is no error of the server.
    pub(crate) fn served(ended: Ended<'_>, status: Option<StatusCode>) -> Self {
        let outcome = Self::of(ended, status);
        let error = match status {
            Some(status) if status.is_client_error() => None,
            _ => outcome.error,
        };
        Self { error, ..outcome }
    }

    /// Of an RPC: every status but `OK` is an error.
    pub(crate) fn rpc(ended: Ended<'_>) -> Self {
        let code = code(ended);
        let failed = failure(ended).map(|_| code.as_str());
        Self {
            name: name(ended),
            error: failed.or_else(|| refusal(ended)).map(Cow::Borrowed),
            code: Some(code),
        }
    }

    /// Of an RPC that was served: some statuses say that the request was at fault.
    pub(crate) fn served_rpc(ended: Ended<'_>) -> Self {
        let outcome = Self::rpc(ended);
        let error = outcome.code.filter(|code| is_servers_fault(*code));
        Self {
            error: error.and(outcome.error),
            ..outcome
        }
    }

    pub(crate) fn is_success(&self) -> bool {
        self.name == Verdict::SUCCESS.as_str()
    }
}

/// How it failed, if it did; an error that is none of the dependency's is none.
const fn failure(ended: Ended<'_>) -> Option<Kind> {
    match ended {
        Ended::Answer(verdict) | Ended::Error(verdict, _) => verdict.kind(),
        Ended::Cut => Some(Kind::Timeout),
        Ended::Cancelled => None,
    }
}

/// Why one of our own layers refused it, if one did.
fn refusal(ended: Ended<'_>) -> Option<&'static str> {
    let Ended::Error(_, error) = ended else {
        return None;
    };
    let reason = Rejection::of(&**error).map(|rejection| rejection.reason().as_str());
    Some(reason.unwrap_or(ERROR_TYPE_OTHER))
}

const fn name(ended: Ended<'_>) -> &'static str {
    match (ended, failure(ended)) {
        (_, Some(kind)) => kind.as_str(),
        (Ended::Error(..), None) => REJECTED,
        (Ended::Answer(verdict), None) if matches!(verdict.class(), Class::Success) => {
            verdict.as_str()
        }
        _ => CANCELLED,
    }
}

/// The status that the verdict was read from, or else the one that says the same.
fn code(ended: Ended<'_>) -> Code {
    let verdict = match ended {
        Ended::Answer(verdict) => verdict,
        Ended::Error(verdict, error) if verdict.kind().is_none() => return Code::of_error(error),
        Ended::Error(verdict, _) => verdict,
        Ended::Cut => return Code::DeadlineExceeded,
        Ended::Cancelled => return Code::Cancelled,
    };
    verdict.code().unwrap_or_else(|| match verdict.class() {
        Class::Success => Code::Ok,
        Class::Ignored => Code::Cancelled,
        Class::Failure(kind) => match kind {
            Kind::Timeout => Code::DeadlineExceeded,
            Kind::Throttled => Code::ResourceExhausted,
            Kind::Connect | Kind::Reset | Kind::Unavailable => Code::Unavailable,
            _ => Code::Unknown,
        },
    })
}

/// The statuses that are errors of a server, by the conventions.
const fn is_servers_fault(code: Code) -> bool {
    matches!(
        code,
        Code::Unknown
            | Code::DeadlineExceeded
            | Code::Unimplemented
            | Code::Internal
            | Code::Unavailable
            | Code::DataLoss
    )
}

/// The values of `error.type` where no status says more; few, so that they can be grouped by.
const fn error_type(kind: Kind) -> &'static str {
    match kind {
        Kind::Connect => "connect_error",
        Kind::Reset => "connection_reset",
        Kind::Other => ERROR_TYPE_OTHER,
        _ => kind.as_str(),
    }
}
