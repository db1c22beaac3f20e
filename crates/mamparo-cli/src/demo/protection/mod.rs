//! The layers that protect, each on a server of its own that is in trouble.
//!
//! | scene | what it shows |
//! |---|---|
//! | [`breaker`] | a dependency goes down and comes back: the breaker opens, rejects, probes, and lets calls in again on a ramp |
//! | [`bulkhead`] | a slow dependency takes all workers of a gateway, and does not where a bulkhead stands around it |
//! | [`hedge`] | a few answers come late, and hardly any caller sees it |
//! | [`partial`] | pages still come, and are marked, while a part of them can't be had |
//!
//! [`load`] makes the calls, [`proofs`] says what must have come of them, [`tables`] shows it.

mod breaker;
mod bulkhead;
mod gateway;
mod hedge;
mod load;
mod partial;
mod proofs;
mod run;
mod tables;

pub(super) use breaker::{Band, Outage, SLICE, Slice};
pub(super) use proofs::proofs;
pub(super) use run::{Protection, protect};
pub(super) use tables::tables;
