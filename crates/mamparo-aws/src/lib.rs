//! The backend of [`mamparo_durable`] on AWS: DynamoDB keeps transactions, SQS carries messages, EventBridge Scheduler waits.
//!
//! [`Settings`] say how the services are reached, [`Aws`] holds the clients, and [`Aws::backend`] is what an engine works with.
//!
//! | module | what it is for |
//! |---|---|
//! | `connection` | the clients, their bounds, and what an error means |
//! | `names` | what everything is called |
//! | `gather` | what comes at the same time goes in one request |
//! | `store` | transactions, requests and history in DynamoDB |
//! | `outbox` | whole steps in one transaction, and the relay that carries what follows from them |
//! | `queue` | SQS |
//! | `scheduler` | EventBridge Scheduler |
//! | `plan` | all resources as data: printed, made, checked |

mod backend;
mod connection;
mod gather;
mod names;
mod outbox;
pub mod plan;
mod queue;
mod scheduler;
mod store;
#[cfg(test)]
mod tests;

pub use connection::{Aws, Settings, SettingsBuilder};
