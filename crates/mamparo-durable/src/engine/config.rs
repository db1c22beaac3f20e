//! The settings of an engine.

use std::sync::Arc;
use std::time::Duration;

use mamparo::rate_limit::RateLimitPolicy;
use mamparo_core::InvalidSetting;
use mamparo_core::clock::WallClock;

use super::Engine;
use super::health::Health;
use crate::backend::Backend;
use crate::handler::{Gatekeeper, Listener, Reconciler, Runner, RunnerBuilder};
use crate::machine::Patience;
use crate::policy::{Adaptive, Policies};

/// No more messages of one queue are in hand at once.
const MOST_AT_ONCE: usize = 65_536;

/// A lease shorter than this is over before its message is handled, and none needs to be longer: it is renewed.
const LEASES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(3_600));

const DAY: Duration = Duration::from_secs(86_400);

/// No pause of the engine is longer.
const LONGEST_PAUSE: Duration = DAY;

/// What is under way just now must not be lost, and a century can be reckoned with.
const KEEPS: (Duration, Duration) = (
    Duration::from_secs(60),
    Duration::from_secs(36_500 * 86_400),
);

/// What an engine does, checked.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) answers: usize,
    pub(super) fires: usize,
    pub(super) requests: usize,
    pub(super) rate: RateLimitPolicy,
    pub(super) lease: Duration,
    pub(super) look_again: Duration,
    pub(super) drain: Duration,
    pub(super) reconcile_every: Duration,
    pub(super) keep: Option<Duration>,
    pub(super) max_restarts: u32,
    pub(super) gatekeeper: Arc<dyn Gatekeeper>,
    pub(super) reconciler: Reconciler,
}

/// Settings of an [`Engine`].
///
/// | setting | default | bounds | why |
/// |---|---|---|---|
/// | `answers`, `fires` | 256 | 1 to 65 536 | as many as one commit gathers |
/// | `requests` | 64 | 1 to 65 536 | as many as a dependency is asked at once |
/// | `rate` | none | | only the dependency's owner knows it |
/// | `lease` | 2.5 s | 50 ms to 1 h | what a dead process had in hand is taken up within 3 s; the living renew it |
/// | `look_again` | 30 s | 1 ms to 1 d | finds what nobody told of |
/// | `drain` | 5 s | 0 to 1 d | a stop takes no longer |
/// | `reconcile_every` | 30 s | 10 ms to 1 d | half of the shortest patience |
/// | `keep` | 30 d | 1 min to 100 years, or for ever | what has gone wrong is looked into within weeks; see [`keep`](Self::keep) |
/// | `max_restarts` | 5 | any | a task that dies more often, never a minute after its start, will die again |
///
/// ```
/// use mamparo_core::clock::SystemClock;
/// use mamparo_durable::engine::Engine;
/// use mamparo_durable::memory::Memory;
///
/// let backend = Memory::new(SystemClock).backend();
/// let refused = Engine::builder(backend).requests(0).build().unwrap_err();
/// assert_eq!(refused.to_string(), "requests = 0 is refused: must be from 1 to 65536");
/// ```
#[derive(Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct EngineBuilder {
    runner: RunnerBuilder,
    gatekeeper: Arc<dyn Gatekeeper>,
    patience: Patience,
    answers: usize,
    fires: usize,
    requests: usize,
    rate: RateLimitPolicy,
    lease: Duration,
    look_again: Duration,
    drain: Duration,
    reconcile_every: Duration,
    keep: Option<Duration>,
    max_restarts: u32,
}

impl EngineBuilder {
    pub(super) fn new(backend: Backend) -> Self {
        Self {
            runner: Runner::builder(backend),
            gatekeeper: Arc::new(()),
            patience: Patience::default(),
            answers: 256,
            fires: 256,
            requests: 64,
            rate: RateLimitPolicy::off(),
            lease: Duration::from_millis(2_500),
            look_again: Duration::from_secs(30),
            drain: Duration::from_secs(5),
            reconcile_every: Duration::from_secs(30),
            keep: Some(30 * DAY),
            max_restarts: 5,
        }
    }

    /// Sets how long and how often is waited; the default policy for all by default.
    pub fn policies(mut self, policies: Policies) -> Self {
        self.runner = self.runner.policies(policies);
        self
    }

    /// Stretches the waits after refusals as retries succeed or not; off by default.
    pub fn adaptive(mut self, adaptive: Adaptive) -> Self {
        self.runner = self.runner.adaptive(adaptive);
        self
    }

    /// Sets the wall clock; the machine's by default.
    pub fn wall_clock(mut self, clock: impl WallClock) -> Self {
        self.runner = self.runner.wall_clock(clock);
        self
    }

    /// Sets who hears of alerts, transitions and messages; nobody by default.
    pub fn listener(mut self, listener: Arc<dyn Listener>) -> Self {
        self.runner = self.runner.listener(listener);
        self
    }

