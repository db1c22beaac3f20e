//! One thing that is wrong, as it is reported.

use mamparo::policy::{Origin, Problem, Severity};
use serde::Serialize;

/// One thing that is wrong with a policy, or with several taken together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(crate) severity: &'static str,
    pub(crate) code: &'static str,
    pub(crate) file: Option<String>,
    pub(crate) line: Option<u32>,
    /// The variable of the environment that it is about.
    pub(crate) environment: Option<String>,
    pub(crate) path: String,
    pub(crate) message: String,
    pub(crate) remedy: String,
}

impl Finding {
    /// What is legal but unwise.
    pub(crate) fn warning(
        code: &'static str,
        origin: &Origin,
        path: String,
        message: String,
        remedy: String,
    ) -> Self {
        let (file, line, environment) = match origin {
            Origin::File { file, line, .. } => (Some(file.to_string()), Some(*line), None),
            Origin::Environment(name) => (None, None, Some(name.to_string())),
            _ => (None, None, None),
        };
        Self {
            severity: Severity::Warning.as_str(),
            code,
            file,
            line,
            environment,
            path,
            message,
            remedy,
        }
    }

    pub(crate) fn is_error(&self) -> bool {
        self.severity == Severity::Error.as_str()
    }
}

impl From<&Problem> for Finding {
    fn from(problem: &Problem) -> Self {
        let Problem {
            severity,
            code,
            origin,
            path,
            message,
            remedy,
            ..
        } = problem.clone();
        Self {
            severity: severity.as_str(),
            ..Self::warning(code, &origin, path, message, remedy)
        }
    }
}
