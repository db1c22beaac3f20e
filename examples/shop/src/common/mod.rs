//! What every process of the shop has.
//!
//! - `settings` reads `shop.toml` and the policies, and hurries them for a game day;
//! - `telemetry` has a page for Prometheus and a file of spans, and counts what the workers do;
//! - `serve` answers HTTP from start to stop, `client` asks others;
//! - `shop` is database and broker together: a change with its events, once for each message;
//! - `bus` knows the queues, and runs a service's relay, watchdogs and consumer.

pub(crate) mod bus;
pub(crate) mod client;
pub(crate) mod serve;
pub(crate) mod settings;
pub(crate) mod shop;
pub(crate) mod telemetry;