    /// Sets who is asked, before an attempt is claimed, whether its dependency may be called; everything passes by default.
    pub fn gatekeeper(mut self, gatekeeper: impl Gatekeeper) -> Self {
        self.gatekeeper = Arc::new(gatekeeper);
        self
    }

    /// Sets for how long a transaction may stay as it is before the reconciler takes it up.
    pub const fn patience(mut self, patience: Patience) -> Self {
        self.patience = patience;
        self
    }

    /// Sets how many answers are handled at once.
    pub const fn answers(mut self, at_once: usize) -> Self {
        self.answers = at_once;
        self
    }

    /// Sets how many fires are handled at once.
    pub const fn fires(mut self, at_once: usize) -> Self {
        self.fires = at_once;
        self
    }

    /// Sets how many requests are sent at once.
    pub const fn requests(mut self, at_once: usize) -> Self {
        self.requests = at_once;
        self
    }

    /// Sets how often attempts are claimed, and requests sent; all dependencies together, and all engines on one store together, where
    /// the store keeps [limits](Backend::limits): give each engine the same rate.
    ///
    /// In any stretch of time there pass its share of the rate and one burst; give a burst of 1 to a dependency that counts strictly.
    /// What comes too often waits for its turn for as long as the policy's `max_wait`, a second at least, and is given back otherwise.
    /// While the store does not answer, nothing passes.
    pub const fn rate(mut self, policy: RateLimitPolicy) -> Self {
        self.rate = policy;
        self
    }

    /// Sets after how long what a dead process had in hand is taken up by another.
    pub const fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Sets after how long at most a queue is looked at that nothing is known to be in.
    pub const fn look_again(mut self, pause: Duration) -> Self {
        self.look_again = pause;
        self
    }

    /// Sets how long a stop lets go on what has begun.
    pub const fn drain(mut self, limit: Duration) -> Self {
        self.drain = limit;
        self
    }

    /// Sets how often the reconciler looks; each time a tenth sooner or later.
    pub const fn reconcile_every(mut self, pause: Duration) -> Self {
        self.reconcile_every = pause;
        self
    }

    /// Sets for how long a transaction is kept after its end, with its request and history; `None` for ever.
    ///
    /// Its id is free then: begun again, it is another transaction. Keep them for longer than anyone repeats a request, and than dead
    /// letters lie about. They are looked for each hour, and forgotten a few at a time.
    pub fn keep(mut self, after_the_end: impl Into<Option<Duration>>) -> Self {
        self.keep = after_the_end.into();
        self
    }

    /// Sets how often a task that died is started again before the engine ends; one that has run for a minute counts from 0 again.
    pub const fn max_restarts(mut self, restarts: u32) -> Self {
        self.max_restarts = restarts;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`InvalidSetting`] when a number or a duration is out of its bounds.
    pub fn build(self) -> Result<Engine, InvalidSetting> {
        self.check()?;
        let runner = self.runner.build();
        let reconciler = Reconciler::builder(runner.clone()).patience(self.patience);
        let settings = Settings {
            answers: self.answers,
            fires: self.fires,
            requests: self.requests,
            rate: self.rate,
            lease: self.lease,
            look_again: self.look_again,
            drain: self.drain,
            reconcile_every: self.reconcile_every,
            keep: self.keep,
            max_restarts: self.max_restarts,
            gatekeeper: self.gatekeeper,
            reconciler: reconciler.build()?,
        };
        Ok(Engine {
            runner,
            settings: Arc::new(settings),
            health: Arc::new(Health::default()),
        })
    }

    fn check(&self) -> Result<(), InvalidSetting> {
        for (setting, value) in [
            ("answers", self.answers),
            ("fires", self.fires),
            ("requests", self.requests),
        ] {
            if !(1..=MOST_AT_ONCE).contains(&value) {
                return Err(InvalidSetting::new(
                    setting,
                    value,
                    "must be from 1 to 65536",
                ));
            }
        }
        let pause = |least| (Duration::from_millis(least), LONGEST_PAUSE);
        for (setting, value, (least, most), reason) in [
            ("lease", self.lease, LEASES, "must be from 50 ms to 1 h"),
            (
                "look_again",
                self.look_again,
                pause(1),
                "must be from 1 ms to 1 day",
            ),
            ("drain", self.drain, pause(0), "must be at most 1 day"),
            (
                "reconcile_every",
                self.reconcile_every,
                pause(10),
                "must be from 10 ms to 1 day",
            ),
            (
                "keep",
                self.keep.unwrap_or(30 * DAY),
                KEEPS,
                "must be from 1 min to 36500 days, or nothing for ever",
            ),
        ] {
            if value < least || value > most {
                return Err(InvalidSetting::new(setting, format!("{value:?}"), reason));
            }
        }
        Ok(())
    }
}
