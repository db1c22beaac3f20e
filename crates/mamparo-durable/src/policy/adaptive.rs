//! Waits that follow how often retries succeed.

use std::collections::HashMap;

use mamparo_core::InvalidSetting;

use super::wait::{STRETCH, within};

/// As many kinds as are told apart; those beyond share one factor.
pub const MAX_KINDS: usize = 1_024;

/// The share of successes at which waits are left as they are: 0.5 × 8^(1 − s) is 1.
const NEUTRAL: f64 = 2.0 / 3.0;

/// A factor for the waits of each kind of transaction, learnt from how often its retries succeed.
///
/// The share of successes is an exponentially weighted moving average; the factor is 0.5 × 8^(1 − share): 0.5 when every
/// retry succeeds, 1 at two out of three, 4 when none does. So a dependency that has come back is asked sooner, and one that
/// keeps refusing is left alone. It starts at 1 and is not stored: after a restart it is learnt again.
///
/// ```
/// use mamparo_durable::policy::Adaptive;
/// let mut adaptive = Adaptive::new(0.1)?;
/// assert_eq!(adaptive.factor("payout"), 1.0);
/// for _ in 0..100 {
///     adaptive.observe("payout", false);
/// }
/// assert!(adaptive.factor("payout") > 3.9 && adaptive.factor("refund") == 1.0);
/// # Ok::<(), mamparo_core::InvalidSetting>(())
/// ```
#[derive(Clone, Debug)]
pub struct Adaptive {
    weight: f64,
    shares: HashMap<Box<str>, f64>,
    /// Of all kinds past the first [`MAX_KINDS`].
    rest: f64,
}

impl Adaptive {
    /// Takes the weight of the newest outcome: 0.05 remembers about the last 20.
    ///
    /// # Errors
    ///
    /// [`InvalidSetting`] when it is not above 0 and at most 1.
    pub fn new(weight: f64) -> Result<Self, InvalidSetting> {
        if weight > 0.0 && weight <= 1.0 {
            return Ok(Self {
                weight,
                shares: HashMap::new(),
                rest: NEUTRAL,
            });
        }
        Err(InvalidSetting::new(
            "adaptive.weight",
            weight,
            "must be above 0 and at most 1",
        ))
    }

    /// Learns how a retry of that kind ended: with success, or refused. A technical failure says nothing about it.
    pub fn observe(&mut self, kind: &str, success: bool) {
        let outcome = if success { 1.0 } else { 0.0 };
        let weight = self.weight;
        let share = self.share_mut(kind);
        *share += weight * (outcome - *share);
    }

    /// Returns the factor of that kind, from 0.5 to 4.
    #[must_use]
    pub fn factor(&self, kind: &str) -> f64 {
        let full = self.shares.len() >= MAX_KINDS;
        let unknown = if full { self.rest } else { NEUTRAL };
        let share = self.shares.get(kind).copied().unwrap_or(unknown);
        if share == NEUTRAL {
            return 1.0;
        }
        let (least, most) = STRETCH;
        within(least * (most / least).powf(1.0 - share), STRETCH, 1.0)
    }

    fn share_mut(&mut self, kind: &str) -> &mut f64 {
        if self.shares.len() >= MAX_KINDS && !self.shares.contains_key(kind) {
            return &mut self.rest;
        }
        self.shares.entry(kind.into()).or_insert(NEUTRAL)
    }
}
