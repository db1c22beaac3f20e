//! What `docs/operating` hands to operators, held against a real Prometheus.
//!
//! - `shop` is a program that calls nine dependencies through stacks of ours, each with a trouble of its own that can be turned on
//! - `payments` is an engine of the defer plane in it, on SQLite, with three troubles
//! - `prometheus` starts a server that scrapes them, and asks it
//! - `rules` reads the alert rules, and lets a minute of theirs pass in a second
//! - `run` lets all of that happen once: well for a while, then in trouble
//! - `alerts` and `dashboard` say what must come of it

mod alerts;
mod dashboard;
mod payments;
mod prometheus;
mod rules;
mod run;
mod shop;
