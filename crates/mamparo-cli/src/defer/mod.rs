//! `mamparo engine`, `mamparo tx`, `mamparo dlq` and `mamparo reconcile`: the defer plane, from the command line.
//!
//! [`place`] opens the store; [`policy`] makes of policy files what the engine needs; [`run`] runs it, with its [`metrics`];
//! the others ask and operate.

mod dlq;
mod gate;
mod metrics;
mod place;
mod policy;
mod reconcile;
mod record;
mod run;
mod send;
mod status;
mod tell;
mod trouble;
mod tx;

pub(crate) use dlq::dlq;
pub(crate) use place::Place;
pub(crate) use reconcile::reconcile;
pub(crate) use run::run;
pub(crate) use status::status;
pub(crate) use trouble::{Trouble, ended};
pub(crate) use tx::{tx, written};
