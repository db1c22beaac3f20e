//! What `docs/operating` hands to operators, held against a real Prometheus.
//!
//! - `demo` is `mamparo demo --metrics`, whose dependencies come into a trouble each
//! - `prometheus` starts a server that scrapes it, and asks it
//! - `rules` reads the alert rules, and lets a minute of theirs pass in a second
//! - `run` lets all of that happen once: well for a while, then in trouble
//! - `alerts` and `dashboard` say what must come of it

mod alerts;
mod dashboard;
mod demo;
mod prometheus;
mod rules;
mod run;
