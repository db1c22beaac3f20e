//! `mamparo demo --metrics`: a shop that goes on, for Prometheus and the dashboard of `docs/operating`.
//!
//! It is well for a while. Then six dependencies and the engine come into troubles of their own, and each alert has what sets it off.
//!
//! | who | what it is |
//! |---|---|
//! | [`shop`] | what calls the dependencies of `policies.toml`, twenty times a second each |
//! | [`cast`] | plain servers, and what each of them does in trouble |
//! | [`payments`] | an engine of the defer plane on SQLite, with three troubles |
//! | [`run`] | from well to trouble, until it is stopped |

mod cast;
mod payments;
mod run;
mod shop;

pub(super) use run::live;
