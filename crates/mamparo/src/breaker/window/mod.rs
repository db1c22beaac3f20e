//! What a breaker remembers of the calls that ended: the last so many, or those of the last so long.
//!
//! Both windows really slide, in constant time and memory, without a lock. What goes well, which is nearly all, is
//! counted in a shard of the running thread; what fails or is slow is written where all see it, and only then is
//! anything added up. Nothing is ever cleared: each count is stored with its place (a stretch of time, a position in
//! the order of calls), and every change of the breaker's state moves the places on by a whole window, so that
//! whatever was counted before lies outside of it.

mod calls;
mod kept;
mod recent;
mod setting;
mod shards;
mod time;

pub(super) use kept::{Bad, Kept};
pub(super) use recent::Recent;
pub use setting::Window;
