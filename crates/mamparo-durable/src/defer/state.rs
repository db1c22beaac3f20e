//! What is called "later".

use http::Response;
use mamparo_core::http::Http;
use mamparo_core::{BoxError, Classify, Kind, Reason, Rejection, Resend, Verdict};

use crate::machine::Outcome;

/// What is deferred besides refusals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Later {
    pub(super) rejections: bool,
    pub(super) failures: bool,
}

impl Later {
    /// Tells whether an answer is deferred. `repeatable` says whether sending the request again does no harm, whatever became of it.
    pub(super) fn answer(self, outcome: Outcome, repeatable: bool) -> bool {
        match outcome {
            Outcome::Refused => true,
            Outcome::Technical => self.failures && repeatable,
            Outcome::Success | Outcome::Declined => false,
        }
    }

    /// Tells whether an error is deferred.
    pub(super) fn error(self, error: &BoxError, repeatable: bool) -> bool {
        if let Some(rejection) = Rejection::of(&**error).filter(|rejection| !rejection.sent()) {
            return self.rejections && may_pass(rejection.reason());
        }
        let verdict = Classify::<Response<()>>::head(&Http::default(), Err(error)).verdict;
        self.failures && may_mend(verdict, repeatable)
    }
}

/// Whether what was refused for this reason may pass another time.
const fn may_pass(reason: Reason) -> bool {
    !matches!(reason, Reason::AboveBurst | Reason::MalformedDeadline)
}

fn may_mend(verdict: Verdict, repeatable: bool) -> bool {
    // What nobody knows may be the caller's own mistake, and is no better later.
    let failed = verdict
        .kind()
        .is_some_and(|kind| !matches!(kind, Kind::Client | Kind::Other));
    failed && (repeatable || verdict.resend() == Resend::Always)
}
