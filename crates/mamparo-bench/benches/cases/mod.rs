//! What is measured: groups of cases, of which the first is what the others are compared with.
//!
//! A case makes its service inside a runtime of its own and then does calls, one after the other, as often as it is
//! told. Everything else (counting, timing, printing) stands outside.

mod case;
mod floor;
mod groups;
mod ours;
mod reqwest_retry;
mod spans;
mod tower_own;
mod tower_resilience;
mod traffic;

pub(crate) use case::{Case, Group};
pub(crate) use groups::{COUNTS, groups};
