use super::{BackoffBuilder, MAX_CAP};
use crate::InvalidSetting;
use fastrand::Rng;
use std::time::Duration;

/// How much a decorrelated wait may grow over the one before it, as in the AWS article.
const DECORRELATED_GROWTH: u64 = 3;

/// How far from the capped wait [`Jitter::Around`] strays, as its divisor: a fifth.
const AROUND: u64 = 5;

/// How waits are spread, so that callers who failed together don't come back together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Jitter {
    /// Uniform between zero and the capped wait.
    #[default]
    Full,
    /// Uniform between half of the capped wait and the whole of it.
    Equal,
    /// Uniform between the base and three times the previous wait, at most the cap.
    Decorrelated,
    /// Uniform between four and six fifths of the capped wait: up to a fifth longer than the cap (gRFC A6).
    Around,
    /// The capped wait itself.
    None,
}

/// Says how long to wait before each resend: exponential, capped, then jittered.
///
/// A plain value, checked when it was built. One computation takes the same time for any resend number.
///
/// ```
/// use mamparo_core::Backoff;
/// use std::time::Duration;
/// let backoff = Backoff::default();
/// assert_eq!(backoff.ceiling(1), Duration::from_millis(100));
/// assert_eq!(backoff.ceiling(2), Duration::from_millis(200));
/// assert_eq!(backoff.ceiling(u32::MAX), Duration::from_secs(2));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Backoff {
    pub(super) base: Duration,
    pub(super) factor: f64,
    pub(super) cap: Duration,
    pub(super) jitter: Jitter,
}

impl Default for Backoff {
    /// Base 100 ms, ×2, cap 2 s, full jitter: two resends still fit into a deadline that a user notices.
    fn default() -> Self {
        Self {
            base: Duration::from_millis(100),
            factor: 2.0,
            cap: Duration::from_secs(2),
            jitter: Jitter::Full,
        }
    }
}

impl Backoff {
    /// Starts from the defaults.
    pub fn builder() -> BackoffBuilder {
        BackoffBuilder::default()
    }

    /// Makes the backoff of a gRPC retry policy: min(initial × multiplierⁿ⁻¹, longest) × 0.8 to 1.2 (gRFC A6).
    ///
    /// The multiplier may be below 1, and the first wait longer than the longest, as there. No wait is longer than
    /// six fifths of [`MAX_CAP`].
    ///
    /// # Errors
    ///
    /// Refuses a duration of zero, and a multiplier that is not a number above 0.
    ///
    /// ```
    /// use mamparo_core::Backoff;
    /// use std::time::Duration;
    ///
    /// let (initial, longest) = (Duration::from_millis(100), Duration::from_secs(1));
    /// let backoff = Backoff::grpc(initial, longest, 2.0)?;
    /// assert_eq!(backoff.ceiling(1), Duration::from_millis(120));
    /// assert_eq!(backoff.ceiling(9), Duration::from_millis(1_200));
    /// # Ok::<(), mamparo_core::InvalidSetting>(())
    /// ```
    pub fn grpc(
        initial: Duration,
        longest: Duration,
        multiplier: f64,
    ) -> Result<Self, InvalidSetting> {
        for (setting, value) in [("initialBackoff", initial), ("maxBackoff", longest)] {
            if value.is_zero() {
                return Err(InvalidSetting::new(
                    setting,
                    "0s",
                    "must be longer than zero",
                ));
            }
        }
        if !(multiplier.is_finite() && multiplier > 0.0) {
            let reason = "must be a number above 0";
            return Err(InvalidSetting::new("backoffMultiplier", multiplier, reason));
        }
        Ok(Self {
            base: initial.min(MAX_CAP),
            factor: multiplier,
            cap: longest.min(MAX_CAP),
            jitter: Jitter::Around,
        })
    }

    /// Draws the wait before a resend: 1 for the first, which is attempt 2 of the operation.
    ///
    /// `previous` is what this operation's last wait was, zero if there was none; only decorrelated jitter looks
    /// at it. The result is never longer than [`ceiling`](Self::ceiling) of the same resend.
    #[must_use]
    pub fn wait(&self, resend: u32, previous: Duration, rng: &mut Rng) -> Duration {
        let ceiling = nanos(self.ceiling(resend));
        let drawn = match self.jitter {
            Jitter::Full => rng.u64(0..=ceiling),
            Jitter::Equal => rng.u64(ceiling - ceiling / 2..=ceiling),
            Jitter::Decorrelated => {
                let base = nanos(self.base);
                let longest = nanos(previous)
                    .max(base)
                    .saturating_mul(DECORRELATED_GROWTH);
                rng.u64(base..=longest.min(ceiling))
            }
            // Four sixths of the ceiling, which is six fifths of the capped wait.
            Jitter::Around => rng.u64(ceiling - ceiling / 3..=ceiling),
            Jitter::None => ceiling,
        };
        Duration::from_nanos(drawn)
    }

    /// Returns the longest wait before a resend: 1 for the first. Worst-case times add these up.
    #[must_use]
    pub fn ceiling(&self, resend: u32) -> Duration {
        let grown = match self.jitter {
            Jitter::Decorrelated => (DECORRELATED_GROWTH as f64).powf(f64::from(resend.max(1))),
            Jitter::Full | Jitter::Equal | Jitter::Around | Jitter::None => {
                self.factor.powf(f64::from(resend.saturating_sub(1)))
            }
        };
        // In f64 the growth may reach infinity but never overflows; a day of nanoseconds is exact there.
        let capped = (nanos(self.base) as f64 * grown).min(nanos(self.cap) as f64);
        let capped = capped.round() as u64;
        Duration::from_nanos(match self.jitter {
            Jitter::Around => capped + capped / AROUND,
            _ => capped,
        })
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
