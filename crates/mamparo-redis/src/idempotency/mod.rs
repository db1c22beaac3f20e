//! Idempotency keys in Redis.

mod row;
mod scripts;
mod store;

pub use store::RedisIdempotency;

#[cfg(test)]
mod tests;
