//! What travels with a call: one small value, visible to everything that is polled inside.
//!
//! A [`CallContext`] lies by value in the future of each layer that changes it, and is swapped into a
//! thread-local around `call`, around every poll, and around every poll of the response body. That costs a few
//! nanoseconds and no allocation, and reaches generic layers that know nothing of HTTP.
//!
//! # Which layer begins an operation
//!
//! The outermost of `OperationLayer`, `DeadlineLayer`, `IdempotencyKeyLayer` and `RetryLayer` begins it; the
//! others join. A layer begins a new, nested operation instead of joining when the current one
//! has already passed a layer of its kind, or is for a dependency of another name: that is how an auth layer's
//! token request, or a client call made inside a handler, is told apart from a resend. A nested operation
//! ends when the attempt around it must, and starts counting its attempts and sends anew.
//!
//! The context does not follow into a spawned task by itself: [`carry`] takes it along, [`detach`] leaves it
//! behind. Nor does it follow into a worker: what stands inside of a `tower::buffer::Buffer` is called by the buffer's
//! own task, outside of any operation. Put a buffer outside of all these layers, or inside of them all.

mod attempt;
mod call;
mod current;
mod nanos;
mod notes;
mod scope;
mod task;
mod view;

pub use attempt::{AttemptLimit, Limited};
pub use call::{CallContext, Cause, LayerKind, OperationId};
pub use notes::Resends;
pub use scope::{Entered, Scope};
pub use task::{InContext, carry, detach};

#[cfg(test)]
mod tests;
