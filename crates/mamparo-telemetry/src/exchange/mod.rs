//! One request and its answer, recorded: what a physical send and a served call have in common.
//!
//! - `role`: what differs between the protocols and the two sides
//! - `shared`: the settings that all services of one layer share
//! - `service`, `future`: the wiring
//! - `guard`: what is kept until the answer is over

mod future;
mod guard;
#[expect(unnameable_types, reason = "this crate says which roles there are")]
mod role;
mod service;
mod shared;

pub use future::ExchangeFuture;
pub use guard::ExchangeGuard;
pub(crate) use role::{Before, Fault, Heard, Kept, Passes, Role};
pub use service::Exchange;
pub(crate) use shared::Shared;
