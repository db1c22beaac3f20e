//! What is called "later".

use http::Response;
use mamparo_core::http::Http;
use mamparo_core::{BoxError, Classify, Kind, Reason, Rejection, Resend, RetryError, Verdict};

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
        let rejection = Rejection::of(&**error);
        let again = was_sent_before(error, rejection);
        if let Some(rejection) = rejection.filter(|rejection| !rejection.sent()) {
            let deferred = if again {
                self.failures && repeatable
            } else {
                self.rejections
            };
            return deferred && may_pass(rejection.reason());
        }
        let verdict = Classify::<Response<()>>::head(&Http::default(), Err(error)).verdict;
        self.failures
            && may_mend(verdict)
            && (repeatable || (!again && verdict.resend() == Resend::Always))
    }
}

/// Whether what was refused for this reason may pass another time.
const fn may_pass(reason: Reason) -> bool {
    !matches!(reason, Reason::AboveBurst | Reason::MalformedDeadline)
}

/// Whether this was not the first attempt of the stack: what the last one says, says nothing of those before it.
fn was_sent_before(error: &BoxError, rejection: Option<&Rejection>) -> bool {
    // Attempts that were sent: what was kept back is none.
    let own = u32::from(rejection.is_none_or(Rejection::sent));
    let again = RetryError::of(&**error).is_some_and(|error| error.ending().attempts() > own);
    again || rejection.is_some_and(|rejection| rejection.last_response().is_some())
}

/// What nobody knows may be the caller's own mistake, and is no better later.
fn may_mend(verdict: Verdict) -> bool {
    verdict
        .kind()
        .is_some_and(|kind| !matches!(kind, Kind::Client | Kind::Other))
}
