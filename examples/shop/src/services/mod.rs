//! The shop's processes, one file each.
//!
//! | service | what it does | whom it asks |
//! |---|---|---|
//! | `gateway` | lets clients in, each 300 times a minute | orders |
//! | `orders` | takes orders, and follows each saga; its watchdog cancels what waits for its payment for too long | catalog, customers |
//! | `catalog`, `customers` | know products and customers | |
//! | `inventory` | reserves stock, and releases it | orders, once an hour |
//! | `payments` | charges once for each order | bank |
//! | `bank` | somebody else's: charges, refunds, and refuses large sums | |
//! | `notifications` | tells customers | |
//!
//! Those of the saga hear each other's events: `order.placed` → `stock.reserved` → `payment.confirmed` → `order.confirmed`, and back by
//! `order.cancelled` → `stock.released`, `payment.refunded`.

mod bank;
mod catalog;
mod customers;
mod gateway;
mod inventory;
mod notifications;
mod orders;
mod payments;
mod run;

pub(crate) use run::{NAMES, run};
