//! The exit codes, and what they mean to a script.

use std::io;
use std::process::ExitCode;

use mamparo_core::grpc::Code;
use serde::Serialize;

/// How the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Exit {
    Success = 0,
    FailedAnswer = 1,
    Usage = 2,
    OutOfTime = 3,
    NoAnswer = 4,
    Indeterminate = 5,
    Unwritten = 6,
    Rejected = 7,
}

/// What `mamparo call --help` says of them.
pub(crate) const CODES: &str = "\
Exit codes:
  0  success: the last answer was 1xx, 2xx or 3xx, or OK from gRPC, and it is whole
  1  the last answer was a failure: 4xx or 5xx, or from gRPC any other status but DEADLINE_EXCEEDED
  2  usage: nothing was sent, because what was typed makes no call
  3  out of time: the deadline passed, an attempt timed out, or the body stalled; or the server said DEADLINE_EXCEEDED
  4  no whole answer: no connection, a broken one, or one that does not speak HTTP
  5  indeterminate: it failed, the request may have taken effect, and sending it again was not safe
  6  the answer could not be written to stdout
  7  rejected: a limit of --rate refused the attempt, which was not sent
Where two fit, 5 wins. An answer of --fallback is judged like one of the server.";

impl Exit {
    /// How a check ends that refuses a policy.
    pub(crate) const REFUSED: Self = Self::FailedAnswer;

    /// Returns how a command ends whose last deed was to write its answer.
    pub(crate) const fn written(self, written: &io::Result<()>) -> Self {
        match written {
            Ok(()) => self,
            Err(_) => Self::Unwritten,
        }
    }

    /// Returns how a command ends whose answer has this status of gRPC.
    pub(crate) const fn of_code(code: Code) -> Self {
        match code {
            Code::Ok => Self::Success,
            Code::DeadlineExceeded => Self::OutOfTime,
            _ => Self::FailedAnswer,
        }
    }

    pub(crate) const fn code(self) -> u8 {
        self as u8
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
