use crate::InvalidSetting;
use crate::sync::{AtomicU64, Ordering::Relaxed};
use std::fmt;
use std::sync::Arc;

/// The parts of a token that are counted: a ratio has three decimals.
const TOKEN: u64 = 1_000;

/// The most tokens that can be asked for.
const MAX_TOKENS: u32 = 1_000;

/// What stops resends to a dependency of which too many requests fail (gRFC A6, "Throttling Retry Attempts and Hedged RPCs").
///
/// There are `max_tokens` at first. A failure that could have been sent again takes one, a success gives `ratio` of one
/// back, and resends are made only while more than half of the tokens are there. Nothing waits: a resend is made or it is
/// not. Clones share the tokens; make one per dependency.
///
/// Unlike a [`Budget`](super::Budget), it looks at failures, and not at how much is sent. A success while all tokens are
/// there writes nothing.
///
/// ```
/// use mamparo_core::budget::Throttle;
///
/// let throttle = Throttle::new(10, 0.1)?;
/// (0..4).for_each(|_| throttle.failed());
/// assert!(throttle.allows(), "6 of 10 are left");
/// throttle.failed();
/// assert!(!throttle.allows(), "half of them is too few");
/// throttle.succeeded();
/// assert!(throttle.allows());
/// # Ok::<(), mamparo_core::InvalidSetting>(())
/// ```
#[derive(Clone)]
pub struct Throttle {
    shared: Arc<Shared>,
}

struct Shared {
    max: u64,
    ratio: u64,
    /// In parts of a token.
    tokens: AtomicU64,
}

impl Throttle {
    /// Makes one with all its tokens; of the ratio, three decimals count.
    ///
    /// # Errors
    ///
    /// Refuses no tokens or more than 1000, and a ratio that is not a number of at least 0.001.
    pub fn new(max_tokens: u32, ratio: f64) -> Result<Self, InvalidSetting> {
        if max_tokens == 0 || max_tokens > MAX_TOKENS {
            let reason = "must be from 1 to 1000";
            return Err(InvalidSetting::new("maxTokens", max_tokens, reason));
        }
        let parts = parts(ratio).filter(|parts| *parts > 0);
        let Some(parts) = parts else {
            let reason = "must be a number above 0, of which three decimals count, such as 0.1";
            return Err(InvalidSetting::new("tokenRatio", ratio, reason));
        };
        let max = u64::from(max_tokens) * TOKEN;
        Ok(Self {
            shared: Arc::new(Shared {
                max,
                // A success gives back no more than there is room for.
                ratio: parts.min(max),
                tokens: AtomicU64::new(max),
            }),
        })
    }

    /// Takes a token: a request failed that could have been sent again, or its server said that it must not be.
    pub fn failed(&self) {
        self.change(|tokens| tokens.saturating_sub(TOKEN));
    }

    /// Gives a share of a token back: a request succeeded.
    #[inline]
    pub fn succeeded(&self) {
        if self.shared.tokens.load(Relaxed) < self.shared.max {
            let Shared { ratio, max, .. } = *self.shared;
            self.change(|tokens| (tokens + ratio).min(max));
        }
    }

    /// Tells whether a resend may be made: while more than half of the tokens are there.
    #[must_use]
    pub fn allows(&self) -> bool {
        self.shared.tokens.load(Relaxed) > self.shared.max / 2
    }

    /// Returns how many tokens are there.
    #[must_use]
    pub fn tokens(&self) -> f64 {
        self.shared.tokens.load(Relaxed) as f64 / TOKEN as f64
    }

    fn change(&self, change: impl Fn(u64) -> u64) {
        let tokens = &self.shared.tokens;
        let mut seen = tokens.load(Relaxed);
        // Ends: another thread has changed it meanwhile, and so has got on.
        while let Err(now) = tokens.compare_exchange_weak(seen, change(seen), Relaxed, Relaxed) {
            seen = now;
        }
    }
}

/// A ratio in parts of a token, what is below one cut off: read as it is written, since 1.005 × 1000 is 1004.9 in binary.
fn parts(ratio: f64) -> Option<u64> {
    if !(ratio.is_finite() && ratio > 0.0) {
        return None;
    }
    let text = ratio.min(f64::from(MAX_TOKENS)).to_string();
    let (whole, decimals) = text.split_once('.').unwrap_or((&text, ""));
    let decimals: String = decimals.chars().chain("000".chars()).take(3).collect();
    Some(whole.parse::<u64>().ok()? * TOKEN + decimals.parse::<u64>().ok()?)
}

impl fmt::Debug for Throttle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Throttle")
            .field("max_tokens", &(self.shared.max / TOKEN))
            .field("tokens", &self.tokens())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A6-05.
    #[test]
    fn half_of_the_tokens_is_too_few() {
        let throttle = Throttle::new(10, 0.1).unwrap();
        (0..4).for_each(|_| throttle.failed());
        assert_eq!((throttle.tokens(), throttle.allows()), (6.0, true));
        throttle.failed();
        assert_eq!((throttle.tokens(), throttle.allows()), (5.0, false));
        throttle.succeeded();
        assert_eq!((throttle.tokens(), throttle.allows()), (5.1, true));
    }

    /// A6-05.
    #[test]
    fn three_decimals_of_the_ratio_count() {
        for (ratio, given) in [
            (0.5466, 0.546),
            (0.001, 0.001),
            (1.005, 1.005),
            (0.29, 0.29),
            (2.0, 2.0),
            (1e300, 10.0),
        ] {
            let throttle = Throttle::new(10, ratio).unwrap();
            (0..20).for_each(|_| throttle.failed());
            assert_eq!(throttle.tokens(), 0.0);
            throttle.succeeded();
            assert_eq!(throttle.tokens(), given);
        }
    }

    /// A6-05.
    #[test]
    fn a_throttle_that_makes_no_sense_is_refused() {
        for (max, ratio, setting) in [
            (0, 0.1, "maxTokens"),
            (1_001, 0.1, "maxTokens"),
            (1, 0.0, "tokenRatio"),
            (1, 0.000_9, "tokenRatio"),
            (1, -1.0, "tokenRatio"),
            (1, f64::NAN, "tokenRatio"),
            (1, f64::INFINITY, "tokenRatio"),
        ] {
            assert_eq!(Throttle::new(max, ratio).unwrap_err().setting(), setting);
        }
        assert!(Throttle::new(1_000, 0.001).is_ok());
    }

    proptest! {
        /// A6-05: the count is that of a sum that never leaves 0 to `maxTokens`.
        #[test]
        fn tokens_are_counted_as_told_and_never_leave_their_bounds(
            max in 1..=1_000_u32,
            parts in 1..5_000_u32,
            results in prop::collection::vec(any::<bool>(), 0..200),
        ) {
            let throttle = Throttle::new(max, f64::from(parts) / 1e3).unwrap();
            let shared = throttle.clone();
            let mut expected = u64::from(max) * 1_000;
            for failed in results {
                if failed {
                    throttle.failed();
                    expected = expected.saturating_sub(1_000);
                } else {
                    shared.succeeded();
                    expected = (expected + u64::from(parts)).min(u64::from(max) * 1_000);
                }
                prop_assert_eq!(throttle.shared.tokens.load(Relaxed), expected);
                prop_assert_eq!(throttle.allows(), expected > u64::from(max) * 500);
            }
        }
    }

    #[test]
    fn failures_of_many_threads_are_all_counted() {
        let throttle = Throttle::new(1_000, 1.0).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..50).for_each(|_| throttle.failed()));
            }
        });
        assert_eq!(throttle.tokens(), 600.0);
    }
}
