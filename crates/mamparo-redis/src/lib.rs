//! What replicas of a service share in Redis: the idempotency keys of a server, and rate limits.
//!
//! [`RedisIdempotency`] is a store for [`IdempotencyLayer`](mamparo::idempotency::IdempotencyLayer), [`RedisRateLimit`] one for
//! [`RateLimitLayer::shared`](mamparo::rate_limit::RateLimitLayer::shared). All that use one [`RedisServer`]
//! share its connection, its time limit and its bound on what is under way.
//!
//! # What is promised of keys
//!
//! Each step is one atomic script on one key: of all replicas' requests with one key, one is run, and the others find its answer.
//! That holds as long as Redis has what it answered, and so depends on how it is set up:
//!
//! - with `appendfsync always`, all of it, unless its machine is lost or a replica, which follows behind, takes its place;
//! - with `appendfsync everysec`, all but the last second or two where the machine stops;
//! - with snapshots only, or without persistence, what the last snapshot has, or nothing;
//! - with an eviction policy other than `noeviction`, any key may be gone at any time.
//!
//! A key that is lost is absent, and its request is run again when it is repeated. There is no
//! [`IdempotencyTx`](mamparo::idempotency::IdempotencyTx) for Redis: an effect that must not happen twice needs a store in its own
//! database.
//!
//! ```no_run
//! use mamparo::idempotency::{IdempotencyLayer, IdempotencyPolicy};
//! use mamparo_redis::{RedisIdempotency, RedisServer};
//!
//! let server = RedisServer::builder("redis://10.0.0.7:6379").prefix("shop").build()?;
//! let policy = IdempotencyPolicy::for_all_callers().build()?;
//! let layer = IdempotencyLayer::new(RedisIdempotency::new(server), policy);
//! # let _ = layer;
//! # Ok::<(), mamparo_core::InvalidSetting>(())
//! ```

mod idempotency;
mod rate_limit;
mod server;

pub use idempotency::RedisIdempotency;
pub use rate_limit::RedisRateLimit;
pub use server::{RedisBuilder, RedisServer};
