//! Publishes messages, each of which the broker confirms.

mod events;
mod publish;

pub use publish::Publisher;
