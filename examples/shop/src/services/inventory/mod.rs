//! Reserves stock for an order, and releases it: when the order is cancelled, when nothing is heard for 15 minutes, and, once an
//! hour, when orders says that there is no such order.
//!
//! - `service` is the process: its tables, its queue, its watchdog;
//! - `stock` is what an event does to the stock;
//! - `reconcile` compares with orders.

mod reconcile;
mod service;
mod stock;

pub(super) use service::run;
