//! What happened, from the spans and events that the layers write, and its picture as a waterfall.
//!
//! [`Recorder`] keeps them, [`rows`](rows::rows) puts them in order of time, [`draw()`] makes lines of them.

mod draw;
mod notes;
mod recorder;
mod rows;
mod span;

pub(crate) use draw::{draw, millis};
pub(crate) use notes::{Refusal, Wait};
pub(crate) use recorder::{Kept, Recorder};
pub(crate) use rows::rows;
pub(crate) use span::{Status, attempt, is_operation, ms, resend_count, since, status, text};
