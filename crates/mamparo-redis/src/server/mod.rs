//! One Redis server: how it is reached, and how long it may take.

mod answer;
mod connection;
mod settings;

pub(crate) use answer::{fault, unreadable};
pub(crate) use connection::Hex;
pub use connection::RedisServer;
pub use settings::RedisBuilder;
