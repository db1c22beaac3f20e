//! The decision: is this failure sent again, and after which wait?

use std::time::Duration;

use mamparo_core::{Backoff, Nested, NotResent, Resend, Verdict};

use super::config::RetryPolicy;
use crate::grpc::{MethodConfig, Resends};
use crate::replay::Safety;
use crate::resend::{once, was_never_processed};

/// A wait that the server asked for is lengthened by up to this share of it, so that clients come back spread.
const HINT_JITTER: f64 = 0.1;

/// No wait is lengthened by more than this.
const MAX_HINT_JITTER: Duration = Duration::from_secs(1);

/// What is known when an attempt has failed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failed {
    /// The number of the attempt, 1 for the original.
    pub(super) attempt: u32,
    /// What its result means.
    pub(super) verdict: Verdict,
    /// What makes the request safe to send again, or not.
    pub(super) safety: Safety,
    /// Whether the request was held for a resend.
    pub(super) held: bool,
    /// What remains until an attempt must be over; none without a deadline.
    pub(super) remaining: Option<Duration>,
    /// Whether a retry inside this one has resent.
    pub(super) resent_inside: bool,
    /// Whether too many requests have failed of late.
    pub(super) throttled: bool,
}

/// What is remembered from one failed attempt to the next.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Memory {
    /// The last wait, before any hint: decorrelated jitter builds on it.
    previous: Duration,
    /// As many waits were ours since the server last asked for an exact one.
    backoffs: u32,
    /// Whether the operation has had its transparent resend.
    pub(super) transparent: bool,
    /// The kinds of failure that allow one resend and have had it, a bit each.
    once: u16,
}

/// How often this retry may send in this operation, and why not more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Allowance {
    pub(super) attempts: u32,
    pub(super) owned_outside: bool,
}

/// The wait before a resend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) duration: Duration,
    /// Whether the server asked for it.
    pub(super) hinted: bool,
}

impl Wait {
    /// At once.
    pub(super) const NONE: Self = Self {
        duration: Duration::ZERO,
        hinted: false,
    };
}

/// Says how often a retry may send, given what is said of the request's method, and whether it is inside another.
pub(super) fn allowance(
    policy: &RetryPolicy,
    method: Option<&MethodConfig>,
    inside_retry: bool,
) -> Allowance {
    let owned_outside = inside_retry && policy.settings.nested == Nested::Inherit;
    let attempts = match method.and_then(MethodConfig::resends) {
        _ if owned_outside => 1,
        None => policy.max_attempts(),
        Some(Resends::Retry(plan)) => plan.attempts(),
        // Retried or hedged, never both.
        Some(Resends::Hedge(_) | Resends::Never) => 1,
    };
    Allowance {
        attempts,
        owned_outside,
    }
}

/// The waits between attempts: the method's own, or those of all.
pub(super) fn backoff<'a>(
    policy: &'a RetryPolicy,
    method: Option<&'a MethodConfig>,
) -> &'a Backoff {
    match method.and_then(MethodConfig::resends) {
        Some(Resends::Retry(plan)) => plan.backoff(),
        _ => &policy.settings.backoff,
    }
}

/// Says whether a failed attempt is sent once more at once, as the same attempt: it was never processed.
pub(super) fn is_transparent(
    policy: &RetryPolicy,
    allowance: Allowance,
    memory: Memory,
    failed: Failed,
) -> bool {
    let fits = |remaining| policy.settings.min_attempt_time <= remaining;
    was_never_processed(failed.verdict)
        && !memory.transparent
        && !allowance.owned_outside
        && failed.held
        && failed.remaining.is_none_or(fits)
}

/// Says whether a failure counts for the throttle: one that could be sent again, or that its server forbids to.
pub(super) fn is_counted(allowance: Allowance, safety: Safety, verdict: Verdict) -> bool {
    let counts = verdict.is_forbidden() || safety.allows_after(verdict);
    counts && verdict.kind().is_some() && !allowance.owned_outside
}

