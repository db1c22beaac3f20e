//! What is measured: groups of cases, of which the first is what the others are compared with.
//!
//! A case makes its service inside a runtime of its own and then does calls, one after the other, as often as it is
//! told. Everything else (counting, timing, printing) stands outside.

mod case;
pub(crate) mod floor;
mod groups;
pub(crate) mod latency;
pub(crate) mod ours;
pub(crate) mod peers;
mod protecting;
mod reqwest_retry;
mod spans;
pub(crate) mod tower_own;
pub(crate) mod tower_resilience;
pub(crate) mod traffic;

pub(crate) use case::{Case, Group};
pub(crate) use groups::{COUNTS, groups};
