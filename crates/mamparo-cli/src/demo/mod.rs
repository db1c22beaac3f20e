//! `mamparo demo`: a shop on loopback, with dependencies that misbehave, and what the layers make of it.
//!
//! | who | what it is |
//! |---|---|
//! | [`peer`], [`cast`] | plain servers that fail by script: a flaky catalog, slow reviews, a `psp` and a mailer that lose answers |
//! | [`shop`] | a real axum service, behind the server layers, that calls them with reqwest, hyper and tonic |
//! | [`pricing`] | a dependency that speaks gRPC: what an item costs, and a stream of prices |
//! | [`traffic`] | a client of the shop, behind the recommended stack too |
//! | [`proofs`] | what must have come of it, checked on what the servers saw |
//! | [`lost`] | a server that recognises keys, and one that does not, whose answers get lost |
//! | [`deferred`] | a dependency that says "not now", behind the defer plane, whose engine is started anew meanwhile |
//! | [`protection`] | the layers that protect, each on a server of its own that is in trouble |
//! | [`plot`] | the breaker's time line as a picture |
//! | [`figures`] | what the metrics say of each dependency |
//! | [`scenes`] | which operations are drawn |
//! | [`live`] | instead of all that: a shop that goes on, for the dashboard |
//!
//! Nothing here is told to the layers: what is drawn and counted comes from the spans and metrics that they wrote.

mod cast;
mod client;
mod deferred;
mod figures;
mod live;
mod lost;
mod notes;
mod peer;
mod plot;
mod pricing;
mod proof;
mod proofs;
mod protection;
mod report;
mod run;
mod scenes;
mod shop;
mod traced;
mod traffic;

pub(crate) use run::demo;
