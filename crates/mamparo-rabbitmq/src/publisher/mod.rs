//! Publishes messages, each of which the broker confirms.

mod publish;

pub use publish::Publisher;
