//! How much there will be of everything, against what the services allow.

use std::time::Duration;

use mamparo_core::InvalidSetting;
use serde::Serialize;

use super::alarms::MOST_IN_FLIGHT;
use super::cost::{self, WRITE_UNITS};

/// As long as an average month, in seconds.
const MONTH: f64 = 2_629_800.0;

/// More is no load that a group of machines has.
const MOST_PER_SECOND: f64 = 1_000_000.0;

/// A message is taken for about so long, in seconds, until it is handled and removed.
const HANDLED_WITHIN: f64 = 1.0;

/// What is deferred: how many answers a second mean "not now", and how long the next attempt waits, on average.
///
/// ```
/// use std::time::Duration;
/// use mamparo_aws::plan::Load;
///
/// let load = Load::new(20.0, Duration::from_secs(4 * 3_600))?;
/// assert_eq!(load.active(), 288_000.0); // 20/s × 4 h
/// assert!(load.needs().iter().all(|need| need.fits()));
/// # Ok::<(), mamparo_core::InvalidSetting>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    per_second: f64,
    mean_wait: Duration,
}

/// How much there will be of something, and how much may be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Need {
    /// What is counted.
    pub what: &'static str,
    /// How many there will be.
    pub amount: f64,
    /// How many an account has by default, in the largest regions.
    pub quota: f64,
    /// What smaller regions have, where that is less.
    pub smaller_regions: Option<f64>,
    /// Whether more can be asked for.
    pub adjustable: bool,
}

impl Load {
    /// Makes a load.
    ///
    /// # Errors
    ///
    /// [`InvalidSetting`] when the rate is not above 0, not finite or more than a million a second, or the wait is longer than a year.
    pub fn new(per_second: f64, mean_wait: Duration) -> Result<Self, InvalidSetting> {
        let sensible = per_second > 0.0 && per_second <= MOST_PER_SECOND;
        if !sensible {
            let reason = "must be above 0 and at most 1000000 a second";
            return Err(InvalidSetting::new("rate", per_second, reason));
        }
        if mean_wait > mamparo_durable::limits::LONGEST_WAIT {
            let value = format!("{} s", mean_wait.as_secs());
            return Err(InvalidSetting::new(
                "mean_wait",
                value,
                "must be at most a year",
            ));
        }
        Ok(Self {
            per_second,
            mean_wait,
        })
    }

    /// Returns how many schedules are active at a time: the rate times the wait.
    #[must_use]
    pub fn active(&self) -> f64 {
        self.per_second * self.mean_wait.as_secs_f64()
    }

    /// Returns what it takes, against default quotas.
    #[must_use]
    pub fn needs(&self) -> [Need; 5] {
        let rate = self.per_second;
        let need = |what, amount, quota| Need {
            what,
            amount,
            quota,
            smaller_regions: None,
            adjustable: true,
        };
        [
            need("schedules that are active", self.active(), 10_000_000.0),
            Need {
                smaller_regions: Some(250.0),
                ..need("schedules made, a second", rate, 5_000.0)
            },
            Need {
                smaller_regions: Some(500.0),
                ..need("fires, a second", rate, 1_000.0)
            },
            need(
                "write units of one table, a second",
                rate * WRITE_UNITS,
                40_000.0,
            ),
            Need {
                adjustable: false,
                ..need(
                    "messages of one queue taken at a time",
                    rate * HANDLED_WITHIN,
                    f64::from(MOST_IN_FLIGHT),
                )
            },
        ]
    }

    /// Returns the dollars of a month of it, on public prices.
    #[must_use]
    pub fn a_month(&self) -> f64 {
        self.per_second * MONTH / 1e6 * cost::million()
    }
}

impl Need {
    /// Tells whether it is within the quota of the largest regions.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.amount <= self.quota
    }

    /// Tells whether it is within the quota of every region.
    #[must_use]
    pub fn fits_everywhere(&self) -> bool {
        self.amount <= self.smaller_regions.unwrap_or(self.quota)
    }
}
