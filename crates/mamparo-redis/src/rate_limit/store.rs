//! The store.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use mamparo::idempotency::StoreError;
use mamparo::rate_limit::{Ask, Granted, LimitStore, Taking};
use mamparo_core::{BoxError, InvalidSetting};
use redis::{Script, Value};

use crate::RedisServer;
use crate::server::{Hex, unreadable};

/// Keeps a rate limit in Redis, for all replicas; see [`RateLimitLayer::shared`](mamparo::rate_limit::RateLimitLayer::shared).
///
/// One atomic script a step, by the Redis server's clock; Redis forgets a key when its burst is whole again. Nothing of it needs to be on a
/// disk: a Redis that has lost everything lets one burst more pass.
///
/// ```no_run
/// use mamparo::rate_limit::{RateLimitLayer, RateLimitPolicy, Replicas};
/// use mamparo_redis::{RedisRateLimit, RedisServer};
/// use std::time::Duration;
///
/// let server = RedisServer::builder("redis://10.0.0.7:6379").prefix("shop").build()?;
/// let policy = RateLimitPolicy::per(Duration::from_secs(1), 300).build()?;
/// let layer = RateLimitLayer::server(policy)
///     .per_key(|request: &http::Request<String>| request.headers().get("x-account").cloned())
///     .shared(RedisRateLimit::new(server, "per-account")?, Replicas::of(3))?;
/// # let _ = layer;
/// # Ok::<(), mamparo_core::InvalidSetting>(())
/// ```
pub struct RedisRateLimit {
    server: RedisServer,
    name: String,
    script: Script,
}

impl RedisRateLimit {
    /// Keeps the limit of that name; those of other names on the same server are others.
    ///
    /// # Errors
    ///
    /// Refuses an empty name, and one with braces, which would move keys within a cluster.
    pub fn new(server: RedisServer, name: impl Into<String>) -> Result<Self, InvalidSetting> {
        let name = name.into();
        if name.is_empty() || name.contains(['{', '}']) {
            let reason = "must not be empty, nor contain braces";
            return Err(InvalidSetting::new("name", name, reason));
        }
        let script = Script::new(include_str!("take.lua"));
        Ok(Self {
            server,
            name,
            script,
        })
    }

    async fn ask(&self, ask: Ask) -> Result<Granted, BoxError> {
        let (name, hash) = (&self.name, Hex(&ask.key));
        let mut script = (self.script).key(self.server.key(format_args!("rate:{name}:{hash}")));
        script
            .arg(ask.interval)
            .arg(ask.burst)
            .arg(ask.cost)
            .arg(ask.more);
        let value = self.server.run(&script).await.map_err(Unanswered)?;
        Ok(granted(&value).ok_or_else(|| Unanswered(unreadable()))?)
    }
}

impl LimitStore for RedisRateLimit {
    fn take(&self, ask: Ask) -> Taking<'_> {
        Box::pin(self.ask(ask))
    }
}

impl fmt::Debug for RedisRateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisRateLimit")
            .field("server", &self.server)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

fn granted(value: &Value) -> Option<Granted> {
    let Value::Array(parts) = value else {
        return None;
    };
    let [Value::Int(taken), Value::Int(micros)] = parts.as_slice() else {
        return None;
    };
    Some(Granted {
        taken: u32::try_from(*taken).ok()?,
        full_in: Duration::from_micros(u64::try_from(*micros).ok()?),
    })
}

/// In words for a rate limit, with the server's own as the cause.
#[derive(Debug)]
struct Unanswered(StoreError);

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.0.kind().as_str();
        write!(f, "redis can't be asked for a rate limit: {kind}")
    }
}

impl Error for Unanswered {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}
