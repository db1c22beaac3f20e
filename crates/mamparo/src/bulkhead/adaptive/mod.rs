//! A limit that follows what the dependency bears.
//!
//! Calls are looked at in *windows*: a tenth of a second, or longer until ten calls have ended. At a window's end an
//! algorithm says what the limit should be; whatever it says, the limit
//!
//! - stays between its floor and its ceiling;
//! - is never more than [`headroom`](AdaptiveBuilder::headroom) times what was really in flight in the window, so that
//!   nobody who calls rarely earns a limit that was never tried.
//!
//! | algorithm | takes less when | takes more when |
//! |---|---|---|
//! | [`Aimd`] | calls fail for overload, or are slower than you say | they don't |
//! | [`Vegas`] | the queue that it infers from the latency is long | it is short |
//! | [`Gradient2`] | the latency is above a tolerated multiple of the lowest one | it isn't |
//!
//! # What is lowest
//!
//! The *baseline* is the lowest mean latency of any window in the last ten minutes
//! ([`memory`](AdaptiveBuilder::memory)). A dependency that gets ten times slower and stays so is therefore held to the
//! low limit for that long at least; the published algorithms average the slow state in, and are back at the old limit
//! within a minute or two. After the ten minutes the slow state is what there is to compare with.
//!
//! # What counts
//!
//! The latency of a call that succeeded, until its head. A timeout, 429, 503 or a broken connection, and a call that a
//! deadline cut, count as overload and have no latency: fast failures must not pass for a fast dependency. A cancelled
//! call, a rejection of ours, and a latency of zero (which says nothing) don't count at all.

mod aimd;
mod baseline;
mod config;
mod governor;
mod gradient;
mod meter;
mod vegas;
mod window;

pub use aimd::Aimd;
pub use config::{AdaptiveBuilder, AdaptiveLimit};
pub(super) use governor::{Governor, Started};
pub use gradient::Gradient2;
pub use vegas::Vegas;
pub use window::{LimitAlgorithm, Window};

#[cfg(test)]
mod tests;
