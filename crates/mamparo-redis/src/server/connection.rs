//! One connection that all share, made again when it breaks, within bounds.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mamparo::idempotency::{StoreError, StoreErrorKind};
use mamparo_core::InvalidSetting;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::io::tcp::TcpSettings;
use redis::{Client, ConnectionInfo, RedisResult, ScriptInvocation, Value};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::{RedisBuilder, fault};

/// How often a connection that can't be made is tried again before those who wait for it are told, and the first wait.
const RECONNECTS: usize = 3;
const RECONNECT_AFTER: Duration = Duration::from_millis(50);
const RECONNECT_AFTER_AT_MOST: Duration = Duration::from_millis(200);

/// How long what was sent may stay unacknowledged before the connection counts as broken, where the system can tell.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED: Duration = Duration::from_secs(5);

/// One Redis server, or what stands for it, such as a proxy of a cluster; clones share its connection.
///
/// Nothing is connected before the first step. All steps go over one connection, one after the other without waiting for each other's
/// answers. When it breaks, it is made again, and the step that saw it break is tried once more: every step may run twice.
///
/// ```
/// use mamparo_redis::{RedisIdempotency, RedisServer};
///
/// let server = RedisServer::at("redis://127.0.0.1:6379")?;
/// let store = RedisIdempotency::new(server.clone());
/// # let _ = store;
/// # Ok::<(), mamparo_core::InvalidSetting>(())
/// ```
#[derive(Clone)]
pub struct RedisServer(Arc<Inner>);

struct Inner {
    client: Client,
    config: ConnectionManagerConfig,
    manager: OnceLock<RedisResult<ConnectionManager>>,
    room: Semaphore,
    prefix: String,
    timeout: Duration,
}

impl RedisServer {
    /// Uses the server at an address, `redis://…`, with the default settings.
    ///
    /// # Errors
    ///
    /// Refuses what is no such address; whether there is a server is seen by the first step.
    pub fn at(url: &str) -> Result<Self, InvalidSetting> {
        Self::builder(url).build()
    }

    /// Starts from the default settings.
    #[must_use]
    pub fn builder(url: &str) -> RedisBuilder {
        RedisBuilder::at(url)
    }

    pub(super) fn with(
        address: ConnectionInfo,
        settings: &RedisBuilder,
    ) -> Result<Self, InvalidSetting> {
        let tcp = TcpSettings::default().set_nodelay(true);
        #[cfg(target_os = "linux")]
        let tcp = tcp.set_user_timeout(UNACKNOWLEDGED);
        let client = Client::open(address.set_tcp_settings(tcp)).map_err(|_| {
            let reason = "is of a kind that this build can't reach";
            InvalidSetting::new("redis address", "(not shown)", reason)
        })?;
        let config = ConnectionManagerConfig::new()
            .set_number_of_retries(RECONNECTS)
            .set_min_delay(RECONNECT_AFTER)
            .set_max_delay(RECONNECT_AFTER_AT_MOST)
            .set_connection_timeout(Some(settings.connect_timeout))
            .set_response_timeout(Some(settings.timeout))
            .set_pipeline_buffer_size(settings.max_in_flight);
        Ok(Self(Arc::new(Inner {
            client,
            config,
            manager: OnceLock::new(),
            room: Semaphore::new(settings.max_in_flight.min(Semaphore::MAX_PERMITS)),
            prefix: settings.prefix.clone(),
            timeout: settings.timeout,
        })))
    }

    /// The name of a key: one script touches one key, so that a cluster has it in one place.
    pub(crate) fn key(&self, rest: fmt::Arguments<'_>) -> String {
        format!("{}:{rest}", self.0.prefix)
    }

    /// Runs a script, which the server may have to be told first, and which may run twice.
    pub(crate) async fn run(&self, script: &ScriptInvocation<'_>) -> Result<Value, StoreError> {
        let Ok(_room) = self.0.room.try_acquire() else {
            let words = "as many steps are under way as may be";
            return Err(StoreError::new(StoreErrorKind::Overloaded, words));
        };
        match timeout(self.0.timeout, self.attempt(script)).await {
            Ok(ran) => ran.map_err(fault),
            Err(elapsed) => Err(StoreError::new(StoreErrorKind::TimedOut, elapsed)),
        }
    }

    async fn attempt(&self, script: &ScriptInvocation<'_>) -> RedisResult<Value> {
        let mut manager = self.manager()?;
        match script.invoke_async(&mut manager).await {
            // The connection may have been dead for long, and nobody has noticed.
            Err(error) if error.is_connection_dropped() && !error.is_connection_refusal() => {
                script.invoke_async(&mut manager).await
            }
            ran => ran,
        }
    }

    /// Made by the first step, since it wants a runtime.
    fn manager(&self) -> RedisResult<ConnectionManager> {
        let inner = &*self.0;
        let make =
            || ConnectionManager::new_lazy_with_config(inner.client.clone(), inner.config.clone());
        inner.manager.get_or_init(make).clone()
    }
}

/// Without its address, which may hold a password.
impl fmt::Debug for RedisServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisServer")
            .field("prefix", &self.0.prefix)
            .field("timeout", &self.0.timeout)
            .finish_non_exhaustive()
    }
}

/// Bytes as they stand in a key's name.
pub(crate) struct Hex<'a>(pub(crate) &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