/// Decides on a failed attempt; `rng` draws the jitter.
pub(super) fn decide(
    (policy, backoff): (&RetryPolicy, &Backoff),
    allowance: Allowance,
    memory: &mut Memory,
    failed: Failed,
    rng: &mut fastrand::Rng,
) -> Result<Wait, NotResent> {
    permitted(policy, allowance, *memory, failed)?;
    let wait = wait((policy, backoff), memory, failed, rng)?;
    let needed = wait
        .duration
        .saturating_add(policy.settings.min_attempt_time);
    if failed.remaining.is_some_and(|remaining| needed > remaining) {
        return Err(NotResent::DeadlineTooClose);
    }
    memory.once |= once(failed.verdict);
    Ok(wait)
}

fn permitted(
    policy: &RetryPolicy,
    allowance: Allowance,
    memory: Memory,
    failed: Failed,
) -> Result<(), NotResent> {
    let verdict = failed.verdict;
    if verdict.is_forbidden() {
        return Err(NotResent::Forbidden);
    }
    if verdict.kind().is_none() || verdict.resend() == Resend::Never {
        return Err(NotResent::NotRetryable);
    }
    if !failed.safety.allows_after(verdict) {
        return Err(match verdict.resend() {
            Resend::IfIdempotent => NotResent::NotIdempotent,
            _ => NotResent::NotRetryable,
        });
    }
    if allowance.owned_outside {
        return Err(NotResent::OwnedOutside);
    }
    if failed.resent_inside && policy.settings.nested == Nested::Single {
        return Err(NotResent::ResentInside);
    }
    if failed.attempt >= allowance.attempts {
        return Err(NotResent::AttemptsExhausted);
    }
    if memory.once & once(verdict) != 0 {
        return Err(NotResent::OnceOnly);
    }
    if failed.throttled {
        return Err(NotResent::Throttled);
    }
    // Attempts are left and yet nothing is held: the request is too large to be kept.
    if !failed.held {
        return Err(NotResent::BodyTooLarge);
    }
    Ok(())
}

fn wait(
    (policy, backoff): (&RetryPolicy, &Backoff),
    memory: &mut Memory,
    failed: Failed,
    rng: &mut fastrand::Rng,
) -> Result<Wait, NotResent> {
    let hint = failed.verdict.hint();
    if hint.is_some_and(|hint| hint > policy.settings.max_hint) {
        return Err(NotResent::HintTooLong);
    }
    if let Some(hint) = hint.filter(|_| failed.verdict.is_exact()) {
        // The next wait of our own is the first one again.
        (memory.previous, memory.backoffs) = (Duration::ZERO, 0);
        return Ok(Wait {
            duration: hint,
            hinted: true,
        });
    }
    memory.backoffs += 1;
    let own = backoff.wait(memory.backoffs, memory.previous, rng);
    memory.previous = own;
    match hint {
        Some(hint) if hint >= own => {
            let most = hint.mul_f64(HINT_JITTER).min(MAX_HINT_JITTER);
            Ok(Wait {
                duration: hint.saturating_add(most.mul_f64(rng.f64())),
                hinted: true,
            })
        }
        _ => Ok(Wait {
            duration: own,
            hinted: false,
        }),
    }
}

#[cfg(test)]
mod tests {
    use mamparo_core::Kind;
    use mamparo_core::grpc::{Code, Codes};
    use proptest::prelude::*;

    use super::*;
    use crate::grpc::RetryPlan;

    fn verdicts() -> impl Strategy<Value = Verdict> {
        let kinds = prop::sample::select(vec![
            Kind::Connect,
            Kind::Reset,
            Kind::Timeout,
            Kind::Throttled,
            Kind::Unavailable,
            Kind::Server,
            Kind::Client,
            Kind::Other,
        ]);
        let resends = prop::sample::select(vec![
            Resend::Never,
            Resend::IfKeyed,
            Resend::IfIdempotent,
            Resend::UnlessEarlyData,
            Resend::Always,
        ]);
        let hints = prop::option::of(0u64..100_000);
        (kinds, resends, hints, any::<bool>()).prop_map(|(kind, resend, hint, once)| {
            let verdict = Verdict::failure(kind, resend);
            let verdict = hint.map_or(verdict, |ms| verdict.after(Duration::from_millis(ms)));
            if once { verdict.once() } else { verdict }
        })
    }

