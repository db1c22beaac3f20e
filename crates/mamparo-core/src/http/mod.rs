//! HTTP's answers, judged.
//!
//! [`Http`] is the classifier: which statuses and errors are failures, which may be sent again and on what
//! condition, and how long the server asks to wait. [`hint`] reads the server's wait. [`GuardedBody`] keeps a
//! guard until the answer is over: a failure is final at the head, a good head stays open until its body ends,
//! breaks or is dropped.

mod body;
mod classify;
pub mod hint;

pub use body::GuardedBody;
pub use classify::{
    EXHAUSTED_HEADER, Http, HttpBuilder, HttpEnds, IDEMPOTENCY_KEY, MAX_LISTED_METHODS,
    MAX_LISTED_STATUSES,
};

#[cfg(test)]
mod tests;
