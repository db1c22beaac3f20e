//! Where the shop's processes run: a broker, a database, and every service in a process of its own.
//!
//! - `ground` is RabbitMQ and PostgreSQL, somebody's or private ones;
//! - `process` is one service's process, which can be stopped, killed and frozen;
//! - `processes` are all of them.

mod ground;
mod process;
mod processes;

pub(crate) use ground::{Ground, Urls};
pub(crate) use processes::{Hurry, REPLICA, Town};
