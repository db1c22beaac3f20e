//! Takes orders, tells what has become of them, and follows each saga.
//!
//! - `service` is the process: its tables, its routes, its queue, its watchdog;
//! - `api` answers clients: an order is taken whole or not at all, a list may lack the products' names;
//! - `saga` is what an event does to an order.

mod api;
mod saga;
mod service;

pub(super) use service::run;
