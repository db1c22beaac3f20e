//! The decision: does this failure get another answer?

use mamparo_core::{Class, Reason, Verdict};

use super::config::{FallbackPolicy, bits};

/// Tells whether an operation that ended so is fallen back from; `rejected` tells why we refused or cut it, if we did.
pub(super) fn falls_back(
    policy: &FallbackPolicy,
    verdict: Verdict,
    rejected: Option<Reason>,
) -> bool {
    match verdict.class() {
        Class::Success => false,
        Class::Ignored => policy.settings.rejections && rejected.is_some_and(may_pass),
        Class::Failure(kind) => policy.settings.kinds & bits([kind]) != 0,
    }
}

/// Tells whether what was refused for that reason may be let through another time: else the request itself is at fault.
const fn may_pass(reason: Reason) -> bool {
    !matches!(reason, Reason::AboveBurst | Reason::MalformedDeadline)
}

#[cfg(test)]
mod tests {
    use mamparo_core::{Kind, Resend};

    use super::*;

    /// Row H1.
    #[test]
    fn by_default_what_may_pass_is_fallen_back_from_and_what_is_permanent_is_not() {
        let policy = FallbackPolicy::default();
        let falls = |kind| falls_back(&policy, Verdict::failure(kind, Resend::Never), None);
        for kind in [Kind::Connect, Kind::Timeout, Kind::Unavailable] {
            assert!(falls(kind), "{kind:?}");
        }
        let others = [
            Kind::Reset,
            Kind::Throttled,
            Kind::Server,
            Kind::Client,
            Kind::Other,
        ];
        for kind in others {
            assert!(!falls(kind), "{kind:?}");
        }
        assert!(!falls_back(&policy, Verdict::SUCCESS, None));
        let open = Some(Reason::BreakerOpen);
        assert!(falls_back(&policy, Verdict::IGNORED, open));
        assert!(!falls_back(&policy, Verdict::IGNORED, None));
    }

    /// Row H1: a request that never passes is at fault itself.
    #[test]
    fn what_is_refused_for_good_is_not_fallen_back_from() {
        let policy = FallbackPolicy::default();
        for reason in [Reason::AboveBurst, Reason::MalformedDeadline] {
            assert!(!falls_back(&policy, Verdict::IGNORED, Some(reason)));
        }
    }

    #[test]
    fn what_is_named_is_fallen_back_from_and_nothing_else() {
        let policy = FallbackPolicy::builder()
            .on([Kind::Server])
            .rejections(false);
        let policy = policy.build().unwrap();
        let falls = |kind| falls_back(&policy, Verdict::failure(kind, Resend::Never), None);
        assert!(falls(Kind::Server) && !falls(Kind::Unavailable));
        let open = Some(Reason::BreakerOpen);
        assert!(!falls_back(&policy, Verdict::IGNORED, open));
    }
}
