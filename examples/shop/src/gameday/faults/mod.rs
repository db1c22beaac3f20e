//! What is broken, one at a time.

mod bank;
mod broker;
mod calm;
mod catalog;
mod database;
mod fault;
mod killed;
mod saga;
mod watchdogs;

pub(super) use fault::Fault;
