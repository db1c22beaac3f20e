//! Why a command did not do what it was asked.

use mamparo_core::InvalidSetting;
use mamparo_durable::backend::{BackendError, Trouble as Backend};
use mamparo_rabbitmq::RabbitError;

use crate::exit::Exit;
use crate::output;

/// A line that says it, and how the command ends.
#[derive(Debug)]
pub(crate) struct Trouble {
    pub(crate) exit: Exit,
    pub(crate) line: String,
}

impl Trouble {
    pub(crate) fn usage(line: impl Into<String>) -> Self {
        let (exit, line) = (Exit::Usage, line.into());
        Self { exit, line }
    }

    /// Of a setting that makes no sense.
    #[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
    pub(crate) fn setting(error: InvalidSetting) -> Self {
        Self::usage(error.to_string())
    }

    pub(crate) fn refused(line: impl Into<String>) -> Self {
        let (exit, line) = (Exit::REFUSED, line.into());
        Self { exit, line }
    }

    pub(crate) fn away(line: impl Into<String>) -> Self {
        let (exit, line) = (Exit::NoAnswer, line.into());
        Self { exit, line }
    }
}

impl From<BackendError> for Trouble {
    fn from(error: BackendError) -> Self {
        match error.trouble() {
            Backend::Refused => Self::refused(error.to_string()),
            _ => Self::away(error.to_string()),
        }
    }
}

/// What is worth another try later is the broker's trouble; what isn't is refused.
impl From<RabbitError> for Trouble {
    fn from(error: RabbitError) -> Self {
        if error.is_transient() {
            Self::away(error.to_string())
        } else {
            Self::refused(error.to_string())
        }
    }
}

/// Says what went wrong, if anything did.
pub(crate) fn ended(done: Result<Exit, Trouble>) -> Exit {
    done.unwrap_or_else(|Trouble { exit, line }| {
        output::error(&line);
        exit
    })
}
