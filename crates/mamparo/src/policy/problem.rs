//! What is wrong with a policy file, and what to do about it.

use std::error::Error;
use std::fmt::{self, Display};

use super::{Origin, Outline, Service};

/// As many problems as are told at once: what follows is often a consequence.
pub const MAX_PROBLEMS: usize = 100;

/// How bad a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "whoever shows problems must show both, and differently"
)]
pub enum Severity {
    /// Legal, but unwise.
    Warning,
    /// The policy is refused.
    Error,
}

impl Severity {
    /// Returns the name: `error` or `warning`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One thing that is wrong with a policy.
///
/// Its text has all that is needed to mend it: where, what, why, and a remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// Its kind, in words that stay the same: `attempts-exceed-deadline`.
    pub code: &'static str,
    /// Where it was written.
    pub origin: Origin,
    /// The setting that it is about: `dependency.catalog.retry.max_attempts`. Empty for a whole file.
    pub path: String,
    /// What is wrong, and why.
    pub message: String,
    /// What to do.
    pub remedy: String,
}

impl Problem {
    pub(super) fn error(
        code: &'static str,
        origin: &Origin,
        path: impl Into<String>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            severity: Severity::Error,
            code,
            origin: origin.clone(),
            path: path.into(),
            message: message.into(),
            remedy: remedy.into(),
        }
    }

    /// Where it stands among others: by file, and by line; what stands in no file comes last.
    pub(super) fn place(&self, files: &[String]) -> (usize, u32) {
        let Origin::File { file, line, .. } = &self.origin else {
            return (usize::MAX, 0);
        };
        let at = files.iter().position(|name| **name == **file);
        (at.unwrap_or(files.len()), *line)
    }

    pub(super) fn warning(
        code: &'static str,
        origin: &Origin,
        path: impl Into<String>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(code, origin, path, message, remedy)
        }
    }
}

/// `policies.toml:12: error[unknown-key]: dependency.catalog.retries: …`, and the remedy on a line of its own.
impl Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = self.severity.as_str();
        write!(f, "{}: {severity}[{}]: ", self.origin, self.code)?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        write!(f, "{}\n  remedy: {}", self.message, self.remedy)
    }
}

/// Why policies were refused: all that is wrong with them, at once.
#[derive(Clone, Debug)]
pub struct InvalidPolicies {
    problems: Vec<Problem>,
    service: Service,
    outlines: Vec<Outline>,
}

impl InvalidPolicies {
    pub(super) const fn new(
        problems: Vec<Problem>,
        service: Service,
        outlines: Vec<Outline>,
    ) -> Self {
        Self {
            problems,
            service,
            outlines,
        }
    }

    /// Returns all problems, in the order of the files; errors and warnings.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Returns what is said of the service that they belong to.
    #[must_use]
    pub const fn service(&self) -> &Service {
        &self.service
    }

    /// Returns the dependencies whose settings could all be read, though what they say together may be refused.
    #[must_use]
    pub fn outlines(&self) -> &[Outline] {
        &self.outlines
    }
}

impl Display for InvalidPolicies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let errors = self.problems.iter();
        let errors = errors.filter(|it| it.severity == Severity::Error).count();
        let plural = if errors == 1 { "" } else { "s" };
        write!(f, "the policies are refused: {errors} error{plural}")?;
        for problem in &self.problems {
            write!(f, "\n{problem}")?;
        }
        Ok(())
    }
}

impl Error for InvalidPolicies {}
