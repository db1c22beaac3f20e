//! `mamparo explain`: one policy, or all of them, as a person would say it; or as a table for a README.

mod markdown;
mod record;
mod run;
mod words;

pub(crate) use run::explain;
