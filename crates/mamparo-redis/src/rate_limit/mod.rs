//! Rate limits in Redis.

mod store;

pub use store::RedisRateLimit;

#[cfg(test)]
mod tests;
