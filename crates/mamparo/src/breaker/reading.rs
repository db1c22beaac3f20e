//! How a breaker reads a verdict.

use mamparo_core::{Class, Kind, Verdict};

/// What one call's end is to a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Read {
    /// It counts, and did not fail.
    Success,
    /// It counts, and failed.
    Failure,
    /// It says nothing: as if the call had not been.
    Ignored,
}

/// How a breaker reads verdicts: three answers, and one precedence.
///
/// A success is a success, and what is ignored is ignored. For a failure its kind decides, by the first of these that
/// names it, in whatever order they were set:
///
/// 1. *ignored*: left out of all counts; a probe gives its place back and decides nothing;
/// 2. *recorded*: a failure;
/// 3. *counted*: a call that did not fail;
/// 4. unnamed: [`Kind::Client`] is counted, since the dependency did its part, and every other kind is recorded.
///
/// ```
/// use mamparo::breaker::{Read, Reading};
/// use mamparo_core::{Kind, Resend, Verdict};
///
/// let reading = Reading::default().record(Kind::Throttled).ignore(Kind::Throttled);
/// let busy = Verdict::failure(Kind::Throttled, Resend::Never);
/// assert_eq!(reading.read(busy), Read::Ignored);
/// let not_found = Verdict::failure(Kind::Client, Resend::Never);
/// assert_eq!(reading.read(not_found), Read::Success);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    recorded: u16,
    ignored: u16,
    counted: u16,
}

const fn bit(kind: Kind) -> u16 {
    1 << kind as u16
}

impl Reading {
    /// Reads failures of a kind as failures.
    #[must_use]
    pub const fn record(mut self, kind: Kind) -> Self {
        self.recorded |= bit(kind);
        self
    }

    /// Leaves failures of a kind out.
    #[must_use]
    pub const fn ignore(mut self, kind: Kind) -> Self {
        self.ignored |= bit(kind);
        self
    }

    /// Counts failures of a kind as calls that did not fail.
    #[must_use]
    pub const fn count(mut self, kind: Kind) -> Self {
        self.counted |= bit(kind);
        self
    }

    /// Reads a verdict.
    #[must_use]
    #[inline]
    pub const fn read(self, verdict: Verdict) -> Read {
        let kind = match verdict.class() {
            Class::Success => return Read::Success,
            Class::Ignored => return Read::Ignored,
            Class::Failure(kind) => kind,
        };
        if self.ignored & bit(kind) != 0 {
            Read::Ignored
        } else if self.recorded & bit(kind) != 0 {
            Read::Failure
        } else if self.counted & bit(kind) != 0 || matches!(kind, Kind::Client) {
            Read::Success
        } else {
            Read::Failure
        }
    }
}
