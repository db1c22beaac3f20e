//! `mamparo engine`, `tx`, `dlq` and `reconcile`, with real processes, files and servers.

mod asked;
mod crashes;
mod engine;
mod metrics;
mod on_aws;
mod provider;
mod reconciled;
mod runs;
mod traces;
