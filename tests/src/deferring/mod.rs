//! Engines of the defer plane in processes of their own, over real stores, that are killed, stopped and cut off from them.
//!
//! - `engine` is the engine that all of them run, and `process` is the process around it
//! - `dependency` answers over HTTP, as a seed says, and does each key's work once
//! - `checks` holds what is stored, and told, against what the dependency did
//! - `crash` kills the process at each named place, and at random instants
//! - `outages` takes its store away, or its room, and gives it back
//! - `rate` has two engines on one store, and looks how often their dependency is asked
//! - `handover` kills or stops it under load, and looks how soon another goes on

mod checks;
mod crash;
mod dependency;
mod engine;
mod handover;
mod outages;
mod process;
mod rate;
