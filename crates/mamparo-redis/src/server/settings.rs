//! Where the server is, and how it is used.

use std::time::Duration;

use mamparo_core::InvalidSetting;
use redis::{ConnectionInfo, IntoConnectionInfo};

use super::RedisServer;

/// Settings of a [`RedisServer`].
///
/// ```
/// use mamparo_redis::RedisServer;
/// use std::time::Duration;
///
/// let server = RedisServer::builder("redis://127.0.0.1:6379/0")
///     .prefix("shop")
///     .timeout(Duration::from_millis(500))
///     .build()?;
/// # let _ = server;
/// let error = RedisServer::builder("http://127.0.0.1").build().unwrap_err();
/// assert_eq!(error.setting(), "redis address");
/// # Ok::<(), mamparo_core::InvalidSetting>(())
/// ```
#[derive(Clone, Debug)]
pub struct RedisBuilder {
    address: Result<ConnectionInfo, InvalidSetting>,
    pub(super) prefix: String,
    pub(super) timeout: Duration,
    pub(super) connect_timeout: Duration,
    pub(super) max_in_flight: usize,
}

impl RedisBuilder {
    pub(super) fn at(url: &str) -> Self {
        // Not the address itself: it may hold a password.
        let address = url.into_connection_info().map_err(|_| {
            let reason = "must be redis://[user:password@]host[:port][/number] or unix:///path";
            InvalidSetting::new("redis address", "(not shown)", reason)
        });
        Self {
            address,
            prefix: "mamparo".to_owned(),
            timeout: Duration::from_secs(1),
            connect_timeout: Duration::from_millis(500),
            max_in_flight: 1_024,
        }
    }

    /// Sets what all keys begin with, `mamparo` by default: programs that share a server should not share it.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Sets how long a step may take, reconnecting and a second try included, 1 s by default.
    ///
    /// Less than the [store timeout](mamparo::idempotency::IdempotencyBuilder::store_timeout) of the layer, 2 s by default.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets how long making a connection may take, 500 ms by default.
    #[must_use]
    pub const fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets how many steps may be under way at once, 1 024 by default; who comes then is refused.
    #[must_use]
    pub const fn max_in_flight(mut self, steps: usize) -> Self {
        self.max_in_flight = steps;
        self
    }

    /// Checks the settings; connects to nothing.
    ///
    /// # Errors
    ///
    /// Refuses what is no address of a Redis server, an empty prefix or one with braces, which would move keys within a cluster, and
    /// times and bounds of zero.
    pub fn build(self) -> Result<RedisServer, InvalidSetting> {
        let address = self.address.clone()?;
        if self.prefix.is_empty() || self.prefix.contains(['{', '}']) {
            let reason = "must not be empty, nor contain braces";
            return Err(InvalidSetting::new("prefix", self.prefix, reason));
        }
        for (setting, time) in [
            ("timeout", self.timeout),
            ("connect_timeout", self.connect_timeout),
        ] {
            if time.is_zero() {
                return Err(InvalidSetting::new(setting, "0s", "must be above 0"));
            }
        }
        if self.max_in_flight == 0 {
            return Err(InvalidSetting::new(
                "max_in_flight",
                0,
                "must be at least 1",
            ));
        }
        RedisServer::with(address, &self)
    }
}
