//! How an operation or an attempt ended, in the words of spans and metrics.

use std::borrow::Cow;

use http::StatusCode;
use mamparo_core::{BoxError, Class, Deadline, Kind, Rejection, Verdict, clock};

use crate::semconv::ERROR_TYPE_OTHER;

/// Cancelled by whoever called us: neither success nor failure.
const CANCELLED: &str = "cancelled";

/// Refused by one of our own layers before it was sent.
const REJECTED: &str = "rejected";

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Its name in metrics: `success`, `cancelled`, `rejected` or the failure's kind.
    pub(crate) name: &'static str,
    /// The value of `error.type`, if it is an error.
    pub(crate) error: Option<Cow<'static, str>>,
}

impl Outcome {
    /// An answer, of that status if it has one.
    pub(crate) fn answer(verdict: Verdict, status: Option<StatusCode>) -> Self {
        let error = match (verdict.class(), status) {
            (Class::Success | Class::Ignored, _) => None,
            (Class::Failure(_), Some(status)) if status.as_u16() >= 400 => {
                Some(Cow::Owned(status.as_str().to_owned()))
            }
            (Class::Failure(kind), _) => Some(error_type(kind).into()),
        };
        Self {
            name: name(verdict),
            error,
        }
    }

    /// No answer.
    pub(crate) fn error(verdict: Verdict, error: &BoxError) -> Self {
        match verdict.class() {
            Class::Failure(kind) => Self {
                name: kind.as_str(),
                error: Some(error_type(kind).into()),
            },
            Class::Success | Class::Ignored => {
                let reason = Rejection::of(&**error).map(|rejection| rejection.reason().as_str());
                Self {
                    name: REJECTED,
                    error: Some(reason.unwrap_or(ERROR_TYPE_OTHER).into()),
                }
            }
        }
    }

    /// Dropped before there was an answer: cut by us from `cut` on, cancelled before.
    pub(crate) fn dropped(cut: Option<Deadline>) -> Self {
        if cut.is_some_and(|cut| cut.has_passed(clock::now())) {
            return Self {
                name: Kind::Timeout.as_str(),
                error: Some(error_type(Kind::Timeout).into()),
            };
        }
        Self {
            name: CANCELLED,
            error: None,
        }
    }

    pub(crate) fn is_success(&self) -> bool {
        self.name == Verdict::SUCCESS.as_str()
    }
}

const fn name(verdict: Verdict) -> &'static str {
    match verdict.class() {
        Class::Success | Class::Failure(_) => verdict.as_str(),
        Class::Ignored => CANCELLED,
    }
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
