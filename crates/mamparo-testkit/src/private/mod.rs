//! Servers of one test, or of one test program: on a free port of loopback, with their own folder, gone with their owner.
//!
//! - [`PrivateMoto`] answers as AWS does
//! - [`PrivatePostgres`] is a PostgreSQL that a test stops, kills and starts again
//! - [`PrivateRabbit`] is a RabbitMQ that a test stops, kills and starts again
//! - [`PrivateRedis`] is a Redis that a test stops, kills and starts again
//!
//! Their programs are installed by `scripts/peers`, moto by `scripts/peer-moto`. However the test program ends, also by a signal,
//! the server is stopped and its folder removed. They run in real time.
//!
//! ```no_run
//! use mamparo_testkit::private::PrivatePostgres;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let server = PrivatePostgres::start().await;
//! let url = server.url(); // a client connects there
//! server.kill().await;
//! server.restart().await; // at the same address, with what was committed
//! # }
//! ```

mod folder;
mod moto;
mod postgres;
mod programs;
mod rabbit;
mod redis;
#[cfg(test)]
mod tests;

pub use moto::PrivateMoto;
pub use postgres::PrivatePostgres;
pub use rabbit::PrivateRabbit;
pub use redis::PrivateRedis;
