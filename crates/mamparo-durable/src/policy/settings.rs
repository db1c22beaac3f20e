//! What holds for a transaction.

use std::time::Duration;

use super::{PolicyBuilder, Wait};
use crate::machine::Utc;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);

/// How often, how long and until when.
///
/// | setting | default | why |
/// |---|---|---|
/// | `max_attempts` | 4 | the original and three retries: 14 h with the default waits, a working day and its night |
/// | `business` | 2 h, ×2, 24 h, ±10 % | a refusal is the dependency's own state, which changes in hours |
/// | `technical` | 30 s, ×2, 1 h, ±10 % | an outage; the call plane has already tried for seconds |
/// | `postponed` | 1 min, ×2, 1 h, ±10 % | an open breaker that does not say until when |
/// | `max_postponements` | 100 | four days of a dependency that is down |
/// | `give_up_after` | 7 days | nobody waits longer for an outcome that is unknown |
/// | `longest_hint` | 24 h | a dependency may ask for a wait, but not for a year |
///
/// ```
/// use mamparo_durable::policy::Policy;
/// let policy = Policy::builder().max_attempts(3).build()?;
/// assert_eq!(policy.max_attempts(), 3);
/// let error = Policy::builder().max_attempts(0).build().unwrap_err();
/// assert_eq!(error.to_string(), "max_attempts = 0 is refused: must be from 1 to 1000: it counts the original");
/// # Ok::<(), mamparo_core::InvalidSetting>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policy {
    pub(super) max_attempts: u32,
    pub(super) max_postponements: u32,
    pub(super) give_up_after: Duration,
    pub(super) business: Wait,
    pub(super) technical: Wait,
    pub(super) postponed: Wait,
    pub(super) longest_hint: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            max_attempts: 4,
            max_postponements: 100,
            give_up_after: 7 * DAY,
            business: Wait::of(2 * HOUR, 24 * HOUR),
            technical: Wait::of(MINUTE / 2, HOUR),
            postponed: Wait::of(MINUTE, HOUR),
            longest_hint: DAY,
        }
    }
}

impl Policy {
    /// Starts from the defaults.
    pub fn builder() -> PolicyBuilder {
        PolicyBuilder::default()
    }

    /// Returns as many attempts as are made, the original included.
    #[must_use]
    pub const fn max_attempts(&self) -> u32 {
        self.max_attempts
    }

    /// Returns as many postponements as are borne.
    #[must_use]
    pub const fn max_postponements(&self) -> u32 {
        self.max_postponements
    }

    /// Returns for how long what is technical may go on.
    #[must_use]
    pub const fn give_up_after(&self) -> Duration {
        self.give_up_after
    }

    /// Returns the wait after a refusal.
    #[must_use]
    pub const fn business(&self) -> &Wait {
        &self.business
    }

    /// Returns the wait after a technical failure.
    #[must_use]
    pub const fn technical(&self) -> &Wait {
        &self.technical
    }

    /// Returns the wait while the dependency's breaker is open.
    #[must_use]
    pub const fn postponed(&self) -> &Wait {
        &self.postponed
    }

    /// Returns the longest wait that a dependency may ask for.
    #[must_use]
    pub const fn longest_hint(&self) -> Duration {
        self.longest_hint
    }

    /// Moves an instant to when the dependency asked for, if that is later, and spreads it from there on.
    pub(crate) fn honour(&self, asked: Option<Utc>, fire_at: Utc, now: Utc, draw: f64) -> Utc {
        let bounded = asked.map(|asked| asked.min(now.plus(self.longest_hint)));
        match bounded {
            Some(asked) if asked > fire_at => asked.plus(self.postponed.spread(draw)),
            _ => fire_at,
        }
    }
}
