//! How a relay works.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mamparo_core::InvalidSetting;
use mamparo_core::clock::{SystemClock, WallClock};

use super::{EventStore, Publisher, Relay};

/// The most that are claimed at once: a payload each is kept in memory.
const LARGEST_BATCH: usize = 10_000;

/// No lease is longer: it is how long events wait after their relay died.
const LONGEST_LEASE: Duration = Duration::from_secs(3600);

#[derive(Clone)]
pub(super) struct RelaySettings {
    pub(super) name: String,
    pub(super) batch: usize,
    pub(super) lease: Duration,
    pub(super) publish_timeout: Duration,
    pub(super) max_failures: u32,
    pub(super) look_again: Duration,
    pub(super) clock: Arc<dyn WallClock>,
}

/// Makes a [`Relay`].
#[must_use = "a builder does nothing until `build` is called"]
pub struct RelayBuilder {
    store: Arc<dyn EventStore>,
    publisher: Arc<dyn Publisher>,
    settings: RelaySettings,
}

impl RelayBuilder {
    pub(super) fn new(
        name: String,
        store: Arc<dyn EventStore>,
        publisher: Arc<dyn Publisher>,
    ) -> Self {
        let settings = RelaySettings {
            name,
            batch: 256,
            lease: Duration::from_secs(30),
            publish_timeout: Duration::from_secs(10),
            max_failures: 10,
            look_again: Duration::from_secs(5),
            clock: Arc::new(SystemClock),
        };
        Self {
            store,
            publisher,
            settings,
        }
    }

    /// Sets how many events are claimed at once; 256 by default.
    pub const fn batch(mut self, events: usize) -> Self {
        self.settings.batch = events;
        self
    }

    /// Sets after how long another relay takes what a dead one had claimed; 30 s by default.
    pub const fn lease(mut self, lease: Duration) -> Self {
        self.settings.lease = lease;
        self
    }

    /// Sets how long the broker's confirmation is waited for; 10 s by default. At most half of the lease.
    pub const fn publish_timeout(mut self, timeout: Duration) -> Self {
        self.settings.publish_timeout = timeout;
        self
    }

    /// Sets how often an event may fail while others are confirmed, before it is parked; 10 by default, with waits from 1 s to 5 min.
    ///
    /// A broker that takes nothing at all is an outage, and no event's failure.
    pub const fn max_failures(mut self, failures: u32) -> Self {
        self.settings.max_failures = failures;
        self
    }

    /// Sets how often is looked without any notification; 5 s by default and at most.
    pub const fn look_again(mut self, pause: Duration) -> Self {
        self.settings.look_again = pause;
        self
    }

    /// Sets the wall clock by which the lag is told; the machine's own by default.
    pub fn wall_clock(mut self, clock: impl WallClock) -> Self {
        self.settings.clock = Arc::new(clock);
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`InvalidSetting`] when a number is 0 or a duration is out of its bounds.
    pub fn build(self) -> Result<Relay, InvalidSetting> {
        let settings = &self.settings;
        if !(1..=LARGEST_BATCH).contains(&settings.batch) {
            let reason = "must be from 1 to 10000";
            return Err(InvalidSetting::new("batch", settings.batch, reason));
        }
        if settings.max_failures == 0 {
            return Err(InvalidSetting::new("max_failures", 0, "must be at least 1"));
        }
        let refused = |setting, value: Duration, reason| {
            Err(InvalidSetting::new(setting, format!("{value:?}"), reason))
        };
        if settings.lease > LONGEST_LEASE {
            return refused("lease", settings.lease, "must be at most 1 h");
        }
        if settings.publish_timeout.is_zero() || settings.publish_timeout > settings.lease / 2 {
            let reason = "must be more than 0 and at most half of the lease";
            return refused("publish_timeout", settings.publish_timeout, reason);
        }
        if settings.look_again.is_zero() {
            return refused("look_again", settings.look_again, "must be more than 0");
        }
        Ok(Relay::with(self.store, self.publisher, self.settings))
    }
}

impl fmt::Debug for RelayBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RelayBuilder")
            .field("name", &self.settings.name)
            .finish_non_exhaustive()
    }
}
