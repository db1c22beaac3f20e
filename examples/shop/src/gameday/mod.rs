//! A day on which the shop is broken on purpose, to see what everybody sees.
//!
//! - `day` is the shop in real processes, and whoever looks at it;
//! - `customers` order, `operators` read the processes' pages for Prometheus, `traces` follow an order through all of them, and `ledger`
//!   counts in the tables what cannot be seen from outside, such as money;
//! - `faults` break one thing each, and mend it again;
//! - `table` holds what was expected against what was seen.

mod customers;
mod day;
mod faults;
mod ledger;
mod operators;
mod run;
mod table;
mod traces;

pub(crate) use run::{Options, run};
