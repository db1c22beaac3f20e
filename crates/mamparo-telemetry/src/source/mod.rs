//! Where spans and instruments come from: providers that were passed in, or the global ones once they are real.
//!
//! A program may build its layers before it installs a provider. Until then the global one is a no-op, and what
//! a no-op gave must not be kept. So a layer that found none asks again, at most every [`RECHECK`]: the calls in
//! between read one atomic and the clock, and allocate nothing.

mod meters;
mod pulse;
mod scope;
mod spans;

pub(crate) use meters::Meters;
pub(crate) use pulse::Pulse;
pub use pulse::RECHECK;
pub(crate) use spans::{Recorded, Spans, Started, within};

#[cfg(test)]
mod tests;
