//! The decision: does this failure get another answer?

use mamparo_core::{Class, Verdict};

use super::config::{FallbackPolicy, bits};

/// Tells whether an operation that ended so is fallen back from; `rejected` tells whether we refused or cut it.
pub(super) fn falls_back(policy: &FallbackPolicy, verdict: Verdict, rejected: bool) -> bool {
    match verdict.class() {
        Class::Success => false,
        Class::Ignored => rejected && policy.settings.rejections,
        Class::Failure(kind) => policy.settings.kinds & bits([kind]) != 0,
    }
}

#[cfg(test)]
mod tests {
    use mamparo_core::{Kind, Resend};

    use super::*;

    /// Row H1.
    #[test]
    fn by_default_what_may_pass_is_fallen_back_from_and_what_is_permanent_is_not() {
        let policy = FallbackPolicy::default();
        let falls = |kind| falls_back(&policy, Verdict::failure(kind, Resend::Never), false);
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
        assert!(!falls_back(&policy, Verdict::SUCCESS, false));
        assert!(falls_back(&policy, Verdict::IGNORED, true));
        assert!(!falls_back(&policy, Verdict::IGNORED, false));
    }

    #[test]
    fn what_is_named_is_fallen_back_from_and_nothing_else() {
        let policy = FallbackPolicy::builder()
            .on([Kind::Server])
            .rejections(false);
        let policy = policy.build().unwrap();
        let falls = |kind| falls_back(&policy, Verdict::failure(kind, Resend::Never), false);
        assert!(falls(Kind::Server) && !falls(Kind::Unavailable));
        assert!(!falls_back(&policy, Verdict::IGNORED, true));
    }
}
