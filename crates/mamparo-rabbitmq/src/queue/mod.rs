//! A queue of the defer plane's engine, in RabbitMQ.
//!
//! ```text
//!  publish ──► <queue> ──prefetch──► desk ──take──► under a lease ──acknowledge──► gone
//!                 ▲ ▲                                 │ │ │
//!                 │ └──────── lease over (nack) ──────┘ │ └─ bury ─────► <queue>.dlq
//!                 └── <queue>.retry.… ◄──── release ────┘                    │ discard
//!                                                                            ▼
//!                                                                    <queue>.discarded
//! ```
//!
//! - [`config`] says which queue it is, and its bounds;
//! - [`desk`] keeps what the broker has handed over, and who may settle it: pure, but for waking who waits;
//! - [`session`] is one connection's worth of messages; it fills the desk, and gives back what nobody settled in time;
//! - [`wire`] is how the engine's messages are written, and what their headers say;
//! - [`letters`] are the dead letters, by number;
//! - [`moves`] is what becomes of a message;
//! - [`rabbit`] is the trait, on top of these.

mod config;
mod desk;
mod letters;
mod moves;
mod rabbit;
mod session;
mod wire;

pub use config::RabbitQueueBuilder;
pub use rabbit::RabbitQueue;