    proptest! {
        /// Rows C6 and P-B11, RA-26, law 7: never earlier than told, never past the deadline, never more attempts.
        #[test]
        fn a_resend_is_never_early_never_late_and_never_one_too_many(
            verdict in verdicts(),
            attempt in 1u32..8,
            max in 1u32..8,
            remaining in prop::option::of(0u64..60_000),
            (keyed, idempotent, held, inside, resent_inside) in any::<(bool, bool, bool, bool, bool)>(),
            seed in any::<u64>(),
        ) {
            let policy = RetryPolicy::builder().max_attempts(max).build().unwrap();
            let safety = if idempotent { Safety::IDEMPOTENT } else { Safety::UNSAFE };
            let failed = Failed {
                throttled: false,
                attempt,
                verdict,
                safety: safety.with_key(keyed),
                held,
                remaining: remaining.map(Duration::from_millis),
                resent_inside,
            };
            let allowance = allowance(&policy, None, inside);
            let backoff = backoff(&policy, None);
            let mut rng = fastrand::Rng::with_seed(seed);
            if let Ok(wait) = decide((&policy, backoff), allowance, &mut Memory::default(), failed, &mut rng) {
                let hint = verdict.hint().unwrap_or_default();
                prop_assert!(wait.duration >= hint);
                prop_assert!(wait.duration <= Duration::from_secs(31));
                prop_assert!(attempt < max && !inside && held);
                prop_assert!(failed.safety.allows(verdict.resend()));
                if let Some(remaining) = failed.remaining {
                    prop_assert!(wait.duration + Duration::from_millis(10) <= remaining);
                }
            }
        }

        /// A6-03, A6-04, PB-03, PB-09: by a plan, never one too many, never beside its waits, and exactly as pushed back.
        #[test]
        fn a_plan_is_kept_whatever_an_operation_meets(
            most in 2u32..8,
            failures in prop::collection::vec(
                (prop::option::of(0u64..40_000), any::<bool>(), any::<bool>(), any::<bool>()),
                1..12,
            ),
            seed in any::<u64>(),
        ) {
            let (initial, longest) = (Duration::from_millis(100), Duration::from_secs(1));
            let waits = Backoff::grpc(initial, longest, 2.0).unwrap();
            let plan = RetryPlan::new(most, waits, Codes::UNAVAILABLE).unwrap();
            let method = MethodConfig::new().retried(plan);
            let policy = RetryPolicy::default();
            let allowance = allowance(&policy, Some(&method), false);
            let backoff = backoff(&policy, Some(&method));
            let mut rng = fastrand::Rng::with_seed(seed);
            let (mut memory, mut attempt, mut since_pushback) = (Memory::default(), 1, 0);
            for (pushback, listed, stop, throttled) in failures {
                let code = if listed { Code::Unavailable } else { Code::Internal };
                let verdict = Verdict::failure(Kind::Unavailable, Resend::IfListed(code));
                let pushed = pushback.map(Duration::from_millis);
                let verdict = pushed.map_or(verdict, |wait| verdict.after_exactly(wait));
                let verdict = if stop { verdict.forbidden() } else { verdict };
                let failed = Failed {
                    attempt,
                    verdict,
                    safety: Safety::UNSAFE.with_plan(Codes::UNAVAILABLE),
                    held: true,
                    remaining: None,
                    resent_inside: false,
                    throttled,
                };
                let decided = decide((&policy, backoff), allowance, &mut memory, failed, &mut rng);
                let longer = pushed.is_some_and(|wait| wait > Duration::from_secs(30));
                let allowed = listed && !stop && !throttled && !longer && attempt < most.min(5);
                prop_assert_eq!(decided.is_ok(), allowed);
                let Ok(wait) = decided else { break };
                if let Some(pushed) = pushed {
                    prop_assert_eq!(wait, Wait { duration: pushed, hinted: true });
                    since_pushback = 0;
                } else {
                    let centre = initial.saturating_mul(1 << since_pushback).min(longest);
                    prop_assert!(centre * 4 / 5 <= wait.duration && wait.duration <= centre * 6 / 5);
                    since_pushback += 1;
                }
                attempt += 1;
            }
        }
    }
}
