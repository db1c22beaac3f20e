//! What every owner of resends asks of a failure: is it about our dependency, was it sent, may it have taken effect?

use std::time::Duration;

use mamparo_core::{
    BoxError, CallContext, Deadline, Dependency, Ending, Kind, Rejection, Resend, Reserve,
    ResponseHead, RetryError, Scope, Verdict,
};

use crate::replay::Safety;

/// Tells whether an error is about that dependency, as far as it says.
pub(crate) fn is_about(error: &BoxError, dependency: Dependency) -> bool {
    let failed = RetryError::of(&**error).map(RetryError::dependency);
    let rejected = || Rejection::of(&**error).map(Rejection::dependency);
    let about = failed.or_else(rejected).unwrap_or_default();
    about.may_be(dependency)
}

/// Tells whether something on our side refused to send to that dependency.
pub(crate) fn is_refusal(error: &BoxError, dependency: Dependency) -> bool {
    Rejection::of(&**error).is_some_and(|rejection| !rejection.sent())
        && is_about(error, dependency)
}

/// Takes proof that something was never processed for none where it is not about `all` that the attempt did: what stands
/// between the owner of resends and the transport may send more than once, or call another dependency after ours.
pub(crate) fn proven(verdict: Verdict, all: bool) -> Verdict {
    if verdict.resend() == Resend::Always && !all {
        return Verdict::failure(Kind::Other, Resend::IfIdempotent);
    }
    verdict
}

/// Tells whether the peer had the request and did nothing with it. A connection that can't be made is no such case: another
/// would come to the same.
pub(crate) const fn was_never_processed(verdict: Verdict) -> bool {
    let failed_so = matches!(verdict.kind(), Some(kind) if !matches!(kind, Kind::Connect));
    failed_so && matches!(verdict.resend(), Resend::Always)
}

/// Tells whether a request that failed for good may have taken effect, and was not safe to send again.
pub(crate) const fn indeterminate(verdict: Verdict, safety: Safety) -> bool {
    let processed_perhaps = matches!(
        verdict.kind(),
        Some(Kind::Reset | Kind::Timeout | Kind::Unavailable | Kind::Server | Kind::Other)
    );
    let never_processed = matches!(verdict.resend(), Resend::Always | Resend::UnlessEarlyData);
    // One that a list allows to be sent again is safe, even where it was sent often enough.
    let safe = safety.allows(Resend::IfIdempotent) || safety.allows_after(verdict);
    processed_perhaps && !never_processed && !safe
}

/// Bounds the attempts of an operation by its method's timeout, where the deadline around it does not come first.
#[cold]
pub(crate) fn bound_attempts(scope: &mut Scope, timeout: Duration) {
    let now = CallContext::now();
    let own = Deadline::after(now, timeout);
    if scope.deadline().is_none_or(|deadline| deadline > own) {
        let reserve = Reserve::default().of(timeout);
        scope.set_deadline(own, Deadline::after(now, timeout.saturating_sub(reserve)));
    }
}

/// The bit of a failure that allows one resend; none for all others.
pub(crate) fn once(verdict: Verdict) -> u16 {
    let kind = verdict.kind().filter(|_| verdict.is_once());
    kind.map_or(0, |kind| 1 << kind as u16)
}

/// The last resend was not sent: a rejection carries the head of the response that was given up before it.
#[cold]
pub(crate) fn not_sent(
    dependency: Dependency,
    ending: Ending,
    mut last_response: Option<Box<ResponseHead>>,
    error: BoxError,
) -> BoxError {
    let source = match error.downcast::<Rejection>() {
        Ok(rejection) => match last_response.take() {
            Some(head) => rejection.with_last_response(*head).into(),
            None => rejection,
        },
        Err(error) => error,
    };
    RetryError::new(dependency, ending, last_response, source).into()
}

#[cfg(test)]
mod tests {
    use mamparo_core::grpc::{Code, Codes};

    use super::*;

    #[test]
    fn what_a_method_lists_is_safe_to_send_again_and_so_leaves_no_doubt() {
        let listed = Safety::UNSAFE.with_listed(Codes::UNAVAILABLE);
        let failed = |code| Verdict::failure(Kind::Unavailable, Resend::IfListed(code));
        assert!(!indeterminate(failed(Code::Unavailable), listed));
        assert!(indeterminate(failed(Code::Unknown), listed));
        assert!(indeterminate(failed(Code::Unavailable), Safety::UNSAFE));
    }
}
