//! What is told of a call, whatever its protocol.

use mamparo::fallback::Failed;
use mamparo_core::{Dependency, Ending, InvalidSetting};
use serde::Serialize;

use crate::args::CallArgs;
use crate::exit::Exit;

/// Who was called, and how that is shown.
#[derive(Debug)]
pub(super) struct About {
    pub(super) dependency: Dependency,
    pub(super) method: String,
    pub(super) url: String,
    /// Whether the request may take effect twice without harm.
    pub(super) safe: bool,
    pub(super) output: Form,
}

/// What stdout gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Body,
    HeadAndBody,
    Json,
}

impl Form {
    pub(super) const fn of(args: &CallArgs) -> Self {
        match (args.json, args.include) {
            (true, _) => Self::Json,
            (false, true) => Self::HeadAndBody,
            (false, false) => Self::Body,
        }
    }
}

/// Why what was typed makes no call.
#[derive(Debug)]
pub(super) struct Refused(pub(super) String);

impl From<InvalidSetting> for Refused {
    fn from(error: InvalidSetting) -> Self {
        Self(error.to_string())
    }
}

/// What came back, as far as the outcome, the report and the record need it.
pub(super) trait Answered {
    /// Its part of the record.
    type Record: Serialize;

    fn record(&self) -> Self::Record;

    /// How the operation ended, where a layer that resends had something to say.
    fn ending(&self) -> Option<Ending>;

    /// How the operation failed, where the answer is the fallback's.
    fn instead_of(&self) -> Option<Failed>;

    /// How the command ends with it.
    fn exit(&self) -> Exit;

    /// Why it is not whole, or could not be written, after so many attempts.
    fn error(&self, dependency: Dependency, attempts: u32) -> Option<String>;

    /// Its status, for people.
    fn status(&self) -> String;

    /// What it says went wrong, where it does in a form that can be read.
    fn says(&self) -> Option<String> {
        None
    }
}
