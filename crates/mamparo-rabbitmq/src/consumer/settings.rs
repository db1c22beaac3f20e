//! How a consumer works.

use std::sync::Arc;
use std::time::Duration;

use mamparo_core::InvalidSetting;
use mamparo_core::clock::{SystemClock, WallClock};

use super::Consumer;
use super::report::{ConsumerEvent, Report};
use crate::{Settings, Topology};

/// What a handler's panic says about its message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Panics {
    /// It is a bug, which another attempt would meet again.
    #[default]
    Permanent,
    /// It is a failure like any other.
    Transient,
}

/// The longest that RabbitMQ waits for a message to be settled, as it is set up by default, with a reserve.
const LONGEST_HANDLING: Duration = Duration::from_secs(25 * 60);

/// Settings of a consumer, checked.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) prefetch: u16,
    pub(crate) concurrency: usize,
    pub(crate) max_attempts: u32,
    pub(crate) handler_timeout: Duration,
    pub(crate) drain_timeout: Duration,
    pub(crate) max_bytes: usize,
    pub(crate) max_restarts: u32,
    pub(crate) panics: Panics,
    pub(crate) clock: Arc<dyn WallClock>,
    pub(crate) report: Report,
}

/// Makes a [`Consumer`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct ConsumerBuilder {
    settings: Settings,
    topology: Topology,
    concurrency: Option<usize>,
    rules: Rules,
}

impl ConsumerBuilder {
    pub(super) fn new(settings: Settings, topology: Topology) -> Self {
        Self {
            settings,
            topology,
            concurrency: None,
            rules: Rules {
                prefetch: 10,
                concurrency: 0,
                max_attempts: 5,
                handler_timeout: Duration::from_secs(30),
                drain_timeout: Duration::from_secs(30),
                max_bytes: 16 * 1024 * 1024,
                max_restarts: 10,
                panics: Panics::default(),
                clock: Arc::new(SystemClock),
                report: Report::default(),
            },
        }
    }

    /// Sets how many messages are taken before the first is settled; 10 by default.
    pub const fn prefetch(mut self, messages: u16) -> Self {
        self.rules.prefetch = messages;
        self
    }

    /// Sets how many are handled at once; as many as are taken by default, and at most. One by one, they are handled in order, until one
    /// of them is tried again.
    pub const fn concurrency(mut self, messages: usize) -> Self {
        self.concurrency = Some(messages);
        self
    }

    /// Sets how often a message is tried, the first time included; 5 by default.
    pub const fn max_attempts(mut self, attempts: u32) -> Self {
        self.rules.max_attempts = attempts;
        self
    }

    /// Sets how long one attempt may take, waiting for the service to be ready included; 30 s by default.
    pub const fn handler_timeout(mut self, timeout: Duration) -> Self {
        self.rules.handler_timeout = timeout;
        self
    }

    /// Sets how long those under way are waited for when it stops; 30 s by default. What isn't done then is
    /// given back; with zero, all of it at once.
    pub const fn drain_timeout(mut self, timeout: Duration) -> Self {
        self.rules.drain_timeout = timeout;
        self
    }

    /// Sets how many bytes a body may have to be handled; 16 MiB by default. Bigger ones are dead letters.
    pub const fn max_bytes(mut self, bytes: usize) -> Self {
        self.rules.max_bytes = bytes;
        self
    }

    /// Sets how often its task is started again after it died; 10 by default. Once it has worked for a minute, it is counted anew.
    pub const fn max_restarts(mut self, restarts: u32) -> Self {
        self.rules.max_restarts = restarts;
        self
    }

    /// Sets what a handler's panic says about its message; a bug by default.
    pub const fn panics(mut self, panics: Panics) -> Self {
        self.rules.panics = panics;
        self
    }

    /// Sets the clock that dead letters are dated by.
    pub fn clock(mut self, clock: impl WallClock) -> Self {
        self.rules.clock = Arc::new(clock);
        self
    }

    /// Sets who is told what happens, such as a log. It must not block.
    pub fn report(mut self, report: impl Fn(&ConsumerEvent<'_>) + Send + Sync + 'static) -> Self {
        self.rules.report = Report(Some(Arc::new(report)));
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`InvalidSetting`] for a number of zero, a time limit of zero, or one that is longer than RabbitMQ waits.
    pub fn build(self) -> Result<Consumer, InvalidSetting> {
        let mut rules = self.rules;
        let taken = rules.prefetch.into();
        // More than are taken are never handled at once.
        rules.concurrency = self.concurrency.unwrap_or(taken).min(taken);
        for (setting, value) in [
            ("prefetch", taken),
            ("concurrency", rules.concurrency),
            ("max_attempts", rules.max_attempts as usize),
            ("max_bytes", rules.max_bytes),
        ] {
            if value == 0 {
                return Err(InvalidSetting::new(setting, 0, "must be at least 1"));
            }
        }
        let limit = rules.handler_timeout;
        if limit.is_zero() || limit > LONGEST_HANDLING {
            let reason = "must be longer than nothing, and 25 min at most: RabbitMQ closes the channel after 30 min";
            return Err(InvalidSetting::new(
                "handler_timeout",
                format!("{limit:?}"),
                reason,
            ));
        }
        Ok(Consumer::new(self.settings, self.topology, rules))
    }
}
